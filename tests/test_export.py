"""ONNX graphs give the scores of the model, in onnxruntime."""

import numpy as np
import pytest

from standout import (
    ContrastivePCA,
    DiscriminativePCA,
    KernelContrastivePCA,
    KernelDiscriminativePCA,
    make_pipeline,
)
from standout.export import to_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

LANDMARKS = np.random.default_rng(3).normal(size=(20, 5))
MODELS = {
    "dPCA": DiscriminativePCA(2),
    "cPCA": ContrastivePCA(2, alpha=1.5),
    "rbf, exact": KernelDiscriminativePCA(2, gamma=0.1),
    "rbf, landmarks": KernelDiscriminativePCA(2, gamma=0.1, approximation=LANDMARKS),
    "rbf, pivoted": KernelDiscriminativePCA(2, gamma=0.1, approximation="pivoted", rank=30),
    "rbf, Fourier": KernelDiscriminativePCA(2, gamma=0.1, approximation="fourier", rank=50),
    "gaussian": KernelDiscriminativePCA(2, kernel="gaussian", approximation=LANDMARKS),
    "laplacian": KernelDiscriminativePCA(2, kernel="laplacian", gamma=0.1, approximation=LANDMARKS),
    "poly": KernelDiscriminativePCA(2, kernel="poly", degree=2, approximation=LANDMARKS),
    "homogeneous": KernelDiscriminativePCA(2, kernel="homogeneous_polynomial", degree=2),
    "cosine": KernelDiscriminativePCA(2, kernel="cosine", approximation=LANDMARKS),
    "linear": KernelDiscriminativePCA(2, kernel="linear"),
    "sum": KernelDiscriminativePCA(
        2, kernel=["rbf", "linear"], gamma=0.1, kernel_weights=[0.7, 0.3], approximation=LANDMARKS
    ),
    "contrastive": KernelContrastivePCA(2, gamma=0.1, alpha=1.5),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-10)])
def test_a_runtime_gives_the_scores_of_the_model(name, dtype, tolerance, rng):
    target, background = rng.normal(size=(80, 5)) * [3, 1, 1, 1, 2] + 4.0, rng.normal(size=(70, 5)) + 4.0
    model = MODELS[name].fit(target, background=background)
    rows = rng.normal(size=(33, 5)).astype(dtype) + dtype(4.0)
    session = onnxruntime.InferenceSession(to_onnx(model, dtype=dtype).SerializeToString())
    (found,) = session.run(None, {"X": rows})
    expected = model.transform(rows.astype(np.float64))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size_of_terms(model, rows, expected))


def size_of_terms(model, rows, scores):
    """The size of what is added up to a score: kernel values times weights may cancel each other."""
    mapping = getattr(model, "feature_map_", None)
    if not hasattr(mapping, "landmarks"):
        return np.abs(scores).max()
    filters = model.components_.T
    weights = mapping.dual_filters(filters) if hasattr(mapping, "factor") else filters
    values = mapping.kernel(rows.astype(np.float64), mapping.landmarks)
    return max(np.abs(scores).max(), (np.abs(values) @ np.abs(weights)).max())


def test_what_has_no_graph_is_refused(rng):
    target, background = np.abs(rng.normal(size=(2, 30, 4)))
    with pytest.raises(TypeError, match=r"BackgroundPipeline has no ONNX form.*skl2onnx"):
        to_onnx(make_pipeline(DiscriminativePCA(1)).fit(target, background=background))
    with pytest.raises(ValueError, match="kernel='chi2' has no ONNX form here"):
        to_onnx(KernelDiscriminativePCA(1, kernel="chi2").fit(target, background=background))
    with pytest.raises(ValueError, match="dtype=.* is no type of numbers"):
        to_onnx(DiscriminativePCA(1).fit(target, background=background), dtype=np.float16)
