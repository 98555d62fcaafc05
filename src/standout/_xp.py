"""Array libraries: NumPy, and PyTorch, CuPy and others that follow the array API standard.

``xp = namespace(array)`` is NumPy itself for NumPy arrays, and the library's array API namespace for *foreign* arrays.
Most code is then the same for both: ``xp.sqrt(a)``, ``xp.where(a > 0, a, 1.0)``, ``xp.sum(a, axis=0)``. Code for both
kinds of arrays uses only names that the array API and NumPy 1.25 have in common. The functions below are for other
cases: names that differ between libraries, functions that a library lacks, and functions that are faster in LAPACK.

Foreign arrays are worked on where they are, on their own device. Only `to_host` copies numbers to the host's memory.
This is the only module that names these libraries, and a library is imported only when one of its arrays is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

Array: TypeAlias = npt.NDArray[Any]
Float: TypeAlias = npt.NDArray[np.float64]

# Size of the blocks that a device converts or multiplies. Every call makes a device wait, so blocks are larger than
# on the host.
DEVICE_BLOCK_BYTES = 2**30
# Larger matrices on a device are split into halves before they are factorised.
FACTOR_SIZE = 256

_ON_HOST = (np.ndarray, np.generic, float, int, sparse.spmatrix, sparse.sparray)
# Caches for inner loops: whether a type is foreign, and its namespace.
_FOREIGN: dict[type, bool] = {}
_NAMESPACES: dict[type, Any] = {}

# --- libraries and devices ------------------------------------------------------------------------------------------


@cache
def _compat() -> ModuleType:
    """Return array-api-compat: the copy in scikit-learn 1.7 and newer, or the package itself."""
    try:
        return import_module("sklearn.externals.array_api_compat")
    except ImportError:
        return import_module("array_api_compat")


def is_foreign(array: object) -> bool:
    """Return whether a checked array is neither NumPy's nor SciPy's."""
    kind = type(array)
    if kind not in _FOREIGN:
        _FOREIGN[kind] = not issubclass(kind, _ON_HOST)
    return _FOREIGN[kind]


def looks_foreign(data: object) -> bool:
    """Return whether the user's data are an array of another library that is neither lazy nor sparse."""
    if isinstance(data, np.ndarray | np.generic) or sparse.issparse(data) or not hasattr(data, "shape"):
        return False
    compat = _compat()
    lazy_or_sparse = compat.is_dask_array(data) or compat.is_pydata_sparse_array(data)
    return bool(compat.is_array_api_obj(data)) and not lazy_or_sparse


def namespace(array: object) -> Any:
    """Return the functions for an array: NumPy, or the array API namespace of a foreign array's library."""
    if not is_foreign(array):
        return np
    if type(array) not in _NAMESPACES:
        _NAMESPACES[type(array)] = _compat().array_namespace(array)
    return _NAMESPACES[type(array)]


def library_named(name: str) -> Any:
    """Return the array API namespace of a library by the library's name."""
    compat = _compat().__name__
    return import_module(f"{compat}.{name}" if name in ("numpy", "torch", "cupy") else name)


def device(array: object) -> Any:
    """Return the device of a foreign array."""
    return _compat().device(array)


def is_on_host(array: object) -> bool:
    """Return whether a foreign array is in the host's memory, where NumPy can read it."""
    return "cpu" in str(device(array)).lower()


def place(array: object) -> tuple[str, str]:
    """Return the names of the library and the device of an array, for comparisons and for messages."""
    if not is_foreign(array):
        return "numpy", "cpu"
    return namespace(array).__name__.rsplit(".", 1)[-1], str(device(array))


def is_sparse_tensor(array: object) -> bool:
    """Return whether an array is a sparse PyTorch tensor."""
    return str(getattr(array, "layout", "torch.strided")) != "torch.strided"


def detached(array: Any) -> Any:
    """Return the array without PyTorch's record for gradients."""
    return array.detach() if getattr(array, "requires_grad", False) else array


def to_host(array: Any) -> Any:
    """Copy an array to the host, as a NumPy array. Meant for a few numbers only."""
    if not is_foreign(array):
        return array
    xp = namespace(array)
    host = xp.Device("CPU_DEVICE") if hasattr(xp, "Device") else "cpu"
    return np.asarray(_compat().to_device(detached(array), host))


def like(numbers: Any, reference: Array, kind: Any = np.float64) -> Array:
    """Copy numbers from the host to the library and device of a reference array, as float64 or `kind`.

    Foreign numbers, and numbers for a NumPy reference, are returned as they are.
    """
    if not is_foreign(reference) or (is_foreign(numbers) and not isinstance(numbers, list | tuple)):
        return numbers
    return namespace(reference).asarray(np.array(numbers, dtype=kind), device=device(reference))


def _as(reference: Array) -> dict[str, Any]:
    return {"dtype": namespace(reference).float64, "device": device(reference)} if is_foreign(reference) else {}


def eye(size: int, reference: Array) -> Array:
    """Return the identity matrix in the library and on the device of a reference."""
    return namespace(reference).eye(size, **_as(reference))


def zeros(shape: tuple[int, ...], reference: Array) -> Array:
    """Return zeros in the library and on the device of a reference; for NumPy with contiguous columns."""
    return namespace(reference).zeros(shape, **(_as(reference) or {"order": "F"}))


# --- entries, rows and columns --------------------------------------------------------------------------------------


def largest(numbers: Array) -> float:
    """Return the largest of some numbers, or 0 if none is positive."""
    return 0.0 if 0 in numbers.shape else max(float(namespace(numbers).max(numbers)), 0.0)


def concat(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Join arrays along an axis."""
    if is_foreign(arrays[0]):
        return namespace(arrays[0]).concat(list(arrays), axis=axis)
    return np.concatenate(arrays, axis=axis)


def take(array: Any, chosen: Any, axis: int = 0) -> Any:
    """Return rows (axis 0) or columns (axis 1) by numbers, by a mask, or by a slice.

    For a foreign array, numbers or mask may be on the host.
    """
    if not is_foreign(array) or isinstance(chosen, slice):
        # For rows of NumPy arrays, the method `take` needs half of the time of indexing. It accepts no masks.
        rows = axis == 0 and type(array) is np.ndarray and getattr(chosen, "dtype", None) == np.intp
        return array.take(chosen, axis=0) if rows else array[*(slice(None),) * axis, chosen, ...]
    if "bool" in str(chosen.dtype):
        chosen = namespace(chosen).nonzero(chosen)[0]
    return namespace(array).take(array, like(chosen, array, np.int64), axis=axis)


def largest_entries(matrix: Array) -> Array:
    """Return the signed entry of largest absolute value of each column; in a tie, the first one."""
    xp = namespace(matrix)
    rows = xp.argmax(abs(matrix), axis=0)
    if not is_foreign(matrix):
        return np.take_along_axis(matrix, rows[np.newaxis], axis=0)[0]
    numbers = xp.arange(matrix.shape[0], device=device(matrix))
    return xp.sum(xp.where(numbers[:, None] == rows[None, :], matrix, 0.0), axis=0)


def column_products(first: Array, second: Array) -> Array:
    """Return the inner product of each column of one matrix with the same column of another."""
    if is_foreign(first):
        return namespace(first).sum(first * second, axis=0)
    return np.einsum("ij,ij->j", first, second)


def column_norms(matrix: Array) -> Array:
    """Return the Euclidean length of each column."""
    return namespace(matrix).sqrt(column_products(matrix, matrix))


def diagonal(matrix: Array) -> Array:
    """Return the diagonal of a matrix, or the diagonals of a stack of matrices."""
    return namespace(matrix).linalg.diagonal(matrix) if is_foreign(matrix) else matrix.diagonal(axis1=-2, axis2=-1)


def nonnegative(numbers: Array) -> Array:
    """Return the numbers with zeros in place of negative ones, which come from rounding."""
    return namespace(numbers).clip(numbers, 0.0, None) if is_foreign(numbers) else np.maximum(numbers, 0.0)


def add_to_diagonal(matrix: Array, value: float | Array) -> Array:
    """Add one number, or one number for each entry, to the diagonal of a matrix, in place."""
    if is_foreign(matrix):
        matrix += value * eye(matrix.shape[0], matrix)
    else:
        matrix.flat[:: len(matrix) + 1] += value
    return matrix


def columns_as_rows(matrix: Array) -> Array:
    """Return the transpose. For a NumPy array it is a contiguous copy, which makes products with rows faster."""
    return matrix.T if is_foreign(matrix) else np.ascontiguousarray(matrix.T)


# --- factorisations -------------------------------------------------------------------------------------------------


def eigh(matrix: Array) -> tuple[Array, Array]:
    """Return all eigenvalues of a symmetric matrix, in ascending order, and the eigenvectors as columns."""
    return namespace(matrix).linalg.eigh(matrix) if is_foreign(matrix) else linalg.eigh(matrix, check_finite=False)


def leading_eigenvectors(matrix: Float, count: int) -> tuple[Float, Float]:
    """Return the largest eigenvalues of a symmetric matrix, in descending order, and the eigenvectors as columns."""
    if is_foreign(matrix):
        xp = namespace(matrix)
        values, vectors = xp.linalg.eigh(matrix)
        first = matrix.shape[0] - count
        return xp.flip(values[first:], axis=0), xp.flip(vectors[:, first:], axis=1)
    size = len(matrix)
    values, vectors, found, _, info = linalg.lapack.dsyevr(matrix, range="I", lower=1, il=size - count + 1, iu=size)
    if info or found < count:
        # If many eigenvalues are equal, LAPACK's driver for some eigenvalues can find fewer than requested. The driver
        # for all eigenvalues does not have this problem.
        values, vectors = linalg.eigh(matrix, lower=True, driver="evd", check_finite=False)
        values, vectors, found = values[size - count :], vectors[:, size - count :], count
    return values[found - 1 :: -1], vectors[:, ::-1]


def cholesky(matrix: Array, *, certain: bool = False) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix, or None if the matrix is not positive definite.

    A foreign array can be a stack of matrices. If it is `certain` that they are positive definite, the host does not
    wait for the device. A NumPy matrix is overwritten. Its factor has arbitrary numbers above the diagonal.
    """
    if not is_foreign(matrix):
        # LAPACK stores matrices by column. The transpose of a symmetric matrix is the same matrix, stored by column.
        potrf = linalg.lapack.spotrf if matrix.dtype == np.float32 else linalg.lapack.dpotrf
        factor, info = potrf(matrix.T, lower=1, overwrite_a=True, clean=False)
        return factor if info == 0 else None
    compat = _compat()
    if compat.is_torch_array(matrix):
        # `cholesky_ex` returns a failure as a number on the device. An exception would wait for the device twice.
        factor, info = import_module("torch").linalg.cholesky_ex(matrix)
        return factor if certain or not bool(info.any()) else None
    # By default CuPy returns a wrong factor without an error.
    raising: Any = import_module("cupyx").errstate(linalg="raise") if compat.is_cupy_array(matrix) else nullcontext()
    try:
        with raising:
            return namespace(matrix).linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None


def solve_triangular(factor: Array, right: Array, *, transposed: bool = False, overwrite: bool = False) -> Array:
    """Solve ``L X = right`` or, if `transposed`, ``Lᵀ X = right`` for a lower triangular L.

    A foreign L can be a stack of matrices.
    """
    if not factor.shape[0]:
        return right
    if not is_foreign(factor):
        # LAPACK reads a lower factor in C order as its transpose, an upper factor.
        lower = factor.flags.f_contiguous
        trtrs = linalg.lapack.strtrs if factor.dtype == np.float32 else linalg.lapack.dtrtrs
        options = {"lower": lower, "trans": transposed == lower, "overwrite_b": overwrite}
        solved, info = trtrs(factor if lower else factor.T, right, **options)
        if info:
            raise np.linalg.LinAlgError
        return solved
    compat = _compat()
    if compat.is_torch_array(factor):
        matrix = factor.mT if transposed else factor
        return import_module("torch").linalg.solve_triangular(matrix, right, upper=transposed)
    if compat.is_cupy_array(factor) and factor.ndim == 2:
        cupyx = import_module("cupyx.scipy.linalg")
        return cupyx.solve_triangular(factor, right, trans=1 if transposed else 0, lower=True)
    return namespace(factor).linalg.solve(factor.mT if transposed else factor, right)


def orthonormal(block: Array, rounds: int = 4) -> Array:
    """Return an orthonormal basis of the columns of each matrix of a stack.

    A device computes the QR decompositions of a stack one after the other. So the columns of foreign matrices are
    multiplied with inverse Cholesky factors of their inner products (Fukaya et al., 2020): first with a shift, so that
    a factor exists even if columns are nearly dependent, and then three times more. For columns that are nearly
    orthonormal, two rounds are enough. Random numbers of the size of rounding errors turn columns of zeros into others.
    """
    xp, (n, width) = namespace(block), block.shape[-2:]
    if not is_foreign(block):
        return np.linalg.qr(block)[0]
    unit = float(np.finfo(np.float64).eps)
    lengths = xp.sum(block * block, axis=-2, keepdims=True) ** 0.5
    noise = like(unit * np.random.default_rng(0).standard_normal((n, width)), block)
    block, small = block / xp.where(lengths > 0.0, lengths, 1.0) + noise, width * unit * eye(width, block)
    for shift in (11.0 * (n + width + 1) * small, *[small] * (rounds - 1)):
        factor = cholesky(block.mT @ block + shift, certain=True)
        if factor is not None:
            block = solve_triangular(factor, block.mT).mT
    return block


def inverse_cholesky(matrices: Array) -> Array | None:
    """Return the inverses of lower Cholesky factors of foreign matrices; None if a matrix is not positive definite.

    Each matrix is split into halves, because a device is faster at products than at factorisations and triangular
    systems.
    """
    size = matrices.shape[-1]
    if size <= FACTOR_SIZE:
        factors = cholesky(matrices)
        return None if factors is None else solve_triangular(factors, eye(size, factors))
    half = size // 2
    first = inverse_cholesky(matrices[..., :half, :half])
    if first is None:
        return None
    across = matrices[..., half:, :half] @ first.mT
    second = inverse_cholesky(matrices[..., half:, half:] - across @ across.mT)
    if second is None:
        return None
    above = namespace(matrices).zeros_like(matrices[..., :half, half:])
    below = concat([-(second @ (across @ first)), second], axis=-1)
    return concat([concat([first, above], axis=-1), below], axis=-2)


def whiten(matrix: Array, factor: Array) -> Array:
    """Return ``L⁻¹ A L⁻ᵀ`` for a symmetric A, which is overwritten, and a lower triangular L."""
    if is_foreign(matrix):
        return solve_triangular(factor, solve_triangular(factor, matrix).T)
    whitened, _ = linalg.lapack.dsygst(matrix.T, factor, lower=1, overwrite_a=True)
    return whitened.T


def largest_eigenvalue(matrix: Array) -> float:
    """Return the largest eigenvalue of a symmetric matrix. The matrix may be overwritten, which saves time in loops."""
    if is_foreign(matrix):
        return float(namespace(matrix).linalg.eigvalsh(matrix)[-1])
    size = len(matrix)
    found = linalg.lapack.dsyevr(matrix.T, compute_v=0, range="I", lower=1, il=size, iu=size, overwrite_a=True)
    return float(found[0][0]) if found[-1] == 0 else float("inf")
