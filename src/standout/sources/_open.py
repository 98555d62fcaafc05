"""The one way in for the datasets of a fit: everything about them is checked here, once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, is_sparse
from standout._messages import InvalidTypeError, InvalidValueError, dataset_names, listed, short, warn_user
from standout._xp import looks_foreign, take, to_host
from standout.sources._base import Blocks, Chosen, InMemory, Source, Stream, check_place, matched
from standout.sources._dask import DaskBlocks, is_dask
from standout.sources._form import as_rows, column_names, floats, keys_of

Dataset: TypeAlias = Any
"""A table of real numbers: array, nested list, frame (pandas, polars, Arrow), sparse array, array of another library,
xarray.DataArray, Dask array or frame, `standout.scan`, or an iterator of batches."""
# Arrays of whole numbers above this size are converted a block at a time.
LARGE_BYTES = 2**30
# Weights in all must lie between these: squares of the weights stay finite.
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100


def open_dataset(data: Dataset, name: str = "the data", *, columns: Sequence[str] | None = None) -> Source:
    """Open one dataset of any kind.

    Parameters
    ----------
    data : array, frame, sparse array, Dask array or frame, iterator of batches, or Source
    name : str
        What messages call it.
    columns : sequence of str, optional
        The columns to use, in this order, if the data have names. Other columns are left out.

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
    if type(data) is np.ndarray:
        return InMemory(as_rows(data, name), name) if _is_small(data) else Blocks(data, name)
    if isinstance(data, Source):
        return _chosen_columns(data.named(name), columns)
    if type(data).__module__.startswith("xarray") and is_dask(getattr(data, "data", None)):
        return _chosen_columns(DaskBlocks(data.data, name, keys_of(data)), columns)
    if is_dask(data):
        return _chosen_columns(DaskBlocks(data, name), columns)
    if isinstance(data, np.memmap) and data.ndim == 2:
        return Blocks(data, name)
    if isinstance(data, Iterator):
        if hasattr(data, "__len__"):
            as_rows(data, name)
        return _chosen_columns(Stream(data, name), columns)
    keys = keys_of(data)
    if columns is not None and keys is not None and keys != list(columns):
        # Other columns may hold words.
        data, keys = frame_columns(data, _known(columns, keys, name)), list(columns)
    column_names(keys, name)
    return InMemory(as_rows(data, name, keys=keys), name, keys)


def _is_small(data: npt.NDArray[Any]) -> bool:
    return data.ndim != 2 or data.dtype.kind not in "biu" or 8 * data.size <= LARGE_BYTES


def _chosen_columns(source: Source, columns: Sequence[str] | None) -> Source:
    if columns is None or source.keys is None or source.keys == list(columns):
        return source
    return source.select([source.keys.index(column) for column in _known(columns, source.keys, source.name)])


def _known(columns: Sequence[str], keys: list[Any], name: str) -> list[str]:
    known = set(keys)
    missing = [column for column in columns if column not in known]
    if missing:
        advice = "Give the columns of the fit, in any order."
        raise InvalidValueError(f"{name} lacks {listed('column', missing)} of the data of the fit", advice=advice)
    return list(columns)


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
) -> list[Source]:
    """Open the datasets of a fit, the target first, and check all of them.

    Parameters
    ----------
    X : dataset
        The target; with `target_label`, rows of all labels.
    background : dataset, or list or tuple of datasets, default=None
    sample_weight, groups, adjust : array-like, str or None
        Weights, subjects and covariates of the rows of X. A string names a column of a frame or of files, which is
        then not a feature. `adjust` may be a list of such names.
    background_sample_weight, background_groups, background_adjust : array-like, str, list or None
        The same for the background; a list with an entry for each of several backgrounds.
    y : array-like or str, default=None
        The label of each row, with `target_label`.
    target_label : object, default=None
        Rows with this label are the target. The rows of each other label are one background, in sorted order.

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
    given = [X, *as_backgrounds(background, X)]
    if target_label is not None and background is not None:
        advice = "Set `target_label` to None to pass the background, or pass the labels y alone."
        raise InvalidValueError("both `target_label` and a background are given", advice=advice)
    if y is not None and target_label is None:
        _reject_table(y)
    names = dataset_names(len(given))
    if not (
        sample_weight is background_sample_weight is groups is background_groups is adjust is background_adjust is None
        and target_label is None
    ):
        facts = {
            "sample_weight": _for_each(sample_weight, background_sample_weight, len(given), "sample_weight"),
            "groups": _for_each(groups, background_groups, len(given), "groups"),
            "adjust": _for_each(adjust, background_adjust, len(given), "adjust"),
        }
        datasets = [
            _with_facts(data, name, {parameter: values[i] for parameter, values in facts.items()}, i, y)
            for i, (data, name) in enumerate(zip(given, names, strict=True))
        ]
        if target_label is not None:
            datasets = _by_label(datasets[0], target_label)
        if any(data.subjects is not None for data in datasets):
            _number_subjects(datasets)
    else:
        datasets = [open_dataset(data, name) for data, name in zip(given, names, strict=True)]
    target = datasets[0]
    for position, data in enumerate(datasets[1:], start=1):
        if data.keys is not None or data.width != target.width:
            places = matched(data.keys, data.width or 0, data.name, target.keys, target.width or 0, target.name)
            if places is not None:
                datasets[position] = data.select(places.tolist())
        check_place(data.place, data.name, target.place, target.name)
    return datasets


def as_backgrounds(background: Any, target: Any) -> list[Any]:
    """Return the backgrounds as a list; a nested list of numbers is one background."""
    if background is None:
        return []
    several = isinstance(background, list | tuple) and not (
        background and all(not _is_table(element) and np.ndim(element) == 1 for element in background)
    )
    backgrounds = list(background) if several else [background]
    if not backgrounds:
        advice = "Pass at least one dataset, or None for PCA of the target."
        raise InvalidValueError("`background` is an empty list", advice=advice)
    iterators = [data for data in (target, *backgrounds) if isinstance(data, Iterator)]
    if len({id(iterator) for iterator in iterators}) < len(iterators):
        problem = "the same iterator is given for two datasets, but it can be read only once"
        raise InvalidValueError(problem, advice="Pass a fresh one for each.")
    return backgrounds


def _is_table(data: Any) -> bool:
    return isinstance(data, Iterator | Source | np.memmap) or is_sparse(data) or keys_of(data) is not None


def _reject_table(y: Any) -> None:
    """Refuse a second table in the place of y: the background is meant."""
    shape = getattr(y, "shape", ())
    if isinstance(y, Source | Iterator) or is_sparse(y) or (len(shape) == 2 and shape[1] != 1):
        raise InvalidValueError(
            "y is a table, but without `target_label` it is not used",
            advice="Pass the background by its name: fit(X, background=...). Labels of rows need `target_label`.",
        )


# --- arrays beside the rows -------------------------------------------------------------------------------------------


def _for_each(own: Any, others: Any, n_datasets: int, parameter: str) -> list[Any]:
    """Return the weights, subjects or covariates of each dataset; the name of a column holds for all datasets."""
    if own is None and others is None:
        return [None] * n_datasets
    n_backgrounds, of_backgrounds = n_datasets - 1, f"background_{parameter}"
    if _are_names(own) and others is None:
        return [own] * n_datasets
    if n_backgrounds == 0:
        if others is not None:
            raise InvalidValueError("is given without a background", parameter=of_backgrounds, advice="Leave it out.")
        return [own]
    several = isinstance(others, list | tuple) and all(
        part is None or (hasattr(part, "__len__") and (n_backgrounds > 1 or not isinstance(part, str)))
        for part in others
    )
    each = list(others) if several and (n_backgrounds > 1 or len(others) == 1) else [others]
    if len(each) == 1 and each[0] is None:
        each = [None] * n_backgrounds
    if len(each) != n_backgrounds:
        raise InvalidValueError(
            f"is for {len(each)} background(s), but there are {n_backgrounds}",
            parameter=of_backgrounds,
            advice="Give a list with one entry for each background.",
        )
    found = [own, *each]
    lacking = [name for name, part in zip(dataset_names(n_datasets), found, strict=True) if part is None]
    if parameter != "sample_weight" and lacking:
        problem = f"`{parameter}` and `{of_backgrounds}` go together, but {lacking[0]} has none"
        raise InvalidValueError(problem, advice="Give one for each row of every dataset.")
    return found


def _are_names(given: Any) -> bool:
    return isinstance(given, str) or (
        isinstance(given, list | tuple) and bool(given) and all(isinstance(name, str) for name in given)
    )


def _with_facts(data: Any, name: str, facts: dict[str, Any], number: int, y: Any) -> Source:
    """Open a dataset with the arrays beside its rows; columns that are named are not features."""
    prefix = "background_" if number else ""
    given = {f"{prefix}{parameter}": value for parameter, value in facts.items()} | {"y": y if number == 0 else None}
    named = {
        parameter: [value] if isinstance(value, str) else list(value)
        for parameter, value in given.items()
        if isinstance(value, str) or (parameter.endswith("adjust") and _are_names(value))
    }
    words: dict[str, Any] = {}
    if named:
        data, words = _split(data, name, {column: parameter for parameter, all_ in named.items() for column in all_})
    source = open_dataset(data, name)
    source = source.named(name) if source is data else source

    def values(parameter: str) -> Any:
        if parameter not in named:
            return given[parameter]
        columns = {column: words[column] for column in named[parameter]}
        return columns if parameter.endswith("adjust") else next(iter(columns.values()))

    weights, subjects, adjust = (f"{prefix}{parameter}" for parameter in facts)
    n_rows = source.n_rows
    if given[weights] is not None:
        source.weights = _as_weights(values(weights), n_rows, name, weights)
    if given[subjects] is not None:
        source.subjects = as_words(values(subjects), n_rows, name, subjects)  # type: ignore[assignment]
    if given[adjust] is not None:
        source.covariates = _as_covariates(values(adjust), n_rows, name, adjust)
    if given["y"] is not None:
        source.labels = as_labels(values("y"), n_rows)
    return source


def _split(data: Any, name: str, columns: dict[str, str]) -> tuple[Any, dict[str, Any]]:
    """Take named columns out of a frame or of files; `columns` has the parameter that names each of them."""
    keys = data.known_columns if hasattr(data, "known_columns") else keys_of(data)
    for column, parameter in columns.items():
        if keys is None or column not in keys:
            close = get_close_matches(column, [str(key) for key in keys or ()], n=1)
            known = listed("column", keys) if keys else "no named columns"
            advice = f"Is {short(close[0])!r} meant?" if close else "Choose among these, or give the values themselves."
            raise InvalidValueError(
                f"is not a column of {name}, which has {known}", parameter=parameter, value=column, advice=advice
            )
    if hasattr(data, "known_columns"):
        return data.without(list(columns)), data.words(list(columns))
    assert keys is not None
    words = {column: frame_column(data, column) for column in columns}
    return frame_columns(data, [key for key in keys if key not in columns]), words


def frame_column(data: Any, column: Any) -> npt.NDArray[Any]:
    """Return a column of a frame of any library as an array."""
    found = (
        data.column(column)
        if hasattr(data, "schema") and not hasattr(data, "iloc") and hasattr(data, "column")
        else data[column]
    )
    found = found.compute() if is_dask(found) else found
    return np.array(found.to_pylist(), dtype=object) if hasattr(found, "to_pylist") else np.asarray(found)


def frame_columns(data: Any, columns: list[Any]) -> Any:
    """Return some columns of a frame of any library."""
    if hasattr(data, "select") and not hasattr(data, "iloc"):
        return data.select(columns)
    return data.sel({data.dims[1]: columns}) if hasattr(data, "dims") else data[columns]


def _as_weights(given: Any, n_rows: int | None, name: str, parameter: str) -> Float:
    weights = np.asarray(_on_host(given))
    weights = floats(weights) if weights.dtype.kind in "biufO" else weights
    _check_length(weights, n_rows, name, parameter)
    if weights.dtype.kind != "f":
        raise InvalidTypeError("does not have numbers", parameter=parameter, advice="Give a number for each row.")
    total = float(weights.sum())
    if not np.isfinite(total) or (weights < 0).any() or total == 0:
        problem = "must be non-negative, finite and not all zero"
        raise InvalidValueError(problem, parameter=parameter, advice="Give such weights, or None.")
    if not LEAST_WEIGHT < total < MOST_WEIGHT:
        problem = f"has a sum of {total:.3g}, outside [{LEAST_WEIGHT:g}, {MOST_WEIGHT:g}]"
        raise InvalidValueError(problem, parameter=parameter, advice="Divide the weights by their mean.")
    return weights.astype(np.float64, copy=False)


def _as_covariates(given: Any, n_rows: int | None, name: str, parameter: str) -> Float:
    """Return covariates as columns of numbers: words become zeros and ones, a column for each but the first."""
    if isinstance(given, dict):
        columns = given
    elif (keys := keys_of(given)) is not None:
        columns = {key: frame_column(given, key) for key in keys}
    else:
        table = np.asarray(_on_host(given))
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2:
            problem = f"has shape {table.shape}, but a column for each covariate is needed"
            raise InvalidTypeError(
                problem, parameter=parameter, advice=f"Give a table with a row for each row of {name}."
            )
        columns = {f"number {place}": column for place, column in enumerate(table.T)}
    coded = []
    for key, column in columns.items():
        _check_length(column, n_rows, name, parameter)
        values = column.tolist()
        missing = [_is_missing(value) for value in values]
        if any(missing):
            problem = f"has no value of {key!r} for row {missing.index(True)} of {name}"
            raise InvalidValueError(problem, parameter=parameter, advice="Fill it in, or leave such rows out.")
        try:
            numbers = np.array([float(value) for value in values])
        except (TypeError, ValueError):
            levels, places = np.unique(np.array([str(value) for value in values]), return_inverse=True)
            coded.append(np.eye(len(levels))[places.ravel()][:, 1:])
            continue
        if not np.isfinite(numbers).all():
            problem = (
                f"has a value of {key!r} that is not finite in row {int(np.argmin(np.isfinite(numbers)))} of {name}"
            )
            raise InvalidValueError(problem, parameter=parameter, advice="Fill it in, or leave such rows out.")
        coded.append(numbers[:, None])
    return np.column_stack(coded)


def as_words(given: Any, n_rows: int | None, name: str, parameter: str) -> npt.NDArray[Any]:
    """Return the subjects of rows as words; whole numbers have no decimal point."""
    # In a list, NumPy would take a missing value among words for a word.
    values = np.asarray(_on_host(given), dtype=object if isinstance(given, list | tuple) else None)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    _check_length(values, n_rows, name, parameter)
    if values.dtype.kind in "iub":
        return values.astype(np.str_)
    listed_ = values.tolist()
    missing = [_is_missing(value) for value in listed_]
    if any(missing):
        problem = f"names no subject for row {missing.index(True)} of {name}"
        advice = "Give every row its subject, or leave out rows whose subject is unknown."
        raise InvalidValueError(problem, parameter=parameter, advice=advice)
    return np.array([word(value) for value in listed_], dtype=np.str_)


def word(value: Any) -> str:
    """Return a value as a word: 3.0 as 3, and a missing one as the empty string."""
    if _is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _is_missing(value: Any) -> bool:
    if isinstance(value, str | bytes):
        return not value
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def _number_subjects(datasets: list[Source]) -> None:
    """Number the subjects of all datasets together: a subject that is in two of them has one number."""
    words = [np.asarray(data.subjects) for data in datasets]
    names, codes = np.unique(np.concatenate(words), return_inverse=True)
    if len(codes) == len(names):
        warn_user(
            "every subject has one row, so that naming the subjects changes nothing",
            advice="If `groups` has more than the subject, such as 309_1 for mouse 309, give the part that names it.",
        )
    parts = np.split(codes.ravel().astype(np.intp), np.cumsum([len(part) for part in words])[:-1])
    for data, part in zip(datasets, parts, strict=True):
        if part.size and (part == part[0]).all():
            raise InvalidValueError(
                f"{data.name} has rows of one subject only, but a minimum of 2 is required",
                advice="A finding in one subject may be special to it. Give rows of more subjects, or leave `groups` out.",
            )
        data.subjects, data.subject_names = part, names


def _check_length(values: Any, n_rows: int | None, name: str, parameter: str) -> None:
    if values.ndim != 1 or (n_rows is not None and len(values) != n_rows):
        rows = "a value per row is needed" if n_rows is None else f"{name} has {n_rows} rows"
        raise InvalidValueError(
            f"has shape {values.shape}, but {rows}", parameter=parameter, advice="Give one per row."
        )


def _on_host(given: Any) -> Any:
    return to_host(given) if looks_foreign(given) else given


# --- labels -----------------------------------------------------------------------------------------------------------


def as_labels(given: Any, n_rows: int | None) -> npt.NDArray[Any]:
    """Check labels of rows: one each, none missing, all of one sort."""
    given = _on_host(given)
    values = np.asarray(given)
    if values.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in given):
        # NumPy would turn the numbers among them into strings.
        values = np.array(list(given), dtype=object)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    _check_length(values, n_rows, "X", "y")
    if any(_is_missing(value) and value != "" for value in values.tolist()):
        raise InvalidValueError(
            "has missing values, but every row needs a label", parameter="y", advice="Drop those rows."
        )
    try:
        np.unique(values)
    except TypeError:
        problem, advice = "mixes types that cannot be sorted", "Give all strings or all integers."
        raise InvalidTypeError(problem, parameter="y", advice=advice) from None
    return values


def _by_label(whole: Source, target_label: Any) -> list[Source]:
    """Split a dataset into the target and one background for each other label."""
    if whole.labels is None:
        # scikit-learn's wording, which its checks look for.
        advice = "With `target_label`, fit needs one label per row."
        raise InvalidValueError("requires y to be passed, but the target y is None", advice=advice)
    labels = np.asarray(whole.labels)
    known = np.unique(labels).tolist()
    if np.ndim(target_label) != 0 or target_label not in known:
        problem = f"is not a label of a row; y has {listed('label', known)}"
        advice = "Choose one of these. In cross-validation, use stratified folds."
        raise InvalidValueError(problem, parameter="target_label", value=target_label, advice=advice)
    others = [label for label in known if label != target_label]
    if not others:
        advice = "Rows with another label are the background. In cross-validation, use stratified folds."
        raise InvalidValueError(f"every row has the label {target_label!r}", advice=advice)
    if not whole.again:
        whole = whole.loaded()
    names = dataset_names(len(known))
    return [_labelled(whole, labels == label, name) for label, name in zip([target_label, *others], names, strict=True)]


def _labelled(whole: Source, chosen: npt.NDArray[np.bool_], name: str) -> Source:
    if whole.rows is None:
        return Chosen(whole, chosen, name)
    return InMemory(take(whole.rows, np.flatnonzero(chosen)), name, whole.keys)._beside(whole, chosen)
