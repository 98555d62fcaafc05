"""What is compared with what: the question of an exploration, as a record of rows, method and parameters."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import numpy.typing as npt

import standout
from standout._messages import InvalidValueError

Mask = npt.NDArray[np.bool_]

# The methods, and the class of each. PCA has no background.
METHODS = {
    "dpca": "DiscriminativePCA",
    "cpca": "ContrastivePCA",
    "kdpca": "KernelDiscriminativePCA",
    "kcpca": "KernelContrastivePCA",
    "pca": "DiscriminativePCA",
    "kpca": "KernelDiscriminativePCA",
}
ALONE = ("pca", "kpca")
# Parameters that mean something without a background.
OF_ONE = ("n_components", "random_state", "kernel", "gamma", "degree", "kernel_params")


@cache
def has(method: str, parameter: str) -> bool:
    """Tell whether a method has a parameter."""
    known = signature(getattr(standout, METHODS[method])).parameters
    return parameter in known and (method not in ALONE or parameter in OF_ONE)


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowSet:
    """Some rows of a table, one bit for each row of the table.

    Attributes
    ----------
    n_rows : int
        Number of rows of the table.
    bits : bytes

    Examples
    --------
    >>> import numpy as np
    >>> from standout.explorer import RowSet
    >>> first, last = RowSet.of(np.arange(9) < 4), RowSet.numbered([8], 9)
    >>> (first | last).count, (first - first).count, (~last).count
    (5, 0, 8)
    """

    n_rows: int
    bits: bytes = field(repr=False)

    @classmethod
    def of(cls, mask: Mask) -> RowSet:
        """Take the rows for which an array is true."""
        return cls(len(mask), np.packbits(mask).tobytes())

    @classmethod
    def numbered(cls, numbers: Sequence[int] | npt.NDArray[np.intp], n_rows: int) -> RowSet:
        """Take rows by their numbers."""
        mask = np.zeros(n_rows, dtype=bool)
        mask[np.asarray(numbers, dtype=np.intp)] = True
        return cls.of(mask)

    @property
    def mask(self) -> Mask:
        """Whether each row is one of them."""
        return np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.n_rows).view(bool)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(np.count_nonzero(self.mask))

    def __or__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask | other.mask)

    def __and__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask & other.mask)

    def __sub__(self, other: RowSet) -> RowSet:
        return RowSet.of(self.mask & ~other.mask)

    def __invert__(self) -> RowSet:
        return RowSet.of(~self.mask)

    def written(self) -> str:
        """Give the rows as a short text."""
        return base64.b64encode(zlib.compress(self.bits, 6)).decode()

    @classmethod
    def read(cls, text: str, n_rows: int) -> RowSet:
        """Read what `written` gave."""
        size = -(-n_rows // 8)
        try:
            bits = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
        except zlib.error:
            bits = b""
        if len(bits) != size:
            raise ValueError
        return cls.of(cls(n_rows, bits).mask)


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups that the rows of a table are in: those of a column, or the files that they came from.

    Attributes
    ----------
    names : tuple of str
    codes : ndarray of shape (n_rows,)
        The number of each row's group.

    Examples
    --------
    >>> from standout.explorer import Groups
    >>> Groups.of(["well", "ill", "well"]).rows(["well"]).count
    2
    """

    names: tuple[str, ...]
    codes: npt.NDArray[np.intp]
    _known: dict[tuple[str, ...], RowSet] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, words: Sequence[Any]) -> Groups:
        """Number groups in the order of their names."""
        names, codes = np.unique(np.asarray([str(word) for word in words], dtype=object), return_inverse=True)
        return cls(tuple(names.tolist()), codes.ravel())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def rows(self, names: Sequence[str]) -> RowSet:
        """Give the rows of some groups."""
        key = tuple(names)
        if key not in self._known:
            unknown = [name for name in names if name not in self.names]
            if unknown:
                problem = "there is no group {name!r}"
                raise InvalidValueError(problem, name=unknown[0], advice="Choose among the groups of the table.")
            self._known[key] = RowSet.of(np.isin(self.codes, [self.names.index(name) for name in names]))
        return self._known[key]


# --- the question -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """The target or a background: whole groups, rows that were chosen by hand, or all rows that are not the target.

    Attributes
    ----------
    groups : tuple of str
    rows : RowSet or None
        Rows chosen by hand.
    rest : bool
        Whether it is all rows that are not the target.
    called : str
        What it is called, if not by its groups.

    Examples
    --------
    >>> from standout.explorer import Side
    >>> Side(rest=True).name
    'all other rows'
    """

    groups: tuple[str, ...] = ()
    rows: RowSet | None = None
    rest: bool = False
    called: str = field(default="", compare=False)

    @property
    def name(self) -> str:
        """What it is called."""
        if self.called:
            return self.called
        return "all other rows" if self.rest else "chosen rows" if self.rows is not None else " + ".join(self.groups)

    @property
    def part(self) -> str:
        """What some of its rows are called."""
        return self.name if self.rows is not None else f"part of {self.name}"


@dataclass(frozen=True)
class Question:
    """What is compared with what, and how.

    Attributes
    ----------
    target : Side
    backgrounds : tuple of Side
    left_out : RowSet or None
        Rows that are on no side.
    method : str
        A key of `METHODS`.
    parameters : tuple of (name, value)
        Parameters that were set, sorted by name.

    Examples
    --------
    >>> from standout.explorer import Groups, Question, Side
    >>> question = Question(Side(groups=("ill",)), (Side(rest=True),))
    >>> [rows.count for rows in question.rows(Groups.of(["well", "ill", "well"]))]
    [1, 2]
    """

    target: Side
    backgrounds: tuple[Side, ...] = ()
    left_out: RowSet | None = None
    method: str = "dpca"
    parameters: tuple[tuple[str, Any], ...] = ()

    @property
    def compared(self) -> tuple[Side, ...]:
        """The backgrounds that the method uses."""
        return () if self.method in ALONE else self.backgrounds

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the method's class that were set."""
        given = {name: value for name, value in self.parameters if has(self.method, name)}
        weights = given.get("background_weights")
        fitting = len(self.compared) if weights is None or isinstance(weights, str) else len(weights)
        if "background_weights" in given and (not self.compared or fitting != len(self.compared)):
            # They were given for other backgrounds.
            del given["background_weights"]
        return given

    def rows(self, groups: Groups) -> list[RowSet]:
        """Give the rows of the target and of each background that is used."""
        return [rows_of(side, self, groups) for side in (self.target, *self.compared)]


@dataclass(frozen=True)
class View:
    """What the picture shows.

    Attributes
    ----------
    picture : {"answer", "pca", "held"}
        The scores of the answer, those of PCA of all rows, or those of an earlier question.
    held : Question or None
    x, y : int
        The components along the axes, from 0.
    colour : str
        "role", "group", "label", or "column " and the name of a column.
    """

    picture: str = "answer"
    held: Question | None = None
    x: int = 0
    y: int = 1
    colour: str = "role"


@dataclass(frozen=True)
class State:
    """A question and the picture that goes with it.

    Attributes
    ----------
    question : Question
    view : View
    """

    question: Question
    view: View = View()

    @property
    def pictured(self) -> Question:
        """The question whose scores are drawn."""
        if self.view.picture == "held" and self.view.held is not None:
            return self.view.held
        if self.view.picture == "pca":
            everything = Side(rest=True)
            return replace(self.question, target=everything, backgrounds=(), method="pca", parameters=self._few)
        return self.question

    @property
    def _few(self) -> tuple[tuple[str, Any], ...]:
        return tuple(pair for pair in self.question.parameters if pair[0] == "n_components")


def blank(groups: Groups) -> State:
    """What is asked before anything has been chosen? PCA of all rows.

    Parameters
    ----------
    groups : Groups

    Returns
    -------
    State

    Examples
    --------
    >>> from standout.explorer import Groups, blank
    >>> blank(Groups.of(["well", "ill"])).question.target.name
    'all rows'
    """
    return State(Question(Side(groups=groups.names, called="all rows")))


def rows_of(side: Side, question: Question, groups: Groups) -> RowSet:
    """Give the rows of a side of a question, without those that are left out."""
    if side.rest:
        # The target of PCA's picture is all rows.
        found = RowSet.of(np.ones(groups.n_rows, dtype=bool))
        if side is not question.target:
            found -= rows_of(question.target, question, groups)
    else:
        found = side.rows if side.rows is not None else groups.rows(side.groups)
    return found if question.left_out is None else found - question.left_out
