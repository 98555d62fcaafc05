"""What is left of rows: without the mean of their subject, without what covariates explain, or the subjects' means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from standout._arrays import Array, Float, Rows, dense, double, product, row_blocks
from standout._checks import as_rows
from standout._messages import InvalidTypeError, InvalidValueError, warn_user
from standout._xp import is_foreign, like, looks_foreign, take, to_host
from standout.sources._base import Batch, InMemory, Source
from standout.sources._beside import Around, column_beside, own_weights
from standout.sources._subjects import Codes, Subjects, as_words, attached, joined_subjects

# Rows of a device that are multiplied with a matrix of zeros and ones at a time.
SOME_ROWS = 4096


class ByNumber(Around):
    """A source whose rows are changed by their numbers: every way of reading goes through its batches."""

    first = Source.first
    folded = Source.folded
    mapped = Source.mapped
    sample = Source.sample

    def look_ahead(self, count: int, rng: np.random.Generator) -> Rows:
        """Give rows to learn from before all are read."""
        return self.sample(count, rng)


@dataclass(frozen=True, eq=False)
class Removal:
    """What is taken off each row, by its number: ``(x - m) s + m - f C``, with the row's factors f.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,) or None
        Which row of `table` is taken off each row.
    factors : ndarray of shape (n_rows, q) or None
        What `table` is multiplied with, where a sum of its rows is taken off.
    table : array of shape (k, n_features)
    centre : array of shape (n_features,)
        Where rows are stretched about.
    stretch : float
        Makes up for the degrees of freedom that the removal has cost.
    """

    codes: Codes | None
    factors: Float | None
    table: Array
    centre: Array
    stretch: float
    needs_start: ClassVar[bool] = True

    def batch(self, batch: Batch) -> Batch:
        """Give a batch with what is left of its rows."""
        chosen = slice(batch.start, batch.start + batch.n_rows)
        if self.codes is not None:
            removed = take(self.table, self.codes[chosen])
        else:
            assert self.factors is not None
            removed = product(like(self.factors[chosen], self.table), self.table)
        rows = double(dense(batch.rows)) - removed
        return batch.with_rows((rows - self.centre) * self.stretch + self.centre)

    def rows(self, rows: Rows) -> Rows:
        """Refuse rows without numbers: `ByNumber` reads batches."""
        raise NotImplementedError


def _changed(dataset: Source, removal: Removal) -> Source:
    """Give a dataset after a removal: at once in memory, lazily else."""
    if isinstance(dataset, InMemory):
        return dataset.with_batch(removal.batch(dataset.batch()))
    return ByNumber(dataset, removal)


def _require_again(dataset: Source, what: str) -> None:
    if not dataset.again:
        raise InvalidTypeError(
            "{name} is an iterator of batches, which can be read only once, but {what} reads its rows twice",
            name=dataset.name,
            what=what,
            advice="Give an array, a frame, files (standout.scan) or a Dask collection.",
        )


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over rows, and how many these are."""

    count: int
    total: Array

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.count + other.count, self.total + other.total)


# --- subjects --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _SubjectSums:
    """The sums of the rows of each subject."""

    codes: Codes
    n_subjects: int
    needs_start: ClassVar[bool] = True
    needs_words: ClassVar[bool] = False

    def __call__(self, batch: Batch) -> _Sums:
        return _Sums(batch.n_rows, self._summed(batch))

    def _summed(self, batch: Batch) -> Array:
        codes = self.codes[batch.start : batch.start + batch.n_rows]
        if not is_foreign(batch.rows):
            places = (codes, np.arange(len(codes)))
            picked = sparse.csr_array((np.ones(len(codes)), places), (self.n_subjects, len(codes)))
            return np.asarray(dense(picked @ batch.rows), dtype=np.float64)
        total: Any = 0.0
        for start in range(0, len(codes), SOME_ROWS):
            some = codes[start : start + SOME_ROWS]
            ones = (np.arange(self.n_subjects)[:, None] == some).astype(np.float64)
            rows = double(batch.sliced(start, min(start + SOME_ROWS, len(codes))).rows)
            total = total + product(like(ones, rows), rows)
        return total


def subject_means(dataset: Source, what: str) -> tuple[Array, Subjects, npt.NDArray[np.intp]]:
    """Give the mean row of each subject of a dataset, its subjects, and which of all subjects these are."""
    _require_again(dataset, what)
    subjects = dataset.subjects
    if subjects is None:
        raise InvalidValueError(
            "{what} needs to know whose rows they are", what=what, advice="Name the subject of each row: {p.groups}."
        )
    counts = np.bincount(subjects.codes, minlength=len(subjects.names))
    here = np.flatnonzero(counts)
    place = np.zeros(len(counts), dtype=np.int32)
    place[here] = np.arange(len(here))
    found: _Sums = dataset.summed(_SubjectSums(place[subjects.codes], len(here)))
    subjects.checked(found.count, dataset.name)
    sums = found.total
    return sums / like(counts[here].astype(np.float64), sums)[:, None], subjects, here


def within_subjects(dataset: Source) -> Source:
    """Give a dataset without the means of its subjects: what varies inside of them.

    The variance is that of rows about their subject's true mean: the degrees of freedom that the means have cost are
    made up for.
    """
    means, subjects, here = subject_means(dataset, "variation='within'")
    n_rows, n_subjects = len(subjects.codes), len(here)
    if n_rows == n_subjects:
        raise InvalidValueError(
            "every subject of {name} has one row, and nothing varies within it",
            name=dataset.name,
            advice="Leave {p.variation} out.",
        )
    place = np.zeros(len(subjects.names), dtype=np.int32)
    place[here] = np.arange(n_subjects)
    nothing = 0.0 * means[0, :]
    stretch = float(np.sqrt(n_rows / (n_rows - n_subjects)))
    return _changed(dataset, Removal(place[subjects.codes], None, means, nothing, stretch))


def between_subjects(datasets: Sequence[Source]) -> list[Source]:
    """Give the means of the subjects of each dataset as datasets in memory: what varies from subject to subject."""
    found, words = [], []
    for dataset in datasets:
        means, subjects, here = subject_means(dataset, "variation='between'")
        found.append(InMemory(means, dataset.name, dataset.columns))
        found[-1].keys = dataset.keys
        words.append(subjects.names[here])
    return attached(found, joined_subjects(words))


# --- covariates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Products:
    """The sums of rows, and of their products with factors."""

    factors: Float
    origin: Array
    needs_start: ClassVar[bool] = True
    needs_words: ClassVar[bool] = False

    def __call__(self, batch: Batch) -> _Sums:
        factors = self.factors[batch.start : batch.start + batch.n_rows]
        start, total = 0, 0.0 * self.origin
        for block in row_blocks(batch.rows):
            rows = double(dense(block)) - self.origin
            some = product(like(factors[start : start + rows.shape[0]].T, rows), rows)
            start, total = start + rows.shape[0], total + some
        return _Sums(batch.n_rows, total)


def adjusted(dataset: Source, covariates: Any, parameter: str = "adjust") -> Source:
    """Give a dataset without what covariates explain: residuals of a linear regression of each column.

    Means stay as they are. The degrees of freedom that the covariates have cost are made up for.

    Parameters
    ----------
    dataset : Source
        One that can be read again: it is read once for the coefficients.
    covariates : list of str, or table of shape (n_rows, q)
        Names of columns kept beside the rows, or the covariates themselves. Words are categories.
    """
    _require_again(dataset, "taking out covariates")
    design = _design(covariates, dataset, parameter)
    n_rows = design.shape[0]
    given = own_weights(dataset)
    weights = np.ones(n_rows) if given is None else given
    centred = design - weights @ design / weights.sum()
    root = np.sqrt(weights)[:, None]
    scale = np.sqrt(np.mean((root * centred) ** 2, axis=0))
    centred = centred[:, scale > 1e-12 * (np.abs(design).max(axis=0, initial=0.0) + 1e-300)]
    _, sizes, turn = np.linalg.svd(root * centred, full_matrices=False)
    rank = int(np.sum(sizes > 1e-10 * sizes.max(initial=0.0)))
    if rank == 0:
        # A batch that is the dataset itself, for instance.
        warn_user(
            "the covariates are the same in all rows of {name}, so that nothing is taken out there",
            name=dataset.name,
            advice="If they differ between the datasets, their effect cannot be told from what stands out.",
        )
    if n_rows - 1 - rank < 2:
        raise InvalidValueError(
            "{n_covariates} covariates explain all of the {limit} rows of {name}",
            n_covariates=rank,
            limit=n_rows,
            name=dataset.name,
            advice="Give fewer covariates, or more rows.",
        )
    # Orthonormal factors of the covariates: with them the coefficients are products, without a solve.
    unit = centred @ turn[:rank].T / sizes[:rank]
    origin = double(dense(dataset.first(1)))[0, :]
    share = weights / weights.sum()
    found: _Sums = dataset.summed(_Products(np.column_stack([share, unit * weights[:, None]]), origin))
    sums = found.total
    centre = sums[0, :] + origin
    stretch = float(np.sqrt((n_rows - 1) / (n_rows - 1 - rank)))
    return _changed(dataset, Removal(None, unit, sums[1:, :], centre, stretch))


def check_covariate_rows(given: int, n_rows: int, name: str, parameter: str) -> None:
    """Check that there are covariates of every row."""
    if given != n_rows:
        raise InvalidValueError(
            "has {given} rows, but {name} has {limit}",
            parameter=parameter,
            given=given,
            name=name,
            limit=n_rows,
            advice="Give the covariates of each row, in the order of the rows.",
        )


def _design(covariates: Any, dataset: Source, parameter: str) -> Float:
    """Give covariates as columns of numbers: categories as zeros and ones, one for each but the first."""
    if _are_names(covariates):
        names = [covariates] if isinstance(covariates, str) else list(covariates)
        columns = {name: column_beside(dataset, name, parameter) for name in names}
    elif hasattr(covariates, "columns"):
        columns = {str(name): np.asarray(covariates[name]) for name in covariates.columns}
    else:
        values = np.asarray(to_host(covariates) if looks_foreign(covariates) else covariates)
        values = values[:, None] if values.ndim == 1 else values
        if values.ndim != 2:
            raise InvalidTypeError(
                "has shape {shape}, but a column for each covariate is needed",
                parameter=parameter,
                shape=values.shape,
                advice="Give a table with a row for each row of {name}.",
                name=dataset.name,
            )
        columns = {f"number {place}": column for place, column in enumerate(values.T)}
    n_rows = dataset.count_rows()
    coded = []
    for name, column in columns.items():
        check_covariate_rows(len(column), n_rows, dataset.name, parameter)
        coded.append(_coded(column, name, dataset.name, parameter))
    return np.column_stack(coded) if coded else np.zeros((n_rows, 0))


def _coded(column: npt.NDArray[Any], name: str, whose: str, parameter: str) -> Float:
    """Give a covariate as columns of numbers."""
    try:
        numbers = np.array(["nan" if value is None or value == "" else value for value in column.tolist()], dtype=float)
    except (TypeError, ValueError):
        numbers = None
    missing = (
        np.array([value is None or value != value or value == "" for value in column.tolist()], dtype=bool)
        if numbers is None
        else ~np.isfinite(numbers)
    )
    if missing.any():
        raise InvalidValueError(
            "has no value of {covariate} for row {row} of {name}",
            parameter=parameter,
            covariate=repr(name),
            row=int(np.argmax(missing)),
            name=whose,
            advice="Fill it in, or leave such rows out.",
        )
    if numbers is not None:
        return numbers[:, None]
    levels, places = np.unique(column.astype(str), return_inverse=True)
    return np.eye(len(levels))[places.ravel()][:, 1:]


def _are_names(covariates: Any) -> bool:
    if isinstance(covariates, str):
        return True
    return isinstance(covariates, list | tuple) and all(isinstance(name, str) for name in covariates)


# --- differences within subjects -------------------------------------------------------------------------------------


def differences(rows: Any, groups: Any, order: Any) -> Float:
    """What has changed within each subject?

    The rows of a subject are put in order, and each is taken off the next one: after minus before, or one replicate
    minus another. Differences are divided by √2, so that those of replicates have the variance of a row about its
    subject. Whatever a subject has in all of its rows cancels.

    For a before/after design take the differences of after and before as the target, and those of two measurements of
    the same state as the background: what stands out is the change, beyond noise.

    Parameters
    ----------
    rows : array-like or frame of shape (n_rows, n_features)
    groups : array-like of shape (n_rows,)
        The subject of each row.
    order : array-like of shape (n_rows,)
        What orders the rows of a subject: time, visit, number of the replicate. Words are in the order of the alphabet.

    Returns
    -------
    ndarray of shape (n_rows - n_subjects, n_features)
        Subject by subject, in the order of their names.

    Examples
    --------
    >>> import numpy as np
    >>> import standout
    >>> rows = np.array([[1.0, 5.0], [2.0, 5.0], [10.0, 0.0], [14.0, 0.0]])
    >>> standout.differences(rows, groups=["a", "a", "b", "b"], order=[0, 1, 0, 1]) * np.sqrt(2)
    array([[1., 0.],
           [4., 0.]])
    """
    numbers = np.asarray(double(dense(as_rows(rows, "rows", min_rows=2, finite=True))))
    if order is None:
        problem, advice = "is not given, but tells which row comes before which", "Give the time of each row."
        raise InvalidValueError(problem, parameter="order", advice=advice)
    words = as_words(groups, len(numbers), "rows", "groups")
    times = np.asarray(order)
    if times.shape != (len(numbers),):
        raise InvalidValueError(
            "has shape {shape}, but there are {limit} rows",
            parameter="order",
            shape=times.shape,
            limit=len(numbers),
            advice="Give the time of each row.",
        )
    times = np.unique(times, return_inverse=True)[1].ravel()
    places = np.lexsort((times, words))
    same = words[places][1:] == words[places][:-1]
    if np.any(same & (times[places][1:] == times[places][:-1])):
        twice = words[places][1:][same & (times[places][1:] == times[places][:-1])][0]
        raise InvalidValueError(
            "has two rows of subject {subject} at the same place",
            parameter="order",
            subject=repr(str(twice)),
            advice="Average such rows, or give them different places.",
        )
    if not same.any():
        raise InvalidValueError(
            "names no subject twice, and there is no difference to take",
            parameter="groups",
            advice="Give at least two rows of a subject.",
        )
    found: Float = np.diff(numbers[places], axis=0)[same] / np.sqrt(2.0)
    return found
