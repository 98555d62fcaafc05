"""The one door for user input: what comes through is trusted inside, what does not is told why.

Every message has two parts: what is wrong (with the value and the limit), then what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_array

from standout._arrays import Float, Rows, is_sparse

PAPER_KERNELS = ("gaussian", "homogeneous_polynomial", "inhomogeneous_polynomial")
SOLVERS = ("auto", "dense", "root", "reduced", "lanczos", "lobpcg")


class Batches:
    """One dataset that arrives as an iterator of batches, each checked as it passes.

    Attributes
    ----------
    name : str
        What messages call the dataset.
    columns : list of str or None
        Column names of the first batch, once it has been read.
    """

    def __init__(self, batches: Iterator[Any], name: str, min_rows: int) -> None:
        self._batches = batches
        self._min_rows = min_rows
        self.name = name
        self.columns: list[str] | None = None

    def __iter__(self) -> Iterator[Rows]:
        width: int | None = None
        n_rows = 0
        for number, batch in enumerate(self._batches, start=1):
            name = f"batch {number} of {self.name}"
            rows = as_rows(batch, name, min_rows=0, finite=True)
            columns = column_names(batch)
            if width is None:
                width, self.columns = rows.shape[1], columns
            check_same_columns(rows.shape[1], columns, name, width, self.columns, "the first batch")
            n_rows += rows.shape[0]
            yield rows
        if n_rows < self._min_rows:
            raise ValueError(
                f"{self.name} gave {n_rows} sample(s) in batches, but the least is {self._min_rows}. "
                "An iterator can be read only once: pass a fresh one."
            )


def open_dataset(data: Any, name: str, *, min_rows: int = 2) -> Rows | Batches:
    """Check one dataset: an array, a frame or a sparse matrix as rows, an iterator as batches."""
    if isinstance(data, Batches):
        return data
    if isinstance(data, Iterator):
        return Batches(data, name, min_rows)
    return as_rows(data, name, min_rows=min_rows)


def as_rows(data: Any, name: str, *, min_rows: int = 2, finite: bool = False) -> Rows:
    """Check that the data are a table of real numbers, and give it as an array or a CSR matrix, uncopied if possible.

    Finiteness is looked at only if asked for: a NaN shows in the moments as well, where it costs no extra pass.
    """
    if sparse.issparse(data) and data.ndim == 2 and data.format != "csr":
        data = data.tocsr()
    try:
        rows = check_array(
            data,
            accept_sparse="csr",
            accept_large_sparse=True,
            dtype="numeric",
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=1,
        )
        if rows.dtype.kind in "mM":
            raise TypeError(f"dates and times ({rows.dtype}) are not numbers. Convert them to numbers first.")
        if rows.dtype.kind not in "biuf":
            rows = rows.astype(np.float64)
    except (ValueError, TypeError) as error:
        text = _text_columns(data)
        if text:
            raise ValueError(
                f"there is text in {_listed('column', text)} of {name}. Drop these columns or turn them into numbers."
            ) from None
        # scikit-learn's message over several lines as one, without the array that it may show.
        reason = re.sub(r"(array=)?\[.*\]\.?", "", " ".join(str(error).split()))
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} cannot be used: {reason}") from None
    if rows.shape[0] < min_rows:
        raise ValueError(
            f"too few rows in {name}: {rows.shape[0]} sample(s) (shape={rows.shape}), but the least is {min_rows}. "
            "Give more rows."
        )
    if rows.dtype.kind == "f" and rows.dtype.itemsize not in (4, 8):
        rows = rows.astype(np.float64)
    if finite and not _all_finite(rows):
        reject_non_finite(rows, name)
    return rows


def require_finite(datasets: Sequence[Any]) -> None:
    """Refuse NaN and infinity in datasets that are there as arrays; batches are checked as they pass."""
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Batches) and not _all_finite(dataset):
            reject_non_finite(dataset, f"background {number}" if number else "the target")


def reject_non_finite(rows: Rows, name: str) -> None:
    """Say where the first NaN or infinity stands."""
    bad_rows, bad_columns = _first_non_finite(rows)
    if bad_rows is None:
        raise ValueError(
            f"there are values too large to square in {name}: their variance is not a finite number. Rescale the data."
        )
    value = rows[bad_rows, bad_columns]
    shown = "NaN" if np.isnan(value) else "infinity"
    raise ValueError(
        f"there is NaN or infinity in {name}: the first is {shown} in row {bad_rows}, column {bad_columns}. "
        "Drop such rows or fill them in, in the target and in every background alike."
    )


def column_names(data: Any) -> list[str] | None:
    """Give the column names of a frame whose names are all strings, as scikit-learn counts them."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape"):
        return None
    names = list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_same_columns(
    width: int,
    columns: list[str] | None,
    name: str,
    expected: int,
    names: list[str] | None,
    reference: str,
    remedy: str = "Give every dataset the same columns in the same order.",
) -> None:
    """Check that a dataset has as many columns as the reference, and the same ones in the same order."""
    if columns is not None and names is not None and columns != names:
        missing = [column for column in names if column not in set(columns)]
        extra = [column for column in columns if column not in set(names)]
        counts = f"{name} has {width} features, but {reference} has {expected}" if width != expected else ""
        parts = [
            *([counts] if counts else []),
            *([f"{name} lacks {_listed('column', missing)}"] if missing else []),
            *([f"{name} has {_listed('column', extra)}, which {reference} has not"] if extra else []),
        ]
        if not parts:
            parts = [f"{name} has the columns of {reference} in another order"]
        raise ValueError(f"{'; '.join(parts)}. {remedy}")
    if width != expected:
        raise ValueError(f"{name} has {width} features, but {reference} has {expected}. {remedy}")


def as_backgrounds(background: Any, target: Any) -> list[Any]:
    """Give the backgrounds as a list, whatever form they came in.

    A list or tuple holds several backgrounds, unless its elements are plain rows of numbers: then it is one array.
    """
    if background is None:
        return []
    several = isinstance(background, list | tuple) and not (
        len(background) > 0 and all(_is_plain_row(element) for element in background)
    )
    backgrounds = list(background) if several else [background]
    if not backgrounds:
        raise ValueError("background is an empty list. Pass at least one dataset, or None for PCA of the target.")
    iterators = [data for data in (target, *backgrounds) if isinstance(data, Iterator)]
    if len({id(iterator) for iterator in iterators}) < len(iterators):
        raise ValueError(
            "the same iterator is given for two datasets, but it can be read only once. Pass a fresh one for each."
        )
    return backgrounds


def check_label_form(y: Any, n_rows: int, target_label: Any, background: Any) -> tuple[Any, Any]:
    """Check the labels that tell target from background; give them, and those of the backgrounds, sorted."""
    if background is not None:
        raise ValueError(
            f"both target_label={target_label!r} and a background are given. Set target_label=None to pass the "
            "background itself, or pass labels y alone."
        )
    if y is None:
        # scikit-learn's own wording, which its checks look for.
        raise ValueError(
            f"requires y to be passed, but the target y is None. With target_label={target_label!r}, "
            "fit needs one label per row."
        )
    labels = _as_labels(y, n_rows, "y")
    known = np.unique(labels).tolist()
    advice = "In cross-validation, use stratified folds."
    if np.ndim(target_label) != 0 or target_label not in known:
        raise ValueError(
            f"no row has the label target_label={target_label!r}; y has {_listed('label', known)}. "
            f"Choose one of these. {advice}"
        )
    others = [label for label in known if label != target_label]
    if not others:
        raise ValueError(
            f"every row has the label {target_label!r}. Rows with another label are the background. {advice}"
        )
    return labels, others


def check_known_labels(labels: list[Any], fitted: list[Any]) -> None:
    """Check that every background that was fitted has rows."""
    unknown = [label for label in labels if label not in fitted]
    if unknown:
        raise ValueError(
            f"the label {unknown[0]!r} was not there when the model was fitted. Give rows of the fitted labels only."
        )
    missing = [label for label in fitted if label not in labels]
    if missing:
        raise ValueError(
            f"no row has the background label {missing[0]!r}. Give rows of every fitted label, for example by "
            "stratified folds."
        )


def check_columns_of_batches(datasets: Sequence[Any], columns: Sequence[list[str] | None]) -> None:
    """Compare the column names of all datasets, now that batches have been read and theirs are known."""
    names = [
        data.columns if isinstance(data, Batches) else given for data, given in zip(datasets, columns, strict=True)
    ]
    known = [(number, found) for number, found in enumerate(names) if found is not None]
    for number, found in known[1:]:
        first, reference = known[0]
        of = f"background {first}" if first else "the target"
        check_same_columns(len(found), found, f"background {number}", len(reference), reference, of)


def check_fourth_powers(quartic: float, total_variance: float) -> None:
    """Refuse a scale at which fourth powers leave the range of floating-point numbers."""
    if total_variance > 0.0 and not np.finfo(np.float64).tiny < quartic < np.inf:
        raise ValueError(
            f"a background has a standard deviation of about {np.sqrt(total_variance):.1e} in all, and the fourth "
            "powers that shrinkage='auto' needs are out of range. Rescale the data, or give shrinkage as a number."
        )


def check_group_weight(weight: float, label: Any) -> None:
    """Refuse weights that leave a group without rows."""
    if weight == 0.0:
        raise ValueError(f"all rows with the label {label!r} have a sample_weight of zero. Give some a positive one.")


def check_n_scores(given: int, fitted: int) -> None:
    """Check that there is a score for each component."""
    if given != fitted:
        raise ValueError(
            f"there are {given} scores in a row, but the model has {fitted} components. Give one for each."
        )


def check_n_backgrounds(given: int, fitted: int) -> None:
    """Check that as many backgrounds are given as were fitted, or none."""
    if given not in (0, fitted):
        raise ValueError(f"score got {given} background(s), but {fitted} were fitted. Give as many, or None.")


def check_n_components(n_components: Any, n_features: int, n_directions: int) -> int:
    """Check the number of components against what the data can give."""
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer):
        raise TypeError(f"n_components={n_components!r} is not a whole number. Give a number of at least 1.")
    if n_components < 1:
        raise ValueError(f"n_components={n_components} is less than 1. Give a number of at least 1.")
    if n_components > n_features:
        raise ValueError(
            f"n_components={n_components} is larger than n_features={n_features}. Choose at most {n_features}."
        )
    if n_directions == 0:
        raise ValueError("no dataset varies: all rows of each are equal. Give rows that differ.")
    if n_components > n_directions:
        raise ValueError(
            f"n_components={n_components} is larger than {n_directions}, the number of directions that the centred "
            f"rows can span. Choose at most {n_directions}, or give more rows."
        )
    return int(n_components)


def check_weights(weights: Any, n_backgrounds: int) -> Float:
    """Check the weights of the backgrounds and scale them to sum 1; None means equal weights."""
    if weights is None:
        return np.full(n_backgrounds, 1.0 / max(n_backgrounds, 1))
    try:
        numbers = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"background_weights={weights!r} is not a list of numbers. Give one number per background, or None."
        ) from None
    if numbers.shape != (n_backgrounds,):
        raise ValueError(
            f"background_weights has shape {numbers.shape}, but the number of backgrounds is {n_backgrounds}. "
            "Give one number per background, or None for equal weights."
        )
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0):
        raise ValueError(
            f"background_weights={numbers.tolist()} has a negative or non-finite number. "
            "Give non-negative numbers; they are scaled to sum 1."
        )
    if not numbers.any():
        raise ValueError("background_weights are all zero. Give at least one background a positive weight.")
    # By the largest first: the sum of very large ones would be infinite.
    scaled: Float = numbers / numbers.max()
    return scaled / scaled.sum()


def check_shrinkage(shrinkage: Any) -> float | None:
    """Check the shrinkage: a number in [0, 1]; None comes back for "auto"."""
    if isinstance(shrinkage, str):
        if shrinkage != "auto":
            raise ValueError(f"shrinkage={shrinkage!r} is unknown. Use 'auto', None, or a number from 0 to 1.")
        return None
    if shrinkage is None:
        return 0.0
    if not _is_number(shrinkage):
        raise TypeError(f"shrinkage={shrinkage!r} is not a number. Use 'auto', None, or a number from 0 to 1.")
    share = float(shrinkage)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"shrinkage={share} is outside [0, 1]. Use 'auto', None, or a number from 0 to 1.")
    return share


def check_solver(solver: Any) -> str:
    """Check the name of a solver."""
    if solver not in SOLVERS:
        raise ValueError(f"solver={solver!r} is unknown. Use one of {', '.join(map(repr, SOLVERS))}.")
    return str(solver)


def check_kernel_name(kernel: Any) -> None:
    """Check the name of a kernel."""
    known = sorted({*PAIRWISE_KERNEL_FUNCTIONS, *PAPER_KERNELS, "precomputed"})
    if not isinstance(kernel, str) or kernel not in known:
        raise ValueError(f"kernel={kernel!r} is unknown. Use a callable, or one of {', '.join(map(repr, known))}.")


def check_bandwidth(bandwidth: Any) -> float:
    """Check the bandwidth of the Gaussian kernel."""
    remedy = "Give a positive number, for example kernel_params={'bandwidth': 5.0}."
    if not _is_number(bandwidth):
        raise TypeError(f"the kernel 'gaussian' has bandwidth={bandwidth!r}, which is not a number. {remedy}")
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise ValueError(f"the kernel 'gaussian' has bandwidth={bandwidth}, which is not positive. {remedy}")
    return float(bandwidth)


def check_kernel_numbers(gamma: Any, degree: Any, coef0: Any) -> None:
    """Check the numbers that scikit-learn's kernels take."""
    if gamma is not None and not (_is_number(gamma) and np.isfinite(gamma) and gamma > 0):
        raise ValueError(f"gamma={gamma!r} is not a positive number. Give one, or None for 1 / n_features.")
    if not (_is_number(degree) and np.isfinite(degree) and degree > 0):
        raise ValueError(f"degree={degree!r} is not a positive number. Give one.")
    if not (_is_number(coef0) and np.isfinite(coef0)):
        raise ValueError(f"coef0={coef0!r} is not a finite number. Give one.")


def check_epsilon(epsilon: Any) -> float | None:
    """Check the ridge of the kernel methods: a positive number; None comes back for "scaled"."""
    remedy = "Give a positive number, or 'scaled' for one that goes with the size of the kernel."
    if isinstance(epsilon, str):
        if epsilon != "scaled":
            raise ValueError(f"epsilon={epsilon!r} is unknown. {remedy}")
        return None
    if not _is_number(epsilon):
        raise TypeError(f"epsilon={epsilon!r} is not a number. {remedy}")
    if not (np.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon={epsilon} is not positive. {remedy}")
    return float(epsilon)


def check_tolerance(tol: Any) -> float:
    """Check the tolerance of a factorisation."""
    if not (_is_number(tol) and 0.0 < tol < 1.0):
        raise ValueError(f"tol={tol!r} is not a number between 0 and 1. Give a small one, for example 1e-10.")
    return float(tol)


def check_rank(rank: Any, n_rows: int | None = None) -> int | None:
    """Check the number of coordinates against the number of rows, where that is known."""
    if rank is None:
        return None
    if isinstance(rank, bool) or not isinstance(rank, int | np.integer):
        raise TypeError(f"rank={rank!r} is not a whole number. Give a number of at least 1, or None.")
    if rank < 1:
        raise ValueError(f"rank={rank} is less than 1. Give a number of at least 1, or None.")
    if n_rows is not None and rank > n_rows:
        raise ValueError(f"rank={rank} is larger than {n_rows}, the number of rows. Choose at most {n_rows}, or None.")
    return int(rank)


def check_approximation(approximation: Any) -> None:
    """Check the name of an approximation; anything that is not a name counts as landmarks."""
    known = ("auto", "exact", "pivoted", "fourier")
    if isinstance(approximation, str) and approximation not in known:
        raise ValueError(
            f"approximation={approximation!r} is unknown. Use one of {', '.join(map(repr, known))}, or an array of "
            "landmarks."
        )
    if approximation is None:
        raise TypeError("approximation=None has no meaning. Use 'auto', 'exact', 'pivoted', 'fourier', or landmarks.")


def check_fourier_kernel(kernel: Any) -> None:
    """Check that a kernel has random Fourier features."""
    if kernel not in ("rbf", "laplacian"):
        raise ValueError(
            "approximation='fourier' is for kernels of the difference of two rows: 'rbf', 'gaussian', 'laplacian'. "
            "Use approximation='pivoted' for other kernels."
        )


def check_precomputed(widths: list[int], n_rows: int, approximation: Any) -> None:
    """Check the shapes of a precomputed kernel: every row against all fitted rows."""
    if not isinstance(approximation, str) or approximation not in ("auto", "exact"):
        raise ValueError("a precomputed kernel is used as it is. Use approximation='auto' or 'exact'.")
    for width in widths:
        if width != n_rows:
            raise ValueError(
                f"the precomputed kernel has {width} columns, but there are {n_rows} rows in all datasets. Give the "
                "kernel of each row with all rows: the target's first, then those of each background."
            )


def check_kernel_matrix(matrix: Float, symmetric: bool) -> None:
    """Check that a kernel matrix is finite, and symmetric where that is not known already."""
    if not _all_finite(matrix):
        raise ValueError("the kernel has values that are not finite numbers. Rescale the data, or check the kernel.")
    if symmetric:
        return
    size, largest = len(matrix), max(float(np.max(matrix, initial=0.0)), -float(np.min(matrix, initial=0.0)))
    for start in range(0, size, 512):
        apart = np.abs(matrix[start : start + 512] - matrix[:, start : start + 512].T)
        if float(np.max(apart)) > 1e-8 * largest:
            row, column = np.unravel_index(int(np.argmax(apart)), apart.shape)
            raise ValueError(
                f"the kernel is not symmetric: entries ({start + row}, {column}) and ({column}, {start + row}) differ "
                f"by {np.max(apart):.3g}. Give a symmetric kernel, with the rows of all datasets in one order."
            )


def check_kernel_weights(weights: Any, n_kernels: int) -> Float | None:
    """Check the weights of several kernels; None comes back for "learn"."""
    if isinstance(weights, str):
        if weights != "learn":
            raise ValueError(f"kernel_weights={weights!r} is unknown. Use 'learn', None, or one number per kernel.")
        return None
    if weights is None:
        return np.full(n_kernels, 1.0 / n_kernels)
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (n_kernels,):
        raise ValueError(f"kernel_weights has shape {numbers.shape}, but there are {n_kernels} kernels. Give one each.")
    if not np.all(np.isfinite(numbers)) or np.any(numbers < 0) or numbers.sum() == 0:
        raise ValueError(f"kernel_weights={numbers.tolist()} must be non-negative, finite and not all zero.")
    return numbers


def check_kernel_list(kernels: Any) -> None:
    """Check a dictionary of kernels."""
    if len(kernels) == 0:
        raise ValueError("kernel is an empty list. Give at least one kernel.")
    for kernel in kernels:
        name = kernel[0] if isinstance(kernel, tuple) else kernel
        if isinstance(kernel, tuple) and not (len(kernel) == 2 and isinstance(kernel[1], dict)):
            raise TypeError(f"kernel {kernel!r} is not a pair of a name and a dict of parameters. Give such a pair.")
        if name == "precomputed":
            raise ValueError("a precomputed kernel cannot be one of several. Add the matrices up yourself.")


def reject_batches(datasets: Sequence[Any], approximation: Any) -> None:
    """Refuse iterators where the coordinates are chosen from the rows."""
    if any(isinstance(dataset, Batches) for dataset in datasets):
        raise TypeError(
            f"approximation={approximation!r} chooses its coordinates from the rows, but an iterator of batches can be "
            "read only once. Use approximation='fourier', or an array of landmarks."
        )


def check_formable(size: int, limit: int) -> None:
    """Refuse a singular problem whose roots would not fit in memory."""
    if size > limit:
        raise ValueError(
            f"the background covariance is singular, and {size} rows and columns are more than the {limit} up to which "
            "such a problem is solved. Use shrinkage, for example shrinkage='auto'."
        )


def check_sample_weight(sample_weight: Any, n_rows: int) -> Float:
    """Check the weights of rows; None means equal weights."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape}, but there are {n_rows} rows. Give one per row.")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or weights.sum() == 0:
        raise ValueError("sample_weight must be non-negative, finite and not all zero. Give such weights, or None.")
    return weights


def check_groups(labels: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Check a partition of rows, and give group numbers 0, 1, ... in place of its labels."""
    _, groups = np.unique(_as_labels(labels, n_rows, "labels"), return_inverse=True)
    return groups


def check_several_groups(n_groups: int) -> None:
    """Refuse a partition into one group where groups are to be told apart."""
    if n_groups < 2:
        raise ValueError("labels has 1 distinct value, but an error needs at least 2. Give rows of several groups.")


def check_spread(total: float, name: str) -> None:
    """Refuse data without any variance where variance is the measure."""
    if total == 0:
        raise ValueError(f"there is no variance in {name}: all rows are equal. Give rows that differ.")


def check_nonzero(lengths: Float, name: str) -> None:
    """Refuse directions that are all zero."""
    if not np.any(lengths):
        raise ValueError(f"there are only zeros in {name}, which span nothing. Give at least one nonzero row.")


def check_enough(wanted: int, available: int, what: str, stock: str, remedy: str) -> None:
    """Refuse to give more than there is."""
    if wanted > available:
        raise ValueError(f"{what} is {wanted}, but {stock} is {available}. {remedy}")


def check_different(values: Sequence[Any], name: str) -> None:
    """Refuse a choice in which a value stands twice."""
    if len(set(values)) < len(values):
        raise ValueError(f"{name}={tuple(values)} names the same one twice. Give different ones.")


def reject_iterator(data: Any, method: str) -> None:
    """Refuse an iterator where the rows are needed more than once."""
    if isinstance(data, Iterator):
        raise TypeError(
            f"{method} cannot take an iterator of batches, which can be read only once. "
            "Call fit with the iterator, then transform on each batch."
        )


def _as_labels(labels: Any, n_rows: int, name: str) -> npt.NDArray[Any]:
    """Check labels of rows: one each, none missing, all of one sort."""
    values = np.asarray(labels)
    if values.ndim != 1 or values.size != n_rows:
        raise ValueError(f"{name} has shape {values.shape}, but there are {n_rows} rows. Give one label per row.")
    given = list(labels)
    if any(value is None or not _equals_itself(value) for value in given):
        raise ValueError(f"{name} has missing values, but every row must belong to a group. Drop those rows.")
    if values.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in given):
        # NumPy would turn the numbers among them into strings.
        values = np.array(given, dtype=object)
    try:
        np.unique(values)
    except TypeError:
        raise TypeError(f"{name} mixes types that cannot be sorted. Give all strings or all integers.") from None
    return values


def _equals_itself(value: Any) -> bool:
    """Tell whether a value is neither NaN nor a missing value of a data frame."""
    try:
        return bool(value == value)
    except TypeError:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_plain_row(element: Any) -> bool:
    return not (isinstance(element, Iterator) or is_sparse(element) or hasattr(element, "columns")) and (
        np.ndim(element) == 1
    )


def _text_columns(data: Any) -> list[str]:
    """Names of a frame's columns that do not hold numbers."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape"):
        return []
    return [str(name) for name in columns if not _is_numeric(data[name])]


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column).astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True


def _all_finite(rows: Rows) -> bool:
    numbers = rows.data if is_sparse(rows) else rows
    # A finite sum needs finite terms, and takes no copy; the reverse fails only where the sum overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(numbers)) or np.isfinite(numbers).all())


def _first_non_finite(rows: Rows) -> tuple[Any, Any]:
    if is_sparse(rows):
        coo = rows.tocoo()
        bad = np.flatnonzero(~np.isfinite(coo.data))
        return (int(coo.row[bad[0]]), int(coo.col[bad[0]])) if bad.size else (None, None)
    for start in range(0, rows.shape[0], 4096):
        bad_cells = np.argwhere(~np.isfinite(rows[start : start + 4096]))
        if bad_cells.size:
            return start + int(bad_cells[0, 0]), int(bad_cells[0, 1])
    return None, None


def _listed(noun: str, names: Sequence[Any] | Iterable[Any], most: int = 5) -> str:
    """Name a few things, and count the rest."""
    listed = list(names)
    shown = ", ".join(repr(name) for name in listed[:most])
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return f"{noun}{'s' if len(listed) != 1 else ''} {shown}{more}"
