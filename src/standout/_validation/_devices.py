"""Arrays of other libraries: whether they may come in, and that all of a fit are of one library and on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import get_config

from standout._arrays import Rows
from standout._xp import (
    detached,
    device,
    is_on_host,
    is_sparse_tensor,
    library_named,
    looks_foreign,
    namespace,
    place,
)


class MixedArraysError(TypeError, ValueError):
    """Arrays of different libraries or devices: a wrong type to us, a wrong value to scikit-learn's checks."""


def dispatches(data: Any) -> bool:
    """Tell whether the data are an array of another library that is to be worked on as such.

    That is so where scikit-learn's dispatch is switched on. Elsewhere such an array is converted to NumPy's, if it lies
    in the host's memory, and refused if it does not.
    """
    if not looks_foreign(data):
        return False
    if is_sparse_tensor(data):
        raise TypeError(
            f"a sparse tensor was given ({data.layout}), which has no products here. Make it dense with to_dense(), or "
            "give a sparse matrix of SciPy."
        )
    if get_config()["array_api_dispatch"]:
        return True
    if not is_on_host(data):
        library, where = namespace(data).__name__.rsplit(".", 1)[-1], device(data)
        raise TypeError(
            f"an array of {library} on the device {where} was given, which is not copied to the host unasked. Switch "
            "on sklearn.set_config(array_api_dispatch=True), with SCIPY_ARRAY_API=1 in the environment, to work on the "
            "device; or copy the array to the host yourself."
        )
    return False


def as_foreign_rows(data: Any, name: str, min_rows: int) -> Rows:
    """Check that an array of another library is a table of real numbers, and give it where it lies."""
    xp = namespace(data)
    rows = detached(data)
    if rows.ndim != 2:
        raise ValueError(f"{name} cannot be used: Expected 2D array, got {rows.ndim}D array instead. Reshape it.")
    if not xp.isdtype(rows.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"{name} cannot be used: Complex data not supported ({rows.dtype}). Give real numbers.")
    if rows.shape[1] < 1:
        raise ValueError(f"{name} cannot be used: Found array with 0 feature(s) (shape={tuple(rows.shape)}).")
    if rows.shape[0] < min_rows:
        raise ValueError(
            f"too few rows in {name}: {rows.shape[0]} sample(s) (shape={tuple(rows.shape)}), but the least is "
            f"{min_rows}. Give more rows."
        )
    known = (xp.float32, xp.float64)
    if not xp.isdtype(rows.dtype, "integral") and rows.dtype not in known:
        try:
            rows = xp.astype(rows, xp.float64)
        except (TypeError, RuntimeError) as error:
            raise TypeError(
                f"{name} lies on {device(data)}, which has no double precision: {error}. Use another device."
            ) from None
    return rows


def check_one_place(arrays: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse datasets of several libraries or devices. What is not known yet, None, is passed over."""
    known = [(name, place(array)) for name, array in zip(names, arrays, strict=True) if array is not None]
    for name, (library, where) in known[1:]:
        first, reference = known[0]
        if (library, where) != reference:
            raise MixedArraysError(
                f"{first} is of {reference[0]} on {reference[1]}, but {name} is of {library} on {where}. Give all "
                "datasets as arrays of one library, on one device."
            )


def check_fitted_place(array: Any, fitted: Any, estimator: str, method: str) -> None:
    """Refuse data of another library or device than those of the fit."""
    given, own = place(array), place(fitted)
    if given != own:
        # The first sentence is scikit-learn's own, which its checks look for.
        raise MixedArraysError(
            f"Inputs passed to {estimator}.{method}() must use the same namespace and the same device as those passed "
            f"to fit(). The fit was of {own[0]} on {own[1]}, the data are of {given[0]} on {given[1]}. Give arrays "
            "like those of the fit (with sklearn.set_config(array_api_dispatch=True), if they are not NumPy's), or "
            "take to_numpy() of the fitted model."
        )


def reject_on_device(array: Any, what: str, remedy: str) -> None:
    """Refuse what is done on NumPy arrays only, if the array is of another library."""
    if looks_foreign(array):
        library, where = place(array)
        raise TypeError(f"{what} is for NumPy arrays only, but the data are of {library} on {where}. {remedy}")


def check_host_array(array: Any) -> None:
    """Refuse an array that lies on a device already where one of the host is to be sent there."""
    if not is_on_host(array):
        library, where = place(array)
        raise TypeError(f"the data are of {library} on {where} already. Give them to fit as they are.")


def check_device(library: Any, device: Any) -> tuple[Any, Any]:
    """Check an array library and a device of it: its functions, and an empty array that lies there."""
    if not isinstance(library, str):
        raise TypeError(f"library={library!r} is not a name. Give one, for example 'torch' or 'cupy'.")
    if library == "numpy":
        return np, np.zeros((0, 1))
    try:
        xp = library_named(library)
    except ImportError as error:
        raise ImportError(f"library={library!r} cannot be imported: {error}. Install it, or use another.") from None
    try:
        return xp, xp.asarray(np.zeros((0, 1)), device=device)
    except Exception as error:
        # Every library has exceptions of its own for this.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"device={device!r} cannot be used by {library}: {reason}. Give a device that it has."
        ) from None
