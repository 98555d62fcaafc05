"""One form for all rows: float32 or float64 arrays, CSR arrays of SciPy, or arrays of another library.

Every other module trusts this form. Whole numbers that a double would round are refused here, in every kind of input.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config

from standout._arrays import Array, Rows, all_finite, is_sparse, row_blocks
from standout._messages import InvalidTypeError, InvalidValueError, listed
from standout._xp import detached, device, is_foreign, is_on_host, is_sparse_tensor, looks_foreign, namespace, place

# Every whole number up to this one is a double.
LARGEST_INTEGER = 2**53
A_TABLE = "Give a table of real numbers, one row per sample."
# Objects that users have in their hands and that are not tables, by the name of their type.
NO_TABLES = {
    "str": "Open the file: standout.scan(path) reads it in batches, standout.read_table(path) at once.",
    "AnnData": "Use standout.tl.dpca(adata, groupby, target), or give adata.X.",
    "LazyFrame": "Call its collect() first, or write it to a file and open that with standout.scan.",
    "BaseEpochs": "Use standout.mne.Contrast, or give a table with a row per sample and a column per channel.",
}
NO_TABLES |= dict.fromkeys(("PurePath", "bytes"), NO_TABLES["str"])
NO_TABLES |= dict.fromkeys(("BaseRaw", "Evoked"), NO_TABLES["BaseEpochs"])


def as_rows(data: Any, name: str, *, keys: list[Any] | None = None, finite: bool = True, min_rows: int = 1) -> Rows:
    """Return data of any kind in the one form, without a copy if possible, and refuse all that is not a table.

    `keys` are the column names of a frame, for messages.
    """
    if type(data) is np.ndarray and data.dtype.char in "fd" and data.dtype.isnative:
        rows = data
    else:
        rows = _converted(data, name, keys)
    if rows.ndim != 2:
        raise InvalidValueError(
            f"{name} cannot be used: Expected 2D array, got {'scalar' if rows.ndim == 0 else f'{rows.ndim}D'} array "
            "instead",
            advice="Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
            "array.reshape(1, -1) if it contains a single sample.",
        )
    for axis, least, noun in ((1, 1, "feature"), (0, min_rows, "sample")):
        if rows.shape[axis] < least:
            # scikit-learn's wording, which its checks look for.
            found = f"Found array with {rows.shape[axis]} {noun}(s) (shape={tuple(rows.shape)})"
            raise InvalidValueError(f"{name} cannot be used: {found} while a minimum of {least} is required")
    if finite and not all_finite(rows):
        reject_not_finite(rows, name, keys)
    return rows


def reject_not_finite(rows: Rows, name: str, keys: list[Any] | None = None, start: int = 0) -> NoReturn:
    """Raise the error that says where the first NaN or infinity is."""
    if is_sparse(rows):
        coo = rows.tocoo()
        cell = int(np.flatnonzero(~np.isfinite(coo.data))[0])
        row, column, value = int(coo.row[cell]), int(coo.col[cell]), float(coo.data[cell])
    else:
        row = 0
        for block in row_blocks(rows):
            xp = namespace(block)
            bad = xp.any(~xp.isfinite(block), axis=1)
            if bool(xp.any(bad)):
                row += int(xp.argmax(xp.astype(bad, xp.uint8) if is_foreign(bad) else bad))
                break
            row += block.shape[0]
        column = next(place for place in range(rows.shape[1]) if not np.isfinite(float(rows[row, place])))
        value = float(rows[row, column])
    where = f"row {start + row}, column {column if keys is None else repr(keys[column])}"
    raise InvalidValueError(
        f"there is NaN or infinity in {name}: the first is {value} in {where}",
        advice="Drop such rows or fill them in, in the target and in every background.",
    )


def keys_of(data: Any) -> list[Any] | None:
    """Return the column names of a frame of any library, whatever their type; None for arrays."""
    if type(data) is np.ndarray:
        return None
    library = type(data).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(data, "schema"):
        return list(data.schema.names)
    if library == "xarray" and hasattr(data, "dims") and len(data.dims) == 2:
        return data.coords[data.dims[1]].values.tolist() if data.dims[1] in data.coords else None
    columns = getattr(data, "columns", None)
    return None if columns is None or not hasattr(data, "shape") else list(columns)


def column_names(keys: list[Any] | None, name: str) -> tuple[str, ...] | None:
    """Return the names of columns if they are strings; names of several types are refused."""
    kinds = {isinstance(key, str) for key in keys or ()}
    if len(kinds) > 1:
        raise InvalidTypeError(
            f"Feature names are only supported if all input features have string names, but {name} has both strings "
            "and other names",
            advice="Use strings for all: frame.columns = frame.columns.astype(str).",
        )
    return tuple(keys) if keys and kinds == {True} else None


def is_dispatched(data: Any) -> bool:
    """Tell whether the data are an array of another library that is worked on by this library."""
    if not looks_foreign(data):
        return False
    if is_sparse_tensor(data):
        advice = "Make it dense with to_dense(), or give a sparse array of SciPy."
        raise InvalidTypeError(f"a sparse tensor was given ({data.layout}), which cannot be used", advice=advice)
    if get_config()["array_api_dispatch"]:
        return True
    if not is_on_host(data):
        library, where = place(data)
        raise InvalidTypeError(
            f"an array of {library} on the device {where} was given, and is not copied to the host without being asked",
            advice="Switch on sklearn.set_config(array_api_dispatch=True), with SCIPY_ARRAY_API=1 in the environment, "
            "to work on the device; or copy the array to the host yourself.",
        )
    return False


def _converted(data: Any, name: str, keys: list[Any] | None) -> Rows:
    """Convert data that are not in the one form yet."""
    kinds = {kind.__name__ for kind in type(data).__mro__}
    for kind in NO_TABLES.keys() & kinds:
        raise InvalidTypeError(f"{name} is a {type(data).__name__}, which is not a table", advice=NO_TABLES[kind])
    if is_sparse(data):
        return _sparse_rows(data, name)
    if is_dispatched(data):
        return _foreign_rows(detached(data), name)
    if keys is not None and (hasattr(data, "dtypes") or hasattr(data, "schema")):
        return _frame_rows(data, keys, name)
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        first = tuple(int(place) for place in np.argwhere(np.ma.getmaskarray(data))[0])
        advice = "Drop such rows or fill the entries in, in the target and in every background."
        raise InvalidValueError(f"there are masked entries in {name}: the first is at {first}", advice=advice)
    try:
        return floats(np.asarray(data))
    except (ValueError, TypeError, OverflowError) as error:
        raise _cannot_be_used(name, error) from None


def _cannot_be_used(name: str, error: Exception) -> InvalidTypeError | InvalidValueError:
    kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
    reason = " ".join(str(error).split())[:200].rstrip(". ")
    return kind(f"{name} cannot be used: {reason}", advice=A_TABLE)


def floats(values: npt.NDArray[Any]) -> Array:
    """Return an array in float32 or float64; raise ValueError or TypeError with the reason if it has no real numbers."""
    kind = values.dtype.kind
    if kind == "f":
        same = values.dtype.itemsize in (4, 8)
        return values.astype(values.dtype.newbyteorder("=") if same else np.float64, copy=False)
    if kind in "iu":
        reject_rounded(values)
    elif kind == "O":
        return _from_objects(values)
    elif kind in "mM":
        raise TypeError(f"dates and times ({values.dtype}) are not numbers")
    elif kind == "c":
        raise ValueError("Complex data not supported")
    elif kind != "b":
        text = values.ravel()[:1].tolist()
        raise ValueError(f"could not convert string to float: {text[0] if text else ''!r}")
    return values.astype(np.float64)


def reject_rounded(values: npt.NDArray[Any]) -> None:
    """Refuse whole numbers that a double would round."""
    if (
        values.dtype.itemsize < 8
        or not values.size
        or -LARGEST_INTEGER <= values.min() <= values.max() <= LARGEST_INTEGER
    ):
        return
    doubles = values.astype(np.float64)
    large = np.abs(doubles) >= LARGEST_INTEGER
    for value, double in zip(values[large].tolist(), doubles[large].tolist(), strict=True):
        _reject_if_rounded(value, double)


def _reject_if_rounded(value: Any, double: float) -> None:
    if abs(double) >= LARGEST_INTEGER and value != double:
        raise ValueError(
            f"the whole number {value} is beyond 2**53, and double precision would round it. Subtract a common number, "
            "or drop such columns: they may be identifiers"
        )


def _from_objects(values: npt.NDArray[Any]) -> Array:
    """Convert Python objects that are numbers; missing ones of any library become NaN."""
    numbers = np.empty(values.size)
    for position, value in enumerate(values.ravel().tolist()):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            numbers[position] = np.nan
            continue
        if isinstance(value, str | bytes):
            raise ValueError(f"could not convert string to float: {value[:60]!r}")
        if isinstance(value, complex):
            raise ValueError("Complex data not supported")
        numbers[position] = double = float(value)
        _reject_if_rounded(value, double)
    return numbers.reshape(values.shape)


def _sparse_rows(data: Any, name: str) -> Rows:
    try:
        rows = sparse.csr_array(data) if data.ndim == 2 else data
        numbers = floats(rows.data)
    except (ValueError, TypeError) as error:
        raise _cannot_be_used(name, error) from None
    if rows.ndim == 2 and numbers is not rows.data:
        rows = sparse.csr_array((numbers, rows.indices, rows.indptr), shape=rows.shape)
    if rows.ndim == 2 and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _foreign_rows(rows: Any, name: str) -> Rows:
    """Check an array of another library; it stays where it is."""
    xp = namespace(rows)
    if not xp.isdtype(rows.dtype, ("bool", "integral", "real floating")):
        raise InvalidValueError(f"{name} cannot be used: Complex data not supported ({rows.dtype})", advice=A_TABLE)
    if rows.dtype in (xp.float32, xp.float64):
        return rows
    if xp.isdtype(rows.dtype, "integral") and 0 not in rows.shape:
        for end in (int(xp.min(rows)), int(xp.max(rows))):
            try:
                _reject_if_rounded(end, float(end))
            except ValueError as error:
                raise _cannot_be_used(name, error) from None
    try:
        return xp.astype(rows, xp.float64)
    except (TypeError, RuntimeError) as error:
        problem = f"{name} lies on {device(rows)}, which has no double precision: {error}"
        raise InvalidTypeError(problem, advice="Use another device.") from None


# --- frames -----------------------------------------------------------------------------------------------------------


def _frame_rows(data: Any, keys: list[Any], name: str) -> Array:
    """Convert a frame of pandas, polars or Arrow, and name all columns that have no numbers."""
    dtypes = set(data.dtypes) if hasattr(data, "iloc") else set()
    if len(dtypes) == 1 and getattr(next(iter(dtypes)), "kind", "O") in "fbiu" and isinstance(min(dtypes), np.dtype):
        return floats_of(data.to_numpy(), name)
    if hasattr(data, "iloc"):
        columns = [data.iloc[:, place] for place in range(len(keys))]
    else:
        columns = data.get_columns() if hasattr(data, "get_columns") else list(data.columns)
    found: list[Array] = []
    wrong: dict[str, list[Any]] = {}
    for key, column in zip(keys, columns, strict=True):
        try:
            found.append(column_numbers(column))
        except (ValueError, TypeError) as error:
            if "beyond 2**53" in str(error):
                raise _cannot_be_used(f"column {key!r} of {name}", error) from None
            wrong.setdefault(str(error).partition(":")[0], []).append(key)
    for reason, names in wrong.items():
        raise InvalidValueError(
            f"{name} cannot be used: {reason} in {listed('column', names)}",
            advice="Drop these columns or turn them into numbers.",
        )
    rows = np.empty((data.shape[0], len(keys)), np.result_type(np.float32, *(part.dtype for part in found)), order="F")
    for place_, part in enumerate(found):
        rows[:, place_] = part
    return rows


def floats_of(values: npt.NDArray[Any], name: str) -> Array:
    """Return an array in float32 or float64, or raise an error that names the dataset."""
    try:
        return floats(values)
    except (ValueError, TypeError) as error:
        raise _cannot_be_used(name, error) from None


def column_numbers(column: Any) -> Array:
    """Convert one column of a frame of pandas, polars or Arrow; missing values become NaN."""
    if type(column).__module__.startswith("pyarrow"):
        return _arrow_numbers(column)
    dtype = column.dtype
    if getattr(dtype, "kind", "") in ("m", "M") or getattr(dtype, "is_temporal", bool)():
        raise ValueError("found dates or times")
    if hasattr(dtype, "is_integer"):  # polars
        if dtype.is_integer():
            reject_rounded(column.drop_nulls().to_numpy())
        elif not (dtype.is_numeric() or str(dtype) in ("Boolean", "Null")):
            raise ValueError("found text" if str(dtype) in ("String", "Categorical") else f"found values of {dtype}")
        return np.asarray((column if str(dtype) == "Float32" else column.cast(float)).to_numpy(), dtype=None)
    if isinstance(dtype, np.dtype):
        values = column.to_numpy()
        if dtype.kind == "O" and any(isinstance(value, str) for value in values[:1000].tolist()):
            raise ValueError("found text")
        return floats(values)
    if getattr(dtype, "kind", "O") in "biuf":  # nullable types of pandas
        if dtype.kind in "iu":
            reject_rounded(column.dropna().to_numpy(dtype=f"{dtype.kind}8"))
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    values = np.asarray(column)
    if values.dtype.kind in "OU" and any(isinstance(value, str) for value in values[:1000].tolist()):
        raise ValueError("found text")
    return floats(values)


def _arrow_numbers(column: Any) -> Array:
    """Convert a column of Arrow."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_temporal(column.type):
        raise ValueError("found dates or times")
    if kinds.is_integer(column.type):
        reject_rounded(column.drop_null().to_numpy(**_COPY if isinstance(column, pa.Array) else {}))
    elif kinds.is_decimal(column.type):
        return _from_objects(np.array([*column.to_pylist(), None], dtype=object)[:-1])
    elif kinds.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif not (kinds.is_floating(column.type) or kinds.is_null(column.type)):
        text = any(of(column.type) for of in (kinds.is_string, kinds.is_large_string, kinds.is_string_view))
        raise ValueError("found text" if text else f"found values of {column.type}")
    if str(column.type) != "float":
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(**_COPY if isinstance(column, pa.Array) else {}))


_COPY = {"zero_copy_only": False}
