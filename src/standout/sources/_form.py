"""One form for all rows: float32 or float64 arrays, CSR arrays of SciPy, or arrays of another library.

Other modules do not check rows again. Whole numbers that float64 would round are refused here, for every kind of input.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config

from standout._arrays import Array, Float, Rows, all_finite, is_sparse
from standout._messages import InvalidTypeError, InvalidValueError, listed, short
from standout._xp import detached, device, is_on_host, is_sparse_tensor, looks_foreign, namespace, place, to_host

Keys: TypeAlias = list[Any] | None
"""The names of columns, of any type; None if there are none."""
# All whole numbers up to this one are exact in double precision.
LARGEST_INTEGER = 2**53
# Advice for objects that are not tables, by the name of their type.
_FILE = "Open the file: standout.scan(path) reads it in batches, standout.read_table(path) whole."
_MNE = "Use standout.mne.Contrast, or give a table with a row per sample and a column per channel."
NO_TABLES = {
    **dict.fromkeys(("str", "PurePath", "bytes"), _FILE),
    **dict.fromkeys(("BaseEpochs", "BaseRaw", "Evoked"), _MNE),
    "AnnData": "Use standout.tl.dpca(adata, groupby, target), or give adata.X.",
    "LazyFrame": "Call its collect() first, or write it to a file and open that with standout.scan.",
}
RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) "
    "if it contains a single sample."
)


def as_rows(data: Any, name: str, *, keys: Keys = None, finite: bool = True, min_rows: int = 1) -> Rows:
    """Return data of any kind as rows, without a copy if possible. Refuse data that are not a table.

    `keys` are the column names of a frame.
    """
    is_plain = type(data) is np.ndarray and data.dtype.char in "fd" and data.dtype.isnative
    try:
        rows = data if is_plain else _converted(data, name, keys)
    except (InvalidValueError, InvalidTypeError):
        raise
    except (ValueError, TypeError, OverflowError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
        reason = " ".join(str(error).split())[:200].rstrip(". ")
        raise kind(f"{name} cannot be used: {reason}", advice="Give a table of real numbers.") from None
    # scikit-learn's checks of estimators search error messages for this wording.
    if rows.ndim != 2:
        found = "scalar" if rows.ndim == 0 else f"{rows.ndim}D"
        raise InvalidValueError(f"{name}: Expected 2D array, got {found} array instead", advice=RESHAPE)
    for axis, least, noun in ((1, 1, "feature"), (0, min_rows, "sample")):
        if rows.shape[axis] < least:
            found = f"Found array with {rows.shape[axis]} {noun}(s) (shape={tuple(rows.shape)})"
            raise InvalidValueError(f"{name}: {found} while a minimum of {least} is required")
    if finite and not all_finite(rows):
        cells, values = not_finite(rows)
        row, column = cells[0].tolist()
        where = f"row {row}, column {column if keys is None else repr(keys[column])}"
        problem = f"there is NaN or infinity in {name}: the first is {values[0]} in {where}"
        raise InvalidValueError(problem, advice="Drop such rows or fill them in, in every dataset.")
    return rows


def not_finite(rows: Rows) -> tuple[npt.NDArray[np.intp], Array]:
    """Return the row, the column and the value of each NaN or infinity, in the order of the rows."""
    if is_sparse(rows):
        entries = rows.tocoo()
        bad = ~np.isfinite(entries.data)
        return np.column_stack([entries.row[bad], entries.col[bad]]), entries.data[bad]
    values = np.asarray(to_host(rows))
    bad = ~np.isfinite(values)
    return np.argwhere(bad), values[bad]


def keys_of(data: Any) -> Keys:
    """Return the column names, of any type, of a frame of any library; None for arrays."""
    if type(data) is np.ndarray or not hasattr(data, "shape"):
        return None
    library = type(data).__module__.partition(".")[0]
    if library == "pyarrow":
        return list(data.schema.names)
    if library == "xarray":
        named = len(data.dims) == 2 and data.dims[1] in data.coords
        return data.coords[data.dims[1]].values.tolist() if named else None
    return list(data.columns) if hasattr(data, "columns") else None


def column_names(keys: Keys, name: str) -> tuple[str, ...] | None:
    """Return the names of columns if all are strings, otherwise None. Refuse strings mixed with other types."""
    kinds = {isinstance(key, str) for key in keys or ()}
    if len(kinds) > 1:
        problem = f"Feature names are only supported if all input features have string names, but {name} has others too"
        raise InvalidTypeError(problem, advice="Use strings for all: frame.columns = frame.columns.astype(str).")
    return tuple(keys) if keys and kinds == {True} else None


def known(name: Any, parameter: str, names: Collection[Any], what: str) -> Any:
    """Return the name if it is known. Otherwise raise an error with the known names and one similar name."""
    if name not in names:
        close = get_close_matches(str(name), map(str, names), n=1)
        advice = f"Is {short(close[0])!r} meant?" if close else "Choose one of these."
        problem = f"is not {what}, which has {listed('name', names) if len(names) else 'no names'}"
        raise InvalidValueError(problem, parameter=parameter, value=name, advice=advice)
    return name


def is_dispatched(data: Any) -> bool:
    """Return whether the data are an array of another library, and array API dispatch is on.

    Refuse sparse tensors. Without dispatch, also refuse arrays that are not in the host's memory.
    """
    if not looks_foreign(data):
        return False
    if is_sparse_tensor(data):
        advice = "Make it dense with to_dense(), or give a sparse array of SciPy."
        raise InvalidTypeError(f"a sparse tensor was given ({data.layout}), which cannot be used", advice=advice)
    if not get_config()["array_api_dispatch"] and not is_on_host(data):
        problem = f"an array of {' on the device '.join(place(data))} was given, and is not copied automatically"
        advice = (
            "Switch on sklearn.set_config(array_api_dispatch=True), with SCIPY_ARRAY_API=1 in the environment, to work "
            "on the device; or copy the array to the host."
        )
        raise InvalidTypeError(problem, advice=advice)
    return bool(get_config()["array_api_dispatch"])


def _converted(data: Any, name: str, keys: Keys) -> Rows:
    """Convert data to rows. If this is impossible, raise ValueError or TypeError with the reason."""
    for kind in NO_TABLES.keys() & {kind.__name__ for kind in type(data).__mro__}:
        raise InvalidTypeError(f"{name} is a {type(data).__name__}, which is not a table", advice=NO_TABLES[kind])
    if is_sparse(data):
        return _sparse_rows(data)
    if is_dispatched(data):
        return _foreign_rows(detached(data))
    if keys is not None and not hasattr(data, "dims"):
        return _frame_rows(data, keys, name)
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        first = tuple(int(place) for place in np.argwhere(np.ma.getmaskarray(data))[0])
        raise ValueError(f"there are masked entries, the first at {first}")
    values = np.asarray(data)
    if isinstance(data, list | tuple) and values.dtype.kind == "f" and np.any(np.abs(values) >= LARGEST_INTEGER):
        # In a list with a decimal number, NumPy rounds large whole numbers. As objects, the numbers are checked one by
        # one.
        values = np.asarray(data, dtype=object)
    return floats(values)


def floats(values: npt.NDArray[Any]) -> Array:
    """Convert an array to float32 or float64. If this is impossible, raise ValueError or TypeError with the reason."""
    kind = values.dtype.kind
    if kind == "f":
        same = values.dtype.itemsize in (4, 8)
        return values.astype(values.dtype.newbyteorder("=") if same else np.float64, copy=False)
    if kind == "O":
        return _from_objects(values)
    if kind in "mM":
        raise TypeError(f"found dates or times ({values.dtype})")
    if kind == "c":
        raise ValueError("Complex data not supported")
    if kind not in "biu":
        raise ValueError(f"could not convert string to float: {str(values.ravel()[:1])[:60]}")
    if values.dtype.itemsize == 8 and values.size and max(values.max(), -int(values.min())) > LARGEST_INTEGER:
        for value in values[(values < -LARGEST_INTEGER) | (values > LARGEST_INTEGER)].tolist():
            _double(value)
    return values.astype(np.float64)


def _double(value: Any) -> float:
    """Convert a number, and refuse a whole number that would be rounded."""
    double = float(value)
    if abs(double) >= LARGEST_INTEGER and value != double:
        raise ValueError(f"the whole number {value} is beyond 2**53, and would be rounded (is it an identifier?)")
    return double


def _from_objects(values: npt.NDArray[Any]) -> Array:
    """Convert Python objects to numbers; missing values of any library become NaN."""
    numbers = np.empty(values.size)
    for position, value in enumerate(values.ravel().tolist()):
        if isinstance(value, str | bytes):
            raise ValueError(f"could not convert string to float: {value[:60]!r}")
        if isinstance(value, complex):
            raise ValueError("Complex data not supported")
        numbers[position] = np.nan if is_missing(value) else _double(value)
    return numbers.reshape(values.shape)


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, an empty string, or the missing value of a library of frames."""
    if isinstance(value, str | bytes):
        return not value
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def parsed(values: npt.NDArray[Any]) -> Float:
    """Convert values to float64. Words are parsed as numbers, and missing values become NaN."""
    if values.dtype.kind not in "OU":
        return floats(values).astype(np.float64, copy=False)
    return np.array([np.nan if is_missing(value) else float(value) for value in values.tolist()])


def word(value: Any) -> str:
    """Return a value as a string. The number 3.0 becomes "3", and a missing value becomes the empty string."""
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def on_host(given: Any) -> Any:
    """Copy an array of another library to the host; return other objects unchanged."""
    return to_host(given) if looks_foreign(given) else given


def per_row(given: Any, n_rows: int | None, name: str, parameter: str) -> npt.NDArray[Any]:
    """Return values as an array with one value per row."""
    # If a list mixes words with numbers or missing values, NumPy would turn all of them into words.
    values = np.asarray(on_host(given), dtype=object if isinstance(given, list | tuple) else None)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or (n_rows is not None and len(values) != n_rows):
        rows = "a value per row is needed" if n_rows is None else f"{name} has {n_rows} rows"
        raise InvalidValueError(
            f"has shape {values.shape}, but {rows}", parameter=parameter, advice="Give one per row."
        )
    return values


def as_words(given: Any, n_rows: int | None, name: str, parameter: str) -> npt.NDArray[Any]:
    """Return the subject of each row as a string. The number 3.0 becomes "3"."""
    words = [word(value) for value in per_row(given, n_rows, name, parameter).tolist()]
    if "" in words:
        problem = f"names no subject for row {words.index('')} of {name}"
        advice = "Give every row its subject, or leave out rows whose subject is unknown."
        raise InvalidValueError(problem, parameter=parameter, advice=advice)
    return np.array(words, dtype=np.str_)


def _sparse_rows(data: Any) -> Rows:
    if data.ndim != 2:
        return data
    rows = sparse.csr_array(data)
    numbers = floats(rows.data)
    if numbers is not rows.data:
        rows = sparse.csr_array((numbers, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _foreign_rows(rows: Any) -> Rows:
    """Convert an array of another library to float32 or float64. It stays on its device."""
    xp = namespace(rows)
    if not xp.isdtype(rows.dtype, ("bool", "integral", "real floating")):
        raise ValueError(f"Complex data not supported ({rows.dtype})")
    if rows.dtype in (xp.float32, xp.float64):
        return rows
    if xp.isdtype(rows.dtype, "integral") and 0 not in rows.shape:
        _double(int(xp.min(rows)))
        _double(int(xp.max(rows)))
    try:
        return xp.astype(rows, xp.float64)
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"{device(rows)} has no double precision: {error}") from None


# --- frames -----------------------------------------------------------------------------------------------------------


def _frame_rows(data: Any, keys: list[Any], name: str) -> Array:
    """Convert a frame of pandas, polars or Arrow; an error names all columns that are not numeric."""
    if hasattr(data, "iloc"):
        kinds = set(data.dtypes)
        if len(kinds) == 1 and all(isinstance(kind, np.dtype) and kind.kind in "fbiu" for kind in kinds):
            return floats(data.to_numpy())
        columns = [column for _, column in data.items()]
    else:
        columns = data.get_columns() if hasattr(data, "get_columns") else data.columns
    found: list[Array] = []
    wrong: dict[str, list[Any]] = {}
    for key, column in zip(keys, columns, strict=True):
        try:
            found.append(column_numbers(column))
        except (ValueError, TypeError) as error:
            wrong.setdefault(str(error).partition(":")[0], []).append(key)
    for reason, names in wrong.items():
        problem = f"{name} cannot be used: {reason} in {listed('column', names)}"
        raise InvalidValueError(problem, advice="Drop these columns or turn them into numbers.")
    # The result is float32 only if all columns are float32.
    rows = np.empty(data.shape, np.result_type(np.float32, *(column.dtype for column in found)), order="F")
    for position, column in enumerate(found):
        rows[:, position] = column
    return rows


def column_numbers(column: Any) -> Array:
    """Convert a column of a frame of any library; missing values become NaN."""
    kind = column.dtype if hasattr(column, "dtype") else column.type
    nullable = getattr(kind, "kind", "O") in "biuf" and not isinstance(kind, np.dtype)
    values = np.asarray(column.astype(np.float64) if nullable else column)
    if values.dtype.kind in "OU" and any(isinstance(value, str) for value in values[:1000].tolist()):
        raise ValueError("found text")
    if values.dtype.kind == "f" and "int" in str(kind).lower():
        # Missing values have turned a column of whole numbers into floats. Check the original whole numbers, because
        # floats may have rounded them.
        drop = next(name for name in ("dropna", "drop_nulls", "drop_null") if hasattr(column, name))
        floats(np.asarray(getattr(column, drop)()))
    return floats(values)


def arrow_kind(kind: Any) -> str:
    """Return the kind of a column by its Arrow type: numbers, dates or times, text, or other."""
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_temporal(kind):
        return "dates or times"
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if any(of(kind) for of in numeric):
        return "numbers"
    return "text" if "string" in str(kind) else f"values of {kind}"
