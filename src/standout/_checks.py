"""Checks that every path shares: tables of finite real numbers with the same columns, in one place.

A check that one module alone needs stands in that module. Each check raises one error with the facts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.utils import check_array, check_random_state

from standout._arrays import Rows, all_finite, is_sparse, row_blocks
from standout._messages import (
    InvalidTypeError,
    InvalidValueError,
    MixedArraysError,
    choices,
    listed,
    reject_too_few,
    short,
    warn_user,
)
from standout._xp import (
    detached,
    device,
    is_foreign,
    is_on_host,
    is_sparse_tensor,
    looks_foreign,
    namespace,
    place,
)

# Every whole number up to this one has a double of its own.
LARGEST_INTEGER = 2**53
SAME_COLUMNS = "Give every dataset the same columns in the same order."
# What users have in their hands that is no table, by the name of its type, and what to do with it.
NO_TABLES = {
    "str": "Open the file: standout.scan(path) reads it in parts, standout.io.read_table(path) at once.",
    "AnnData": "Use standout.tl.dpca(adata, groupby, target), or give adata.X.",
    "LazyFrame": "Call its collect() first, or write it to a file and open that with standout.scan.",
    "BaseEpochs": "Use standout.mne.Contrast, or give a table with a row per sample and a column per channel.",
}
NO_TABLES |= dict.fromkeys(("PurePath", "bytes"), NO_TABLES["str"])
NO_TABLES |= dict.fromkeys(("BaseRaw", "Evoked"), NO_TABLES["BaseEpochs"])


def reject_no_table(data: Any, name: str) -> None:
    """Refuse what is no table, and no iterator of tables either, and say what to do with it.

    What can be iterated over and has a length as well, such as the epochs of MNE, is a collection and no stream of
    batches: its parts would be taken for tables of rows.
    """
    thing = data[0] if isinstance(data, list | tuple) and data else data
    kinds = [kind.__name__ for kind in type(thing).__mro__]
    advice = next((NO_TABLES[kind] for kind in kinds if kind in NO_TABLES), None)
    if advice is None and isinstance(data, Iterator) and hasattr(data, "__len__"):
        advice = "Give a table, or iter(...) of a list of tables."
    if advice is not None:
        problem = "{name} is given as {kind}, which is no table"
        raise InvalidTypeError(problem, name=name, kind=type(thing).__name__, advice=advice)


def as_rows(data: Any, name: str, *, min_rows: int = 2, finite: bool = False, host: bool = False) -> Rows:
    """Check that the data are a table of real numbers; give it as an array or a CSR matrix, uncopied if possible."""
    if hasattr(data, "batches") and hasattr(data, "summed"):
        raise InvalidTypeError(
            "rows are needed as a whole here, but {name} is read in parts",
            name=name,
            advice="Give an array, a frame or a sparse matrix; fit (without target_label) and transform take parts.",
        )
    reject_no_table(data, name)
    if is_dispatched(data):
        if host:
            reject_on_device(data, f"this use of {name}", "Copy the array to the host first.")
        rows = _as_foreign_rows(data, name)
    else:
        rows = _as_host_rows(data, name)
    if rows.shape[0] < min_rows:
        reject_too_few(name, rows.shape[0], min_rows)
    if finite:
        require_finite_rows(rows, name)
    return rows


def _as_host_rows(data: Any, name: str) -> Rows:
    if sparse.issparse(data) and data.ndim == 2 and data.format != "csr":
        data = data.tocsr()
    _check_kind(data, name)
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
        _reject_columns(_not_numbers(data), name)
        # scikit-learn's message over several lines as one, without the array that it may show.
        reason = re.sub(r"(array=)?\[.*\]\.?", "", " ".join(str(error).split())).rstrip(". ")
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidValueError
        raise kind("{name} cannot be used: {reason}", name=name, reason=reason) from None
    if rows.dtype.kind == "f" and rows.dtype.itemsize not in (4, 8):
        rows = rows.astype(np.float64)
    if rows.dtype.kind in "iu" and rows.dtype.itemsize == 8:
        _warn_of_large_integers(rows.data if is_sparse(rows) else rows, name)
    return rows


def _check_kind(data: Any, name: str) -> None:
    """Refuse what would be taken for numbers: masked entries, dates in frames, complex numbers of sparse matrices."""
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        first = tuple(int(place) for place in np.argwhere(np.ma.getmaskarray(data))[0])
        raise InvalidValueError(
            "there are masked entries in {name}: the first is at {first}",
            name=name,
            first=first,
            advice="Drop such rows or fill the entries in, in the target and in every background alike.",
        )
    if sparse.issparse(data) and data.dtype.kind == "c":
        advice = "Give a table of real numbers, one row per sample."
        raise InvalidValueError("{name} cannot be used: Complex data not supported", name=name, advice=advice)
    dtypes = getattr(data, "dtypes", None)
    if hasattr(data, "columns") and dtypes is not None:
        kinds = zip(data.columns, dtypes, strict=False)
        _reject_columns({column: "dates or times" for column, kind in kinds if _is_temporal(kind)}, name)


def _is_temporal(kind: Any) -> bool:
    """Tell whether a column of a frame has dates, times or durations; polars would give them as numbers."""
    return getattr(kind, "kind", "") in ("m", "M") or bool(getattr(kind, "is_temporal", bool)())


def _reject_columns(columns: dict[Any, str], name: str) -> None:
    """Refuse columns that do not hold numbers, and say what they hold."""
    if columns:
        raise InvalidValueError(
            "found {kinds} in {columns} of {name}, where numbers are needed",
            kinds=" or ".join(dict.fromkeys(columns.values())),
            columns=listed("column", columns),
            name=name,
            advice="Drop these columns or turn them into numbers.",
        )


def _warn_of_large_integers(numbers: Any, name: str) -> None:
    """Warn of whole numbers that differ from each other but not in double precision."""
    if numbers.size and (int(numbers.max()) > LARGEST_INTEGER or int(numbers.min()) < -LARGEST_INTEGER):
        warn_user(
            "there are whole numbers beyond 2**53 in {name}, which double precision rounds",
            name=name,
            advice="Subtract what they have in common, or drop such columns: they may be identifiers.",
        )


def _as_foreign_rows(data: Any, name: str) -> Rows:
    """Check that an array of another library is a table of real numbers; it stays where it is."""
    xp = namespace(data)
    rows = detached(data)
    problem = None
    if rows.ndim != 2:
        problem = "Expected 2D array, got {n_dimensions}D array instead"
    elif not xp.isdtype(rows.dtype, ("bool", "integral", "real floating")):
        problem = "Complex data not supported ({dtype})"
    elif rows.shape[1] < 1:
        problem = "Found array with 0 feature(s) (shape={shape})"
    if problem is not None:
        raise InvalidValueError(
            "{name} cannot be used: " + problem,
            name=name,
            n_dimensions=rows.ndim,
            dtype=rows.dtype,
            shape=tuple(rows.shape),
            advice="Give a table of real numbers, one row per sample.",
        )
    if not xp.isdtype(rows.dtype, "integral") and rows.dtype not in (xp.float32, xp.float64):
        try:
            rows = xp.astype(rows, xp.float64)
        except (TypeError, RuntimeError) as error:
            problem = "{name} lies on {device}, which has no double precision: {reason}"
            facts = {"name": name, "device": device(data), "reason": error}
            raise InvalidTypeError(problem, advice="Use another device.", **facts) from None
    return rows


# --- finite numbers --------------------------------------------------------------------------------------------------


def require_finite_rows(rows: Rows, name: str) -> None:
    """Refuse NaN and infinity, and say where the first is."""
    if all_finite(rows):
        return None
    found = first_cell(rows, lambda cells: ~namespace(cells).isfinite(cells))
    if found is None:
        return check_squares(np.inf, name)
    problem = "there is NaN or infinity in {name}: the first is {value} in row {row}, column {column}"
    advice = "Drop such rows or fill them in, in the target and in every background alike."
    row, column = found
    raise InvalidValueError(problem, name=name, value=float(rows[found]), row=row, column=column, advice=advice)


def first_cell(rows: Rows, is_meant: Callable[[Any], Any]) -> tuple[int, int] | None:
    """Find the first cell, row by row, for which something is true; of a sparse matrix, among the stored numbers."""
    if is_sparse(rows):
        coo = rows.tocoo()
        stored = np.flatnonzero(is_meant(coo.data))
        return (int(coo.row[stored[0]]), int(coo.col[stored[0]])) if stored.size else None
    start, width = 0, rows.shape[1]
    for block in row_blocks(rows):
        xp = namespace(block)
        cells = xp.reshape(is_meant(block), (-1,))
        if bool(xp.any(cells)):
            # Not every library finds the largest of truth values.
            cell = int(xp.argmax(xp.astype(cells, xp.uint8) if is_foreign(cells) else cells))
            return start + cell // width, cell % width
        start += block.shape[0]
    return None


def check_squares(variance: float, name: str) -> None:
    """Refuse finite data whose squares are not finite."""
    if not np.isfinite(variance):
        raise InvalidValueError(
            "there are values too large to square in {name}: their variance is not a finite number",
            name=name,
            advice="Rescale the data.",
        )


# --- columns ---------------------------------------------------------------------------------------------------------


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
    advice: str = SAME_COLUMNS,
) -> None:
    """Check that a dataset has as many columns as the reference, and the same ones in the same order."""
    facts = {"name": name, "width": width, "limit": expected, "reference": reference, "advice": advice}
    counts = "{name} has {width} features, but {reference} has {limit}"
    if columns is None or names is None or columns == names:
        if width != expected:
            raise InvalidValueError(counts, **facts)
        return
    found, needed = set(columns), set(names)
    missing = [column for column in names if column not in found]
    extra = [column for column in columns if column not in needed]
    problems = [
        *([counts] if width != expected else []),
        *(["{name} lacks {missing}"] if missing else []),
        *(["{name} has {extra}, which {reference} has not"] if extra else []),
    ]
    raise InvalidValueError(
        "; ".join(problems or ["{name} has the columns of {reference} in another order"]),
        missing=listed("column", missing),
        extra=listed("column", extra),
        **facts,
    )


def column_keys(data: Any) -> list[Any] | None:
    """Give the column names of a frame if not all are strings: numbers, or tuples of a hierarchy."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape") or column_names(data) is not None:
        return None
    return list(columns) or None


def check_same_keys(keys: list[Any] | None, name: str, expected: list[Any] | None, reference: str) -> None:
    """Check column names that are no strings. A frame that numbers its columns 0, 1, ... may have no names at all."""
    if keys is None or expected is None or keys == expected or len(keys) != len(expected):
        return
    unnamed = list(range(len(keys)))
    if unnamed in (keys, expected) and set(keys) != set(expected):
        return
    check_same_columns(len(keys), keys, name, len(expected), expected, reference)


def _not_numbers(data: Any) -> dict[Any, str]:
    """Name the columns of a frame that do not hold numbers, and what they hold."""
    columns = getattr(data, "columns", None)
    if columns is None or not hasattr(data, "shape") or not hasattr(data, "dtypes"):
        return {}
    found = {}
    for name in columns:
        values = np.asarray(data[name])
        try:
            values.astype(np.float64)
        except (TypeError, ValueError):
            held = {type(value).__name__ for value in values.ravel()[:100] if value is not None}
            found[name] = "text" if held <= {"str", "str_", "bytes"} else f"values of {listed('type', sorted(held))}"
    return found


# --- backgrounds and labels ------------------------------------------------------------------------------------------


def as_backgrounds(background: Any, target: Any) -> list[Any]:
    """Give the backgrounds as a list, whatever form they came in."""
    if background is None:
        return []
    several = isinstance(background, list | tuple) and not (
        len(background) > 0 and all(_is_plain_row(element) for element in background)
    )
    backgrounds = list(background) if several else [background]
    if not backgrounds:
        raise InvalidValueError(
            "{p.background} is an empty list", advice="Pass at least one dataset, or None for PCA of the target."
        )
    iterators = [data for data in (target, *backgrounds) if isinstance(data, Iterator)]
    if len({id(iterator) for iterator in iterators}) < len(iterators):
        raise InvalidValueError(
            "the same iterator is given for two datasets, but it can be read only once",
            advice="Pass a fresh one for each.",
        )
    return backgrounds


def require_background(n_backgrounds: int) -> None:
    """Refuse to compare with nothing."""
    if n_backgrounds == 0:
        raise InvalidValueError(
            "there is no background to compare with", advice="Give at least one dataset as {p.background}."
        )


def _is_plain_row(element: Any) -> bool:
    return not (isinstance(element, Iterator) or is_sparse(element) or hasattr(element, "columns")) and (
        np.ndim(element) == 1
    )


def as_labels(labels: Any, n_rows: int, name: str) -> npt.NDArray[Any]:
    """Check labels of rows: one each, none missing, all of one sort."""
    foreign = is_dispatched(labels)
    values = labels if foreign else np.asarray(labels)
    if values.shape != (n_rows,):
        problem, advice = "{name} has shape {shape}, but there are {limit} rows", "Give one label per row."
        raise InvalidValueError(problem, name=name, shape=tuple(values.shape), limit=n_rows, advice=advice)
    given = None if foreign else list(labels)
    missing = (
        not bool(namespace(labels).all(labels == labels))
        if given is None
        else any(value is None or not _equals_itself(value) for value in given)
    )
    if missing:
        raise InvalidValueError(
            "{name} has missing values, but every row must belong to a group", name=name, advice="Drop those rows."
        )
    if given is not None:
        if values.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in given):
            # NumPy would turn the numbers among them into strings.
            values = np.array(given, dtype=object)
        try:
            np.unique(values)
        except TypeError:
            raise InvalidTypeError(
                "{name} mixes types that cannot be sorted", name=name, advice="Give all strings or all integers."
            ) from None
    return values


def group_numbers(labels: Any, n_rows: int) -> npt.NDArray[np.intp]:
    """Check labels of rows, and give numbers 0, 1, ... in their place."""
    _, groups = np.unique(as_labels(labels, n_rows, "labels"), return_inverse=True)
    return groups


def _equals_itself(value: Any) -> bool:
    """Tell whether a value is neither NaN nor a missing value of a data frame."""
    try:
        return bool(value == value)
    except TypeError:
        return False


def check_one_each(given: int, expected: int, what: str, each: str) -> None:
    """Check that there is one of something for each of something else."""
    if given != expected:
        problem, advice = "the number of {what} is {given}, but there are {limit}", "Give one for each {each}."
        raise InvalidValueError(problem, what=what, given=given, limit=expected, each=each, advice=advice)


# --- numbers ---------------------------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """Tell whether a value is a number; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def check_whole(value: Any, name: str, *, least: int = 1, advice: str = "Give a number of at least {limit}.") -> int:
    """Check a whole number that may not be too small."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidTypeError("is not a whole number", parameter=name, value=value, limit=least, advice=advice)
    if value < least:
        raise InvalidValueError("is less than {limit}", parameter=name, value=value, limit=least, advice=advice)
    return int(value)


def check_number(
    value: Any, name: str, limit: tuple[float, float], advice: str, *, strict: bool = False, **facts: Any
) -> float:
    """Check a finite number within limits, which it may reach unless they are strict."""
    least, most = limit
    facts |= {"parameter": name, "value": value, "limit": limit, "least": least, "most": most, "advice": advice}
    if not is_number(value):
        raise InvalidTypeError("is not a number", **facts)
    if not (least < value < most if strict else np.isfinite(value) and least <= value <= most):
        problem = "is not between {least} and {most}" if strict else "is outside [{least}, {most}]"
        raise InvalidValueError(problem, **facts)
    return float(value)


def check_choice(
    value: Any, name: str, known: Collection[str], advice: str = "Use one of {known}.", problem: str = "is unknown"
) -> str:
    """Check a word that has to be one of some."""
    if not isinstance(value, str) or value not in known:
        facts = {"value": value, "limit": list(known), "known": choices(known)}
        raise InvalidValueError(problem, parameter=name, advice=advice, **facts)
    return value


def check_known(
    value: Any,
    name: str,
    known: Iterable[Any],
    where: str,
    noun: str,
    error: Any = InvalidValueError,
    advice: str = "Choose among these.",
) -> str:
    """Check a name against those that there are, `where`; if another one is close, it may be meant."""
    words = [str(one) for one in known]
    if isinstance(value, str) and value in words:
        return value
    close = [repr(short(one)) for one in get_close_matches(str(value), words, n=1)]
    advice = "Is {close} meant?" if close else advice
    facts = {"where": where, "known": listed(noun, words) if words else f"no {noun}s", "close": "".join(close)}
    raise error("is not {where}, which has {known}", parameter=name, value=value, limit=words, advice=advice, **facts)


def as_seed(random_state: Any) -> int:
    """Give a number to start random generators with: 0 where nothing is given."""
    if random_state is None:
        return 0
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError:
        raise InvalidValueError(
            "starts no random numbers",
            parameter="random_state",
            value=random_state,
            advice="Give a whole number from 0 to 2**32 - 1, a RandomState, or {v.None}. Of a Generator take a number: "
            "rng.integers(2**31).",
        ) from None


# --- libraries and devices -------------------------------------------------------------------------------------------


def is_dispatched(data: Any) -> bool:
    """Tell whether the data are an array of another library that is to be worked on as such."""
    if not looks_foreign(data):
        return False
    if is_sparse_tensor(data):
        raise InvalidTypeError(
            "a sparse tensor was given ({layout}), which has no products here",
            layout=data.layout,
            advice="Make it dense with to_dense(), or give a sparse matrix of SciPy.",
        )
    if get_config()["array_api_dispatch"]:
        return True
    if not is_on_host(data):
        library, where = place(data)
        raise InvalidTypeError(
            "an array of {library} on the device {device} was given, which is not copied to the host unasked",
            library=library,
            device=where,
            advice="Switch on sklearn.set_config(array_api_dispatch=True), with SCIPY_ARRAY_API=1 in the environment, "
            "to work on the device; or copy the array to the host yourself.",
        )
    return False


def check_one_place(arrays: Sequence[Any], names: Sequence[str]) -> None:
    """Refuse datasets of several libraries or devices. What is not known yet, None, is passed over."""
    known = [(name, place(array)) for name, array in zip(names, arrays, strict=True) if array is not None]
    for name, at in known[1:]:
        first, reference = known[0]
        if at != reference:
            facts = {"first": first, "reference": " on ".join(reference), "name": name, "at": " on ".join(at)}
            advice = "Give all datasets as arrays of one library, on one device."
            raise MixedArraysError("{first} is of {reference}, but {name} is of {at}", advice=advice, **facts)


def reject_on_device(array: Any, what: str, advice: str) -> None:
    """Refuse what is done on NumPy arrays only, if the array is of another library."""
    if looks_foreign(array):
        library, where = place(array)
        problem = "{what} is for NumPy arrays only, but the data are of {library} on {device}"
        raise InvalidTypeError(problem, what=what, library=library, device=where, advice=advice)
