"""Arrays of other libraries than NumPy: PyTorch, CuPy and whatever else follows the array API standard.

Nothing else in the package names one of these libraries. An array is *foreign* if it is neither NumPy's nor SciPy's:
it is worked on by the functions of its own library, where it lies, and never brought to the host unless `to_host`
says so.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

# What is converted or multiplied at a time on a device. A device is fast and waits for every call, so that blocks are
# larger than on the host.
DEVICE_BLOCK_BYTES = 512 * 2**20

_ON_HOST = (np.ndarray, np.generic, float, int)


@cache
def _compat() -> ModuleType:
    """Give array-api-compat: scikit-learn's copy of it, or the package itself."""
    try:
        return import_module("sklearn.externals.array_api_compat")
    except ImportError:
        return import_module("array_api_compat")


def is_foreign(array: Any) -> bool:
    """Tell whether an array inside the library is of another library than NumPy and SciPy."""
    return not (isinstance(array, _ON_HOST) or sparse.issparse(array))


def looks_foreign(data: Any) -> bool:
    """Tell whether what a user gave is an array of another library, and is there already: not lazy, not sparse."""
    if isinstance(data, np.ndarray) or sparse.issparse(data) or not hasattr(data, "shape"):
        return False
    compat = _compat()
    return bool(
        compat.is_array_api_obj(data)
        and not compat.is_numpy_array(data)
        and not compat.is_dask_array(data)
        and not compat.is_pydata_sparse_array(data)
    )


def namespace(array: Any) -> Any:
    """Give the functions of a foreign array's library, under the names of the array API standard."""
    return _compat().array_namespace(array)


def device(array: Any) -> Any:
    """Give the device a foreign array lies on."""
    return _compat().device(array)


def is_on_host(array: Any) -> bool:
    """Tell whether a foreign array lies in the host's memory, where NumPy can read it."""
    return "cpu" in str(device(array)).lower()


def place(array: Any) -> tuple[str, str]:
    """Name the library and the device of an array, for comparing and for messages."""
    if not is_foreign(array):
        return "numpy", "cpu"
    return namespace(array).__name__.rsplit(".", 1)[-1], str(device(array))


def library_named(name: str) -> Any:
    """Give the functions of a library by its name."""
    compat = _compat().__name__
    return import_module(f"{compat}.{name}" if name in ("torch", "cupy") else name)


def is_sparse_tensor(array: Any) -> bool:
    """Tell whether an array is one of PyTorch's that stores some of its numbers only."""
    return str(getattr(array, "layout", "torch.strided")) != "torch.strided"


def detached(array: Any) -> Any:
    """Give the array without the record that PyTorch keeps for gradients."""
    return array.detach() if getattr(array, "requires_grad", False) else array


def like(numbers: Any, reference: Any) -> Any:
    """Give the host's numbers as float64 in the library and on the device of a reference; what is there stays."""
    if not is_foreign(reference) or (is_foreign(numbers) and not isinstance(numbers, list | tuple)):
        return numbers
    xp = namespace(reference)
    return xp.asarray(np.array(numbers, dtype=np.float64), device=device(reference))


def indices_like(indices: Any, reference: Any) -> Any:
    """Give the host's indices in the library and on the device of a reference; what is there stays."""
    if is_foreign(indices):
        return indices
    return namespace(reference).asarray(np.array(indices, dtype=np.int64), device=device(reference))


def to_host(array: Any) -> Any:
    """Bring a few numbers to the host, as a NumPy array."""
    if not is_foreign(array):
        return array
    compat = _compat()
    if compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    if compat.is_cupy_array(array):
        return array.get()
    xp = namespace(array)
    return np.asarray(compat.to_device(array, xp.Device("CPU_DEVICE")) if hasattr(xp, "Device") else array)


def eye(size: int, reference: Any) -> Any:
    """Give the identity matrix in the library and on the device of a reference."""
    xp = namespace(reference)
    return xp.eye(size, dtype=xp.float64, device=device(reference))


def zeros(shape: tuple[int, ...], reference: Any) -> Any:
    """Give zeros in the library and on the device of a reference."""
    xp = namespace(reference)
    return xp.zeros(shape, dtype=xp.float64, device=device(reference))


def cholesky(matrix: Any) -> Any | None:
    """Give the lower Cholesky factor, or None where there is none."""
    compat = _compat()
    if compat.is_torch_array(matrix):
        # It says so in a number on the device in place of an exception that would wait for it twice.
        factor, info = import_module("torch").linalg.cholesky_ex(matrix)
        return factor if int(info) == 0 else None
    raising: Any = nullcontext()
    if compat.is_cupy_array(matrix):
        # Without this CuPy gives a factor that is none.
        raising = import_module("cupyx").errstate(linalg="raise")
    try:
        with raising:
            return namespace(matrix).linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return None


def solve_triangular(factor: Any, right: Any, *, transposed: bool = False) -> Any:
    """Solve ``L X = right``, or ``Lᵀ X = right``, for a lower triangular L."""
    compat = _compat()
    if compat.is_torch_array(factor):
        matrix = factor.T if transposed else factor
        return import_module("torch").linalg.solve_triangular(matrix, right, upper=transposed)
    if compat.is_cupy_array(factor):
        linalg = import_module("cupyx.scipy.linalg")
        return linalg.solve_triangular(factor, right, trans=1 if transposed else 0, lower=True)
    return namespace(factor).linalg.solve(factor.T if transposed else factor, right)
