"""Open all datasets of a fit, with their weights, subjects, covariates and labels, and check them once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, is_sparse
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, listed, warn_user
from standout._xp import looks_foreign
from standout.sources._base import Chosen, InMemory, Mapped, Source, Stream, check_place, matched
from standout.sources._form import as_rows, as_words, is_missing, keys_of, known, on_host, parsed, per_row
from standout.sources._functions import DaskBlocks, is_dask

Dataset: TypeAlias = Any
"""A table of real numbers: array, nested list, frame (pandas, polars, Arrow), sparse array, array of another library,
xarray.DataArray, Dask array or frame, `standout.scan`, or an iterator of batches."""
# An array that would be larger than this in float64 is converted to float64 a block at a time.
LARGE_BYTES = 2**30
# If the sum of the weights is outside of these limits, each weight is divided by the largest weight. Without this,
# products of weights could be too large or too small for float64.
LEAST_WEIGHT, MOST_WEIGHT = 1e-9, 1e15


def open_dataset(
    data: Dataset, name: str = "the data", *, columns: Sequence[str] | None = None, gaps: bool = False
) -> Source:
    """Open one dataset of any kind.

    Parameters
    ----------
    data : array, frame, sparse array, Dask array or frame, iterator of batches, or Source
    name : str
        The name of the dataset in messages.
    columns : sequence of str, optional
        The columns to use, in this order, if the data have names. Other columns are left out.
    gaps : bool
        Whether missing values are kept as NaN.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import open_dataset
    >>> open_dataset(np.ones((4, 3)), "the target").n_rows
    4
    """
    if isinstance(data, np.ndarray):
        if data.ndim == 2 and data.dtype.char not in "fd" and 8 * data.size > LARGE_BYTES:
            return Mapped(InMemory(data, name), partial(as_rows, name=name), None, data.shape[1])
        return InMemory(as_rows(data, name, finite=not gaps), name)
    if isinstance(data, Source):
        source = data.named(name)
        source.missing = "keep" if gaps else "error" if data.missing == "keep" else data.missing
        if data.rows is not None and not gaps:
            as_rows(data.rows, name, keys=data.keys)
    elif is_dask(data) or (hasattr(data, "dims") and is_dask(data.data)):
        source = DaskBlocks(data if is_dask(data) else data.data, name, keys_of(data))
    # An iterator with a length, such as MNE's epochs, is a whole table and not a stream of batches.
    elif isinstance(data, Iterator) and not hasattr(data, "__len__"):
        source = Stream(data, name)
    else:
        keys = keys_of(data)
        if columns is not None and keys is not None and keys != list(columns):
            # Leave out other columns before the conversion, because they may hold words.
            _places(columns, keys, name)
            data, keys = frame_columns(data, list(columns)), list(columns)
        source = InMemory(as_rows(data, name, keys=keys, finite=not gaps), name, keys)
    if columns is None or source.keys is None or source.keys == list(columns):
        return source
    return source.select(_places(columns, source.keys, name))


def _places(columns: Sequence[str], keys: list[Any], name: str) -> list[int]:
    """Return the position of each column of the fit in new data."""
    places = {key: position for position, key in enumerate(keys)}
    missing = [column for column in columns if column not in places]
    if missing:
        problem = f"{name} lacks {listed('column', missing)} of the data of the fit"
        raise InvalidValueError(problem, advice="Give the columns of the fit, in any order.")
    return [places[column] for column in columns]


def open_datasets(
    X: Dataset,
    background: Dataset | Sequence[Dataset] | None = None,
    *,
    sample_weight: Any = None,
    background_sample_weight: Any = None,
    groups: Any = None,
    background_groups: Any = None,
    adjust: Any = None,
    background_adjust: Any = None,
    y: Any = None,
    target_label: Any = None,
    finite: bool = True,
) -> list[Source]:
    """Open the datasets of a fit, the target first, and check all of them.

    Parameters
    ----------
    X : dataset
        The target; with `target_label`, rows of all labels.
    background : dataset, or list or tuple of datasets, default=None
    sample_weight, groups, adjust : array-like, str or None
        Weights, subjects and covariates of the rows of X. A string names a column of a frame or of files. This column
        is then not used as a feature. `adjust` may be a list of such names.
    background_sample_weight, background_groups, background_adjust : array-like, str, list or None
        Weights, subjects and covariates of the rows of the background. For several backgrounds, give a list with one
        entry for each background.
    y : array-like or str, default=None
        The label of each row of X. It is used only with `target_label`.
    target_label : object, default=None
        Rows with this label are the target. The rows of each other label are one background, in sorted order.
    finite : bool, default=True
        Whether to search arrays for NaN and infinity. Use False if the caller finds such values in sums of the rows:
        this saves a pass over the rows.

    Returns
    -------
    list of Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout.sources import open_datasets
    >>> [data.n_rows for data in open_datasets(np.eye(4), [np.eye(4)[:3], np.eye(4)[:2]])]
    [4, 3, 2]
    >>> [data.n_rows for data in open_datasets(np.eye(4), y=["a", "b", "c", "a"], target_label="b")]
    [1, 2, 1]
    """
    given = [X, *([background] if type(background) is np.ndarray else as_backgrounds(background, X))]
    names = dataset_names(len(given))
    if target_label is not None and background is not None:
        advice = "Set `target_label` to None to pass the background, or pass the labels y alone."
        raise InvalidValueError("both `target_label` and a background are given", advice=advice)
    if y is not None and target_label is None:
        # A table that is given as y is probably meant as the background.
        shape: Any = getattr(y, "shape", ())
        if isinstance(y, Source | Iterator) or (len(shape) == 2 and shape[1] != 1):
            advice = "Pass the background by its name: fit(X, background=...). Labels of rows need `target_label`."
            raise InvalidValueError("y is a table, but without `target_label` it is not used", advice=advice)
        y = None
    every = {
        "weights": (sample_weight, background_sample_weight, "sample_weight"),
        "subjects": (groups, background_groups, "groups"),
        "covariates": (adjust, background_adjust, "adjust"),
        "labels": (y, None, "y"),
    }
    known = {what: fact for what, fact in every.items() if fact[0] is not None or fact[1] is not None}
    facts = {what: for_each(*fact, len(given)) for what, fact in known.items()}
    datasets = [
        _with_facts(data, name, {what: values[number] for what, values in facts.items()})
        if facts
        # With weights, always search the rows: sums may leave out rows of weight zero, and then do not show their NaN.
        else open_dataset(data, name, gaps=not finite and (isinstance(data, np.ndarray) or looks_foreign(data)))
        for number, (data, name) in enumerate(zip(given, names, strict=True))
    ]
    if "covariates" in facts:
        _code_covariates(datasets)
    if target_label is not None:
        datasets = _by_label(datasets[0], target_label)
    if "subjects" in facts:
        _number_subjects(datasets)
    target = datasets[0]
    for number, data in enumerate(datasets[1:], start=1):
        if data.keys is not None or data.width != target.width or data.place != target.place:
            places = matched(data.keys, data.width or 0, data.name, target.keys, target.width or 0, target.name)
            datasets[number] = data if places is None else data.select(places.tolist())
            check_place(data.place, data.name, target.place, target.name)
    return datasets


def as_backgrounds(background: Any, target: Any = None) -> list[Any]:
    """Return the backgrounds as a list; a nested list of numbers is one background."""
    if background is None:
        return []
    backgrounds = [background]
    if isinstance(background, list | tuple):
        tables = any(isinstance(one, Iterator | Source) or keys_of(one) is not None for one in background)
        if tables or not background or any(is_sparse(one) or np.ndim(one) != 1 for one in background):
            backgrounds = list(background)
    if not backgrounds:
        advice = "Pass at least one dataset, or None for PCA of the target."
        raise InvalidValueError("`background` is an empty list", advice=advice)
    iterators = [id(data) for data in (target, *backgrounds) if isinstance(data, Iterator)]
    if len(set(iterators)) < len(iterators):
        problem = "the same iterator is given for two datasets, but it can be read only once"
        raise InvalidValueError(problem, advice="Pass a fresh one for each.")
    return backgrounds


# --- arrays with one entry per row ------------------------------------------------------------------------------------


def for_each(own: Any, others: Any, parameter: str, n_datasets: int) -> list[tuple[Any, str]]:
    """For each dataset, return its weights, subjects or covariates, and the name of the parameter that gave them."""
    theirs, n_others = f"background_{parameter}", n_datasets - 1
    if others is None and _names(own, parameter):
        return [(own, parameter)] * n_datasets
    # With several backgrounds, `others` can be a list with one entry for each background. A string in this list is the
    # name of a column. With one background, a list of strings is the entry of this background.
    parts = list(others) if isinstance(others, list | tuple) else []
    several = all(
        part is None or (hasattr(part, "__len__") and (n_others > 1 or not isinstance(part, str))) for part in parts
    )
    each = parts if parts and several and (n_others > 1 or len(parts) == 1) else [others]
    each = [None] * n_others if others is None else each
    if len(each) != n_others:
        problem = f"is for {len(each)} background(s), but there are {n_others}"
        raise InvalidValueError(problem, parameter=theirs, advice="Give a list with one entry for each background.")
    if parameter != "sample_weight" and any(part is None for part in (own, *each)):
        problem = f"`{parameter}` and `{theirs}` go together, but one dataset has none"
        raise InvalidValueError(problem, advice="Give one for each row of every dataset.")
    return [(own, parameter), *((part, theirs) for part in each)]


def _names(given: Any, parameter: str) -> list[str]:
    """Return the names of columns that a parameter has. If it has values instead of names, return an empty list."""
    several = [given] if isinstance(given, str) else given
    is_list = isinstance(several, list | tuple) and (parameter in ("adjust", "covariates") or several is not given)
    return list(several) if is_list and all(isinstance(name, str) for name in several) else []


def _with_facts(data: Any, name: str, facts: dict[str, tuple[Any, str]]) -> Source:
    """Open a dataset with its weights, subjects, covariates and labels. Columns used for these are not features."""
    named = {what: _names(value, what) for what, (value, _) in facts.items()}
    columns = {column: facts[what][1] for what, several in named.items() for column in several}
    left, words = _split(data, name, columns) if columns else (data, {})
    source = open_dataset(left, name)
    make = {"weights": _as_weights, "subjects": as_words, "covariates": _as_columns, "labels": as_labels}
    for what, (value, parameter) in facts.items():
        if named[what]:
            found = {column: words[column] for column in named[what]}
            value = found if what == "covariates" else found[named[what][0]]
        if value is not None:
            setattr(source, what, make[what](value, source.n_rows, name, parameter))
    return source


def _split(data: Any, name: str, columns: dict[str, str]) -> tuple[Any, dict[str, Any]]:
    """Separate named columns from the features; `columns` maps each name to the parameter that uses it."""
    is_source = isinstance(data, Source)
    keys = (getattr(data, "known_columns", None) or data.keys if is_source else keys_of(data)) or []
    for column, parameter in columns.items():
        known(column, parameter, keys, f"a column of {name}")
    if is_source:
        return data.without(list(columns)), data.words(list(columns))
    words = {column: frame_column(data, column) for column in columns}
    return frame_columns(data, [key for key in keys if key not in columns]), words


def frame_column(data: Any, column: Any) -> npt.NDArray[Any]:
    """Return a column of a frame of any library as an array."""
    found = data[column]
    found = found.compute() if is_dask(found) else found
    return np.array(found.to_pylist(), dtype=object) if hasattr(found, "to_pylist") else np.asarray(found)


def frame_columns(data: Any, columns: list[Any]) -> Any:
    """Return some columns of a frame of any library."""
    if hasattr(data, "dims"):
        return data.sel({data.dims[1]: columns})
    return data.select(columns) if hasattr(data, "select") and not hasattr(data, "iloc") else data[columns]


def _as_weights(given: Any, n_rows: int | None, name: str, parameter: str) -> Float:
    """Check weights of rows: finite, non-negative, with a positive sum."""
    values = per_row(given, n_rows, name, parameter)
    try:
        weights = parsed(values)
    except (ValueError, TypeError) as error:
        raise InvalidTypeError(f"has no numbers: {error}", parameter=parameter, advice="Give one per row.") from None
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if (weights < 0).any() or not 0.0 < total < np.inf:
        problem = "must be non-negative, finite and not all zero, with a finite sum"
        raise InvalidValueError(problem, parameter=parameter, advice="Give such weights, or None.")
    return weights if LEAST_WEIGHT < total < MOST_WEIGHT else weights / weights.max()


def _as_columns(given: Any, n_rows: int | None, name: str, parameter: str) -> dict[Any, npt.NDArray[Any]]:
    """Return the columns of covariates by their names or positions."""
    keys = None if isinstance(given, dict) else keys_of(given)
    if keys is not None:
        given = {key: frame_column(given, key) for key in keys}
    elif not isinstance(given, dict):
        given = dict(enumerate(np.atleast_2d(np.asarray(on_host(given)).T)))
    return {key: per_row(column, n_rows, name, parameter) for key, column in given.items()}


def _code_covariates(datasets: list[Source]) -> None:
    """Turn covariates into numbers, in the same way in all datasets.

    A covariate of words becomes columns of 0 and 1: one column for each different word, except the first in sorted
    order.
    """
    tables: list[Any] = [data.covariates for data in datasets]
    if len({len(table) for table in tables}) > 1:
        problem = "`adjust` and `background_adjust` have different numbers of covariates"
        raise InvalidValueError(problem, advice="Give the same covariates for every dataset.")
    ends = np.cumsum([len(next(iter(table.values()))) for table in tables])[:-1]
    coded = []
    for key, *columns in zip(tables[0], *(table.values() for table in tables), strict=True):
        values = np.concatenate([column.astype(object) for column in columns])
        try:
            numbers = parsed(values)[:, None]
        except (TypeError, ValueError):
            levels, places = np.unique([str(value) for value in values.tolist()], return_inverse=True)
            numbers = np.eye(len(levels))[places.ravel()][:, 1:]
            numbers[[is_missing(value) for value in values.tolist()]] = np.nan
        for data, part in zip(datasets, np.split(numbers, ends), strict=True):
            bad = ~np.isfinite(part).all(axis=1)
            if bad.any():
                problem = f"has no value of {key!r} for row {int(np.argmax(bad))} of {data.name}"
                raise InvalidValueError(problem, parameter="adjust", advice="Fill it in, or leave such rows out.")
        # Subtract the mean over all datasets. Separate means would remove differences of a covariate between datasets,
        # which are needed when ``center="background"`` compares the means of the datasets.
        coded.append(numbers - numbers.mean(axis=0))
    for data, part in zip(datasets, np.split(np.column_stack(coded), ends), strict=True):
        if 2 * part.shape[1] > len(part):
            problem = f"has {part.shape[1]} columns, which would explain most of the {len(part)} rows of {data.name}"
            raise InvalidValueError(problem, parameter="adjust", advice="Give at most one for every two rows.")
        data.covariates = part


def _number_subjects(datasets: list[Source]) -> None:
    """Number the subjects of all datasets together. A subject in two datasets has the same number in both."""
    words = [np.asarray(data.subjects) for data in datasets]
    names, codes = np.unique(np.concatenate(words), return_inverse=True)
    if len(codes) == len(names):
        advice = "If `groups` has more than the subject, such as 309_1 for mouse 309, give the part that names it."
        warn_user("every subject has one row, so that naming the subjects changes nothing", advice=advice)
    parts = np.split(codes.ravel().astype(np.intp), np.cumsum([len(part) for part in words])[:-1])
    for data, part in zip(datasets, parts, strict=True):
        if part.size and (part == part[0]).all():
            problem = f"{data.name} has rows of one subject only, but a minimum of 2 is required"
            raise InvalidValueError(problem, advice="Give rows of more subjects, or leave `groups` out.")
        data.subjects, data.subject_names = part, names


# --- labels -----------------------------------------------------------------------------------------------------------


def as_labels(given: Any, n_rows: int | None, name: str = "X", parameter: str = "y") -> npt.NDArray[Any]:
    """Check labels of rows: one for each row, none missing, all of one type."""
    values = per_row(given, n_rows, name, parameter)
    if any(is_missing(value) and value != "" for value in values.tolist()):
        problem = "has missing values, but every row needs a label"
        raise InvalidValueError(problem, parameter=parameter, advice="Drop those rows.")
    try:
        np.unique(values)
    except TypeError:
        problem, advice = "mixes types that cannot be sorted", "Give all strings or all integers."
        raise InvalidTypeError(problem, parameter=parameter, advice=advice) from None
    return values


def _by_label(whole: Source, target_label: Any) -> list[Source]:
    """Split a dataset into the target and one background for each other label."""
    if whole.labels is None:
        # scikit-learn's checks of estimators search error messages for this wording.
        advice = "With `target_label`, fit needs one label per row."
        raise InvalidValueError("requires y to be passed, but the target y is None", advice=advice)
    labels = np.asarray(whole.labels)
    known = np.unique(labels).tolist()
    stratified = "In cross-validation, use stratified folds."
    if np.ndim(target_label) != 0 or target_label not in known:
        problem = f"is not a label of a row; y has {listed('label', known)}"
        advice = f"Choose one of these. {stratified}"
        raise InvalidValueError(problem, parameter="target_label", value=target_label, advice=advice)
    if len(known) == 1:
        advice = f"Rows with another label are the background. {stratified}"
        raise InvalidValueError(f"every row has the label {target_label!r}", advice=advice)
    whole = whole if whole.again else whole.loaded()
    order = [target_label, *(label for label in known if label != target_label)]
    names = dataset_names(len(known))
    return [Chosen(whole, labels == label, name).at_once() for label, name in zip(order, names, strict=True)]
