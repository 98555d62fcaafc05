"""Models for places without Python: a fitted model as an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from standout._arrays import Array, dense, double
from standout._messages import InvalidTypeError, InvalidValueError, require_extra
from standout.estimators import (
    BackgroundPipeline,
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
)
from standout.features import (
    FourierMap,
    IdentityMap,
    Kernel,
    KernelRowMap,
    KernelValueMap,
    LandmarkMap,
    NamedKernel,
    SumKernel,
    centre_columns,
)

__all__ = ["to_onnx"]

# The version of ONNX's set of operators: old enough for runtimes of recent years.
OPSET = 17
LINEAR = (DiscriminativePCA, ContrastivePCA)
KERNELS = (KernelDiscriminativePCA, KernelContrastivePCA)


def to_onnx(model: Any, *, dtype: Any = np.float32) -> Any:
    """How do I compute scores in another language, or in a browser?

    Gives the ``transform`` of a fitted model as a graph of ONNX, which runtimes for most languages and devices run.

    Parameters
    ----------
    model : DiscriminativePCA, ContrastivePCA, KernelDiscriminativePCA or KernelContrastivePCA
        Fitted. Kernels: "linear", "rbf", "gaussian", "laplacian", "poly", "polynomial", "homogeneous_polynomial",
        "sigmoid" and "cosine", sums of these, and random Fourier features.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Of the rows and of the scores. Single precision keeps five digits or more of linear models, Fourier features
        and a few landmarks. Exact kernels add up large terms that cancel each other: use double precision for these.

    Returns
    -------
    onnx.ModelProto
        With an input ``X`` of any number of rows, and an output ``scores``. ``onnx.save(graph, path)`` writes it.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.export import to_onnx
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(2, 100, 3))
    >>> graph = to_onnx(DiscriminativePCA(2).fit(target, background=background))
    >>> graph.graph.input[0].name, graph.graph.output[0].name
    ('X', 'scores')
    """
    require_extra("onnx", "onnx", "standout.export")
    if isinstance(model, BackgroundPipeline) or not isinstance(model, (*LINEAR, *KERNELS)):
        raise InvalidTypeError(
            "a {kind} has no ONNX form here",
            kind=type(model).__name__,
            advice="Give a fitted estimator of standout; convert the steps before it in a pipeline with skl2onnx.",
        )
    check_is_fitted(model)
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        advice = "Use numpy.float32 or numpy.float64."
        raise InvalidValueError("is no type of numbers for a graph", parameter="dtype", value=dtype, advice=advice)
    graph = _Graph(np.dtype(dtype))
    model = model.to_numpy()
    if isinstance(model, LINEAR):
        centred = graph.add("Sub", "X", graph.constant(model.mean_))
        graph.finish(graph.add("MatMul", centred, graph.constant(model.components_.T)))
    else:
        _kernel_scores(graph, model)
    return graph.model(int(model.n_features_in_), int(model.n_components_))


def _kernel_scores(graph: _Graph, model: Any) -> None:
    """Add the scores of a kernel model: its coordinates, minus their mean, times the components."""
    mapping, mean, filters = model.feature_map_, model.feature_mean_, model.components_.T
    if isinstance(mapping, IdentityMap):
        values = "X"
    elif isinstance(mapping, FourierMap):
        angles = graph.add("MatMul", "X", graph.constant(mapping.frequencies))
        waves = graph.add("Cos", graph.add("Add", angles, graph.constant(mapping.phases)))
        values = graph.add("Mul", waves, graph.constant(np.sqrt(2.0 / mapping.n_coordinates)))
    elif isinstance(mapping, LandmarkMap):
        # Coordinates are L⁻¹k; filters and mean are brought to the kernel values k, so that no solving is needed.
        values = _kernel(graph, mapping.kernel, mapping.landmarks)
        filters, mean = mapping.dual_filters(filters), mapping.dual_means(mean[None, :])[0, :]
    elif isinstance(mapping, KernelValueMap):
        values = _kernel(graph, mapping.kernel, mapping.landmarks)
    else:
        assert isinstance(mapping, KernelRowMap)
        values = _kernel(graph, mapping.kernel, mapping.rows)
        # Kernel rows are centred over the rows of each dataset: so are the filters, once and for all.
        centred = centre_columns(double(filters).T.copy(), mapping.sizes).T
        shift = mean @ filters
        graph.finish(graph.add("Sub", graph.add("MatMul", values, graph.constant(centred)), graph.constant(shift)))
        return
    # Large numbers cancel less if the mean is taken off before multiplying.
    graph.finish(graph.add("MatMul", graph.add("Sub", values, graph.constant(mean)), graph.constant(filters)))


def _kernel(graph: _Graph, kernel: Kernel, landmarks: Any, weight: float = 1.0) -> str:
    """Add the kernel of the rows with landmarks, times a weight.

    Factors of products of matrices are multiplied into the landmarks: onnxruntime would keep them in single precision.
    """
    if isinstance(kernel, SumKernel):
        each = zip(kernel.kernels, kernel.weights, strict=True)
        parts = [_kernel(graph, part, landmarks, weight * float(share)) for part, share in each]
        return parts[0] if len(parts) == 1 else graph.add("Sum", *parts)
    points = double(dense(landmarks))
    metric = kernel.metric if isinstance(kernel, NamedKernel) else None
    params = kernel.params if isinstance(kernel, NamedKernel) else {}
    gamma = params.get("gamma")
    gamma = 1.0 / points.shape[1] if gamma is None else float(gamma)
    if metric == "rbf":
        origin = points.mean(axis=0)
        # Distances by products lose digits far from the origin: rows and landmarks are moved there first.
        rows, points = graph.add("Sub", "X", graph.constant(origin)), points - origin
        inner = graph.add("MatMul", rows, graph.constant(points.T))
        own = graph.add("ReduceSumSquare", rows, axes=[1], keepdims=1)
        double_inner = graph.add("Mul", inner, graph.constant(2.0))
        squares = graph.add("Add", graph.add("Sub", own, double_inner), graph.constant(np.sum(points**2, axis=1)))
        positive = graph.add("Max", squares, graph.constant(0.0))
        return graph.times(graph.add("Exp", graph.add("Mul", positive, graph.constant(-gamma))), weight)
    if metric == "laplacian":
        rows = graph.add("Unsqueeze", "X", graph.whole([1]))
        apart = graph.add("Abs", graph.add("Sub", rows, graph.constant(points[None])))
        distance = graph.add("ReduceSum", apart, graph.whole([2]), keepdims=0)
        return graph.times(graph.add("Exp", graph.add("Mul", distance, graph.constant(-gamma))), weight)
    if metric == "linear":
        return graph.add("MatMul", "X", graph.constant(weight * points.T))
    if metric == "cosine":
        lengths = np.linalg.norm(points, axis=1)
        unit = weight * points / np.where(lengths > 0, lengths, 1.0)[:, None]
        own = graph.add("ReduceL2", "X", axes=[1], keepdims=1)
        return graph.add("Div", graph.add("MatMul", "X", graph.constant(unit.T)), own)
    if metric in ("poly", "polynomial", "sigmoid"):
        inner = graph.add("MatMul", "X", graph.constant(gamma * points.T))
        shifted = graph.add("Add", inner, graph.constant(float(params.get("coef0", 1))))
        if metric == "sigmoid":
            return graph.times(graph.add("Tanh", shifted), weight)
        return graph.times(graph.add("Pow", shifted, graph.constant(float(params.get("degree", 3)))), weight)
    raise InvalidValueError(
        "has no ONNX form here",
        parameter="kernel",
        value=metric or type(kernel).__name__,
        advice="Use 'rbf' or 'poly'.",
    )


class _Graph:
    """An ONNX graph as it is built: nodes in order, and constants."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add numbers."""
        return self._keep(np.asarray(value, dtype=self._dtype))

    def whole(self, value: list[int]) -> str:
        """Add whole numbers, such as those of axes."""
        return self._keep(np.asarray(value, dtype=np.int64))

    def _keep(self, value: Array) -> str:
        from onnx import numpy_helper

        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value) if value.ndim else value, name))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and give the name of its output."""
        from onnx import helper

        name = f"n{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def times(self, name: str, factor: float) -> str:
        """Multiply an output by a number, if that changes anything."""
        return name if factor == 1.0 else self.add("Mul", name, self.constant(factor))

    def finish(self, name: str) -> None:
        """Make an output the scores."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [name], ["scores"]))

    def model(self, n_features: int, n_components: int) -> Any:
        """Give the whole graph, checked."""
        from onnx import checker, helper

        kind = helper.np_dtype_to_tensor_dtype(self._dtype)
        given = helper.make_tensor_value_info("X", kind, [None, n_features])
        made = helper.make_tensor_value_info("scores", kind, [None, n_components])
        graph = helper.make_graph(self._nodes, "standout", [given], [made], self._constants)
        # Version 8 of the format goes with this set of operators.
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        model.producer_name = "standout"
        checker.check_model(model)
        return model
