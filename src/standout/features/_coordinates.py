"""Coordinates of a kernel: exact ones from the whole kernel matrix, landmarks, and random Fourier features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from sklearn.kernel_approximation import RBFSampler

from standout._arrays import BLOCK_BYTES, Float, Rows, product, row_blocks, row_slice, stacked, sum_of_squares
from standout._messages import InvalidValueError, dataset_names, warn_user
from standout._xp import diagonal, is_foreign, largest, like, namespace, take
from standout.features._kernels import (
    SHIFT_INVARIANT,
    Kernel,
    Landmarks,
    NamedKernel,
    PrecomputedKernel,
    SumKernel,
    check_kernel_matrix,
    reject_indefinite,
)
from standout.features._maps import FeatureMap, FourierMap, IdentityMap, KernelRowMap, LandmarkMap, centre_columns
from standout.features._pivoted import pivoted_cholesky, random_pivots
from standout.sources import Dataset, open_dataset

# Three matrices of this size need 2.4 GB.
EXACT_ROWS = 10_000
# If the rank is above this share of the rows, the factor saves nothing compared with the kernel rows themselves.
NEARLY_FULL = 0.5
# Tolerance for kernels with values between 0 and 1 and a diagonal of 1.
BOUNDED_TOL = 1e-9
# Tolerance for landmarks that the user gives: only those that repeat others are left out.
GIVEN_TOL = 1e-12
# Landmarks are chosen among at most this many rows, drawn from all datasets. They show the leading directions of the
# kernel, and the choice takes little time compared with the pass over all rows.
CANDIDATES = 20_000


def choose_approximation(n_rows: int) -> str:
    """Should the kernel be used exactly, or through landmarks?

    ``"exact"`` up to 10,000 rows of all datasets together: the kernel matrix and the computations with it need up to
    2.4 GB of memory. ``"pivoted"`` for more rows: landmarks are chosen by randomly pivoted Cholesky, and the kernel
    matrix is never formed.

    Parameters
    ----------
    n_rows : int
        Number of rows of all datasets together.

    Returns
    -------
    {"exact", "pivoted"}

    Examples
    --------
    >>> from standout.features import choose_approximation
    >>> choose_approximation(5_000), choose_approximation(1_000_000)
    ('exact', 'pivoted')
    """
    return "exact" if n_rows <= EXACT_ROWS else "pivoted"


# --- exact coordinates ----------------------------------------------------------------------------------------------


def exact_coordinates(
    kernel: Kernel,
    datasets: Sequence[Rows],
    columns: npt.NDArray[np.intp],
    tol: float | None,
    rank: int | None,
    *,
    kernel_rows: bool = True,
) -> tuple[FeatureMap, list[Float], float]:
    """Which coordinates of all rows have exactly this kernel as their inner product?

    Of two ways the cheaper one is taken. A pivoted Cholesky factor of the kernel matrix finds its rank. If the rank is
    small, the rows of the factor are the coordinates. If it is nearly full, or the kernel is not positive semidefinite,
    the centred kernel rows are the coordinates.

    Parameters
    ----------
    kernel : Kernel
    datasets : sequence of rows
        The target, then the backgrounds.
    columns : ndarray of shape (n,)
        For a precomputed kernel, the columns of the datasets' rows, in their order.
    tol : float or None
        Relative tolerance of the factor. None means a default that depends on the kernel.
    rank : int or None
        Most coordinates, or None.
    kernel_rows : bool, default=True
        Whether the centred kernel rows may be the coordinates. Their inner products are not those of the kernel.

    Returns
    -------
    mapping : FeatureMap
    coordinates : list of ndarray
        Of each dataset's rows.
    residual : float
        Share of the kernel matrix's trace that the coordinates leave out.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import exact_coordinates, resolve_kernel
    >>> target, background = np.random.default_rng(0).normal(size=(2, 30, 2))
    >>> kernel = resolve_kernel("homogeneous_polynomial", degree=2)
    >>> mapping, coordinates, _ = exact_coordinates(kernel, [target, background], np.arange(60), 1e-10, None)
    >>> mapping.n_coordinates, [part.shape for part in coordinates]
    (3, [(30, 3), (30, 3)])
    """
    linear = isinstance(kernel, NamedKernel) and kernel.metric == "linear"
    if linear and rank is None and datasets[0].shape[1] < len(columns):
        return IdentityMap(datasets[0].shape[1]), list(datasets), 0.0
    if tol is None:
        # Values of other kernels can differ by any factor. All their directions above rounding are kept.
        tol = BOUNDED_TOL if _is_bounded(kernel) else len(columns) * float(np.finfo(np.float64).eps)
    rows: Landmarks = columns if isinstance(kernel, PrecomputedKernel) else stacked(datasets)
    matrix = _kernel_matrix(kernel, datasets, rows, len(columns))
    check_kernel_matrix(matrix, kernel.symmetric)
    sizes = tuple(dataset.shape[0] for dataset in datasets)

    def by_kernel_rows() -> tuple[FeatureMap, list[Float], float]:
        return KernelRowMap(kernel, rows, sizes), _split(centre_columns(matrix, sizes), sizes), 0.0

    few = int(NEARLY_FULL * len(columns)) if kernel_rows else len(columns)
    may_be_rows = kernel_rows and rank is None and kernel.semidefinite
    on_device = is_foreign(matrix)
    if may_be_rows and not on_device and _surely_nearly_full(matrix, few, tol):
        return by_kernel_rows()
    # A device stops early, so that the factor is incomplete: it cannot show whether the kernel is semidefinite.
    stops = may_be_rows if on_device else rank is None
    factor, pivots = pivoted_cholesky(matrix, tol, most=few if stops else None)
    indefinite = factor is not None and _is_indefinite(matrix, factor, tol)
    if not kernel_rows and (factor is None or indefinite):
        reject_indefinite("these rows", kernel_rows=False)
    if indefinite:
        warn_user(
            "the kernel is not positive semidefinite on these rows: it is not an inner product, and variances are "
            "those of the kernel rows, as the paper's equations allow",
            advice="Use another kernel if this is not what you want.",
        )
    if factor is None or indefinite or (rank is None and pivots.shape[0] > few):
        return by_kernel_rows()
    if rank is not None:
        factor, pivots = factor[:, :rank], pivots[:rank]
    xp = namespace(factor)
    trace = float(xp.sum(diagonal(matrix)))
    residual = 1.0 - sum_of_squares(factor) / trace if trace > 0.0 else 0.0
    mapping = LandmarkMap(kernel, take(rows, pivots), xp.tril(take(factor, pivots)))
    return mapping, _split(factor, sizes), max(residual, 0.0)


def _is_bounded(kernel: Kernel) -> bool:
    if isinstance(kernel, SumKernel):
        return all(_is_bounded(part) for part in kernel.kernels)
    return isinstance(kernel, NamedKernel) and kernel.metric in SHIFT_INVARIANT


def _kernel_matrix(kernel: Kernel, datasets: Sequence[Rows], rows: Landmarks, size: int) -> Float:
    """Give the kernel of all rows with all rows."""
    if is_foreign(rows):
        return kernel(rows, rows)
    matrix = np.empty((size, size))
    start = 0
    for dataset in datasets:
        # The size of a block is that of its kernel values, not of its rows.
        for block in row_blocks(dataset, n_bytes=max(BLOCK_BYTES * dataset.shape[1] // size, 1)):
            matrix[start : start + block.shape[0]] = kernel(block, rows)
            start += block.shape[0]
    return matrix


def _surely_nearly_full(matrix: Float, few: int, tol: float) -> bool:
    """Tell whether some of the rows have a rank of more than `few`, by a factorisation that is smaller than the whole.

    A still smaller factorisation comes first. It detects a matrix of low rank in little time.
    """
    order = np.random.default_rng(0).permutation(len(matrix))
    for size in (min(256, few + 1), few + 1):
        some = order[:size]
        _, pivots = pivoted_cholesky(matrix[np.ix_(some, some)], tol, most=0)
        if len(pivots) < size:
            return False
    return True


def _is_indefinite(matrix: Float, factor: Float, tol: float) -> bool:
    """Tell whether the factor misses more than is possible for a positive semidefinite matrix."""
    size = matrix.shape[0]
    probe = like(np.random.default_rng(0).choice([-1.0, 1.0], size=(size, 1)), matrix)
    missed = product(matrix, probe) - product(factor, product(factor.T, probe))
    # The entries of a semidefinite residual are bounded by its diagonal. A row sums n of them.
    scale = largest(abs(diagonal(matrix)))
    return bool(largest(abs(missed)) > size * (10.0 * tol + 1e-12) * max(scale, 1e-300))


def _split(rows: Float, sizes: tuple[int, ...]) -> list[Float]:
    ends = np.cumsum(sizes)
    return [row_slice(rows, end - size, end) for end, size in zip(ends.tolist(), sizes, strict=True)]


# --- landmarks ------------------------------------------------------------------------------------------------------


def given_landmarks(kernel: Kernel, landmarks: Rows) -> LandmarkMap:
    """Which coordinates do these landmarks give (Nyström)? Landmarks that repeat others are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import given_landmarks, resolve_kernel
    >>> mapping = given_landmarks(resolve_kernel("rbf"), np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]))
    >>> mapping.n_coordinates
    2
    """
    values = kernel(landmarks, landmarks)
    check_kernel_matrix(values, kernel.symmetric)
    factor, pivots = pivoted_cholesky(values, GIVEN_TOL)
    assert factor is not None
    if _is_indefinite(values, factor, GIVEN_TOL):
        reject_indefinite("the landmarks")
    return LandmarkMap(kernel, take(landmarks, pivots), namespace(factor).tril(take(factor, pivots)))


def chosen_landmarks(
    kernel: Kernel, datasets: Sequence[Dataset], rank: int, tol: float, rng: np.random.Generator
) -> LandmarkMap:
    """Which rows of these datasets are good landmarks? They are chosen by randomly pivoted Cholesky.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import chosen_landmarks, resolve_kernel
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 2))
    >>> chosen_landmarks(resolve_kernel("rbf"), [rows], 20, 1e-10, rng).landmarks.shape
    (20, 2)
    """
    names = dataset_names(len(datasets))
    sources = [open_dataset(data, name, min_rows=1) for data, name in zip(datasets, names, strict=True)]
    counts = [source.count_rows() for source in sources]
    share = min(1.0, max(CANDIDATES, 4 * rank) / sum(counts))
    rows = stacked(
        [
            source.rows() if share == 1.0 else source.sample(max(int(share * count), 1), rng)
            for source, count in zip(sources, counts, strict=True)
        ]
    )
    chosen, factor = random_pivots(kernel, rows, rank, rng, tol)
    return LandmarkMap(kernel, take(rows, chosen), factor)


# --- random Fourier features ----------------------------------------------------------------------------------------


def fourier_features(
    kernel: Kernel, n_features: int, rank: int, rng: np.random.Generator, some: Rows | None = None
) -> FourierMap:
    """Which random features approximate a Gaussian or Laplacian kernel (Rahimi and Recht, 2007)?

    The features are for rows of the library and on the device of `some`, or for NumPy arrays without it.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import fourier_features, resolve_kernel
    >>> mapping = fourier_features(resolve_kernel("rbf", gamma=0.5), 2, 100, np.random.default_rng(0))
    >>> mapping.transform(np.zeros((3, 2))).shape
    (3, 100)
    """
    if not isinstance(kernel, NamedKernel) or kernel.metric not in SHIFT_INVARIANT:
        raise InvalidValueError(
            "needs a kernel of the difference of two rows: {v.rbf}, {v.gaussian} or {v.laplacian}",
            parameter="approximation",
            value="fourier",
            advice="Use {p.approximation:pivoted} for other kernels.",
        )
    gamma = kernel.params.get("gamma") or 1.0 / n_features
    seed = int(rng.integers(2**31))
    if kernel.metric == "rbf":
        sampler = RBFSampler(gamma=gamma, n_components=rank, random_state=seed).fit(np.zeros((1, n_features)))
        frequencies, phases = sampler.random_weights_, sampler.random_offset_
    else:
        frequencies = gamma * rng.standard_cauchy((n_features, rank))
        phases = rng.uniform(0.0, 2.0 * np.pi, rank)
    return FourierMap(frequencies, phases) if some is None else FourierMap(like(frequencies, some), like(phases, some))
