"""Sums by fold: one pass gives the sums of every fold, and those of all other folds follow by adding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from standout._arrays import BLOCK_BYTES, Array, bytes_held
from standout._xp import DEVICE_BLOCK_BYTES, concat, device, indices_like, is_foreign, like, namespace, take
from standout.sources import Batch, Source, Subjects, added

Sums = TypeVar("Sums")


def fold_of_rows(start: int, count: int, n_folds: int) -> npt.NDArray[np.intp]:
    """Give the fold of each of `count` consecutive rows, from the row number `start` on.

    Of every `n_folds` consecutive rows each fold gets one, in an order that a hash of the row number decides. So folds
    are of equal size, do not follow a period in the rows, and are the same however the rows are cut into batches.
    """
    first, last = start // n_folds, -(-(start + count) // n_folds)
    numbers = np.arange(first * n_folds, last * n_folds, dtype=np.uint64)
    folds = np.argsort(_hashed(numbers).reshape(-1, n_folds), axis=1).ravel()
    skipped = start - first * n_folds
    return folds[skipped : skipped + count]


def rows_of_folds(start: int, count: int, n_folds: int, n_dealt: int, reference: Array) -> list[Array]:
    """Give the places of the rows of each fold among `count` consecutive ones, on the device of a reference.

    These are the folds of `fold_of_rows`, modulo `n_folds`. Sorting millions of numbers on the host would take longer
    than a fit on the device does.
    """
    xp, place = namespace(reference), device(reference)
    first, last = -(-start // n_dealt), (start + count) // n_dealt
    if first >= last:
        folds = fold_of_rows(start, count, n_dealt) % n_folds
        return [indices_like(np.flatnonzero(folds == fold), reference) for fold in range(n_folds)]
    numbers = xp.arange(first * n_dealt, last * n_dealt, dtype=xp.int64, device=place)
    hashed = xp.reshape(_hashed_on_device(numbers), (last - first, n_dealt))
    # The row of fold k, of all that rows were dealt into, is the one whose rank is the number of smaller hashes.
    ranks = xp.count_nonzero(hashed[:, None, :] < hashed[:, :, None], axis=-1)
    places = xp.astype(ranks, xp.int64) + xp.reshape(numbers, (last - first, n_dealt))[:, :1] - start
    # Rows before the first whole round and after the last one.
    ends = np.r_[0 : first * n_dealt - start, last * n_dealt - start : count].astype(np.intp)
    before, after = first * n_dealt - start, start + count - last * n_dealt
    fold_of_ends = np.r_[fold_of_rows(start, before, n_dealt), fold_of_rows(last * n_dealt, after, n_dealt)] % n_folds
    return [
        concat(
            [
                xp.reshape(places[:, fold::n_folds], (-1,)),
                indices_like(ends[fold_of_ends == fold], reference),
            ]
        )
        for fold in range(n_folds)
    ]


def fold_of_subjects(counts: npt.NDArray[np.int64], n_folds: int) -> npt.NDArray[np.intp]:
    """Give the fold of each subject, from the number of rows that each has in each dataset.

    A subject is in the same fold in all datasets. Subjects of the same datasets are dealt by decreasing number of rows,
    to and fro, so that every fold gets about as many subjects and rows; a hash decides among equal ones.
    """
    folds = np.empty(counts.shape[1], dtype=np.intp)
    _, kinds = np.unique(counts > 0, axis=1, return_inverse=True)
    first = 0
    for kind in range(int(kinds.max()) + 1):
        members = np.flatnonzero(kinds.ravel() == kind)
        order = np.lexsort((_hashed(members.astype(np.uint64)), -counts[:, members].sum(axis=0)))
        rounds, steps = np.divmod(np.arange(len(members)), n_folds)
        folds[members[order]] = (np.where(rounds % 2, n_folds - 1 - steps, steps) + first) % n_folds
        # The next ones go on where these end, so that no fold gets the odd ones of all.
        first += len(members)
    return folds


def dealt_folds(subjects: Subjects | None, n_folds: int) -> npt.NDArray[np.intp] | None:
    """Give the fold of each row by its subject; None without subjects, where it follows from the number of the row."""
    return None if subjects is None else fold_of_subjects(subjects.counts, n_folds)[subjects.codes]


def most_folds(wanted: int, datasets: Sequence[Source]) -> int:
    """Give the number of folds that rows are dealt into: no more than the dataset with the fewest subjects has."""
    return min([wanted, *(part.subjects.n_least for part in datasets if part.subjects is not None)])


def folds_of_numbers(
    numbers: npt.NDArray[np.intp], n_dealt: int, dealt: npt.NDArray[np.intp] | None
) -> npt.NDArray[np.intp]:
    """Give the fold of each row by its number: by its subject if rows were `dealt` so."""
    every = fold_of_rows(0, int(numbers.max(initial=-1)) + 1, n_dealt) if dealt is None else dealt
    return every[numbers]


def folds_of_datasets(
    counts: Sequence[int], datasets: Sequence[Source], n_folds: int, n_dealt: int
) -> list[npt.NDArray[np.intp]]:
    """Give the fold of each row of each dataset: of its `n_dealt` folds, those that are equal modulo `n_folds`."""
    return [
        folds_of_numbers(np.arange(count), n_dealt, dealt_folds(dataset.subjects, n_dealt)) % n_folds
        for count, dataset in zip(counts, datasets, strict=True)
    ]


def _hashed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scramble whole numbers (the finaliser of SplitMix64; Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _hashed_on_device(numbers: Array) -> Array:
    """Scramble whole numbers as `_hashed` does, in an order that signed numbers have."""
    mixed = (numbers + 1) * _signed(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        # Shifts of signed numbers repeat the sign, which is taken off.
        mixed = (mixed ^ ((mixed >> shift) & (2 ** (64 - shift) - 1))) * _signed(factor)
    return mixed ^ -(2**63)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


@dataclass(frozen=True, eq=False)
class Folds(Generic[Sums]):
    """The sums of each fold of a dataset; None for a fold without rows.

    Attributes
    ----------
    sums : tuple
        For each fold something with a ``+`` and a ``count``, such as moments.
    n_dealt : int
        Number of folds that the rows were dealt into at first. Rows of fold k of them are in fold k modulo `n_folds`.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.moments import gather, gather_folds
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> folds = gather_folds(X, 5)
    >>> folds.count, [part.count for part in folds.sums], folds.without(0).count
    (20, [4, 4, 4, 4, 4], 16)
    >>> np.allclose(folds.total().covariance(), gather(X).covariance())
    True
    """

    sums: tuple[Sums | None, ...]
    n_dealt: int

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + bytes_held(self)

    @cached_property
    def _total(self) -> Sums:
        return _sum(self.sums)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.sums)

    @property
    def count(self) -> int:
        """Number of rows of all folds."""
        counts: list[int] = [part.count for part in self.sums if part is not None]  # type: ignore[attr-defined]
        return sum(counts)

    def total(self) -> Sums:
        """Give the sums over all rows."""
        return self._total

    def without(self, fold: int) -> Sums:
        """Give the sums over the rows of all other folds."""
        return _sum([part for number, part in enumerate(self.sums) if number != fold])

    def others(self) -> Iterator[Sums]:
        """Give, for each fold in turn, the sums over the rows of all other folds.

        The rows of the fold are taken off those of all, where that can be done and costs few digits.
        """
        total: Any = self._total
        if not hasattr(total, "without"):
            # Three additions each.
            before = [None, *accumulate(self.sums[:-1], added)]
            after = [None, *accumulate(self.sums[:0:-1], added)][::-1]
            yield from (_sum(pair) for pair in zip(before, after, strict=True))
            return
        for number, part in enumerate(self.sums):
            left = total if part is None else total.without(part)
            yield self.without(number) if left is None else left

    def fewer(self, n_folds: int) -> Folds[Sums]:
        """Give the same rows in at most so many folds."""
        n_folds = self._at_most(n_folds)
        if n_folds == self.n_folds:
            return self
        sums = tuple(reduce(added, self.sums[number::n_folds], None) for number in range(n_folds))
        return Folds(sums, self.n_dealt)

    def _at_most(self, n_folds: int) -> int:
        """Give the largest number of folds for which rows of fold k, of those dealt, are in fold k modulo it."""
        if n_folds >= self.n_folds or self.n_folds == self.n_dealt:
            return min(n_folds, self.n_folds)
        # Folds that were put together before: only a divisor of their number keeps the rule.
        return next(number for number in range(max(n_folds, 1), 0, -1) if self.n_folds % number == 0)

    def mapped(self, function: Callable[[Sums], Any]) -> Folds[Any]:
        """Give what a function makes of the sums of each fold."""
        return Folds(tuple(None if part is None else function(part) for part in self.sums), self.n_dealt)

    def __add__(self, other: Folds[Sums]) -> Folds[Sums]:
        """Give the sums over the rows of both, fold by fold."""
        return Folds(tuple(map(added, self.sums, other.sums)), self.n_dealt)


def _sum(parts: Sequence[Sums | None]) -> Sums:
    total: Sums | None = reduce(added, parts, None)
    assert total is not None
    return total


@dataclass(frozen=True, eq=False)
class FoldPart:
    """The function that sums up each fold of a batch. It can be sent to other processes.

    Attributes
    ----------
    part : callable
        What sums up the rows of one fold.
    n_folds : int
    n_dealt : int
        Number of folds that rows are dealt into: those of fold k of them are summed up in fold k modulo `n_folds`.
    dealt : ndarray of shape (n_rows,) or None
        The fold of each row, where whole subjects are dealt. None deals rows by their numbers.
    """

    part: Callable[[Batch], Any]
    n_folds: int
    n_dealt: int
    dealt: npt.NDArray[np.intp] | None = None

    # For sources that know the numbers of their rows only after a pass.
    needs_start: ClassVar[bool] = True
    # Ids, labels and groups of the rows need not be read.
    needs_words: ClassVar[bool] = False

    def __call__(self, batch: Batch) -> Folds[Any]:
        """Sum up the folds of these rows, a block at a time."""
        # A block has enough rows of each fold for a product to be worth its merge.
        width = max(batch.rows.shape[1], 1)
        # Whether rows are kept is decided by all rows of the batch, not by those of a fold.
        part = self.part.of_width(batch.n_rows, width) if hasattr(self.part, "of_width") else self.part
        on_device = is_foreign(batch.rows)
        if on_device and batch.weights is None and hasattr(part, "of_folds"):
            chosen = self._chosen(batch)
            sums = part.of_folds(batch.rows, [some for some in chosen if some.shape[0]])
            if sums is not None:
                return Folds(tuple(sums.pop(0) if some.shape[0] else None for some in chosen), self.n_dealt)
        n_bytes = DEVICE_BLOCK_BYTES if on_device else BLOCK_BYTES
        size = self.n_folds * max(2 * width, 2 * n_bytes // (8 * width))
        choose = take if getattr(part, "keeps_rows", True) else Copies()
        total: Folds[Any] | None = None
        for first in range(0, batch.n_rows, size):
            block = batch.sliced(first, first + size)
            parts = (part(_taken(block, some, choose)) if some.shape[0] else None for some in self._chosen(block))
            folds = Folds(tuple(parts), self.n_dealt)
            total = folds if total is None else total + folds
        assert total is not None
        return total

    def over_batches(self, batches: Iterable[Batch]) -> Folds[Any] | None:
        """Sum up the folds of batches on a device all together; None if that cannot be done, or costs accuracy."""
        if not hasattr(self.part, "over_folds"):
            return None
        found = self.part.over_folds((batch.rows, self._chosen(batch)) for batch in batches)
        return None if found is None else Folds(tuple(found), self.n_dealt)

    def _chosen(self, batch: Batch) -> list[Array]:
        """Give the places of the rows of each fold in a batch, on the device of the rows."""
        if self.dealt is None and is_foreign(batch.rows):
            return rows_of_folds(batch.start, batch.n_rows, self.n_folds, self.n_dealt, batch.rows)
        folds = self._folds(batch.start, batch.n_rows) % self.n_folds
        return [indices_like(np.flatnonzero(folds == fold), batch.rows) for fold in range(self.n_folds)]

    def _folds(self, start: int, count: int) -> npt.NDArray[np.intp]:
        if self.dealt is None:
            return fold_of_rows(start, count, self.n_dealt)
        # Rows beyond those whose subjects are known are refused once all are counted.
        folds = self.dealt[start : start + count]
        return folds if len(folds) == count else np.concatenate([folds, np.zeros(count - len(folds), dtype=np.intp)])


def _taken(block: Batch, chosen: Array, choose: Callable[[Any, Any], Any]) -> Batch:
    """Give some rows of a block with their weights; ids, labels and groups are no longer needed."""
    weights = None if block.weights is None else take(like(block.weights, block.rows), chosen)
    return Batch(choose(block.rows, chosen), weights=weights, origin=block.origin)


class Copies:
    """Chosen rows, copied to the same memory again and again: new memory for each copy costs more than the copy."""

    def __init__(self) -> None:
        self._memory: Any = None

    def __call__(self, rows: Any, chosen: npt.NDArray[np.intp]) -> Any:
        """Copy rows by their numbers; the next call overwrites them."""
        if type(rows) is not np.ndarray:
            return take(rows, chosen)
        if self._memory is None or len(self._memory) < len(chosen):
            self._memory = np.empty((len(chosen) + len(chosen) // 4, rows.shape[1]), dtype=rows.dtype)
        copy = self._memory[: len(chosen)]
        # Numbers are known to be in range; other modes than "raise" write to `out` without a buffer.
        return np.take(rows, chosen, axis=0, out=copy, mode="clip")
