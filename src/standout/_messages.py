"""Errors and warnings with their facts as fields: problem, parameter, value, advice."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

LONGEST_NAME = 60
LONGEST_PATH = 200
_UNSET: Any = object()


class _Told(Exception):  # noqa: N818
    """An error or a warning in two parts: the problem and the advice. A parameter and its value may come first.

    Parameter names in the texts are in backticks. Other interfaces, such as the command line, replace these by their
    own names for the parameters.
    """

    def __init__(self, problem: str, *, advice: str = "", parameter: str | None = None, value: Any = _UNSET) -> None:
        self.problem, self.advice, self.parameter = problem, advice, parameter
        self.value = None if value is _UNSET else value
        self._has_value = value is not _UNSET
        super().__init__(problem)

    def phrased(self, names: Mapping[str, str] | None = None) -> str:
        """Return the text. `names` maps parameters to the names that replace them in the text."""
        text = f"{self.problem}. {self.advice}" if self.advice else f"{self.problem}."
        for name, option in (names or {}).items():
            text = text.replace(f"`{name}`=", f"{option} ").replace(f"`{name}`", option)
        if self.parameter is None:
            return text
        if names is not None and self.parameter in names:
            given = f"{names[self.parameter]} {short(self.value, LONGEST_PATH)}" if self._has_value else None
            return f"{given or names[self.parameter]} {text}"
        given = f"{self.parameter}={short(repr(self.value), LONGEST_PATH)}" if self._has_value else self.parameter
        return f"{given} {text}"

    __str__ = phrased


class InvalidValueError(_Told, ValueError):
    """A value that cannot be used."""


class InvalidTypeError(_Told, TypeError):
    """A value of a type that cannot be used."""


class MixedArraysError(InvalidTypeError, ValueError):
    """Arrays of different libraries or devices: a TypeError, and a ValueError for scikit-learn's checks."""


class FileError(_Told, OSError):
    """A file or folder that cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist."""


class CautionWarning(_Told, UserWarning):
    """A reason to be careful."""


class FindingWarning(CautionWarning):
    """A warning about a fitted result. The report shows the same facts and does not repeat the warning."""


def warn_user(problem: str, *, category: type[CautionWarning] = CautionWarning, **fields: Any) -> None:
    """Warn, and report the line of the first caller outside of this library and scikit-learn."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("standout", "sklearn"):
        frame = frame.f_back
        level += 1
    warnings.warn(category(problem, **fields), stacklevel=level)


def require_extra(module: str, extra: str, what: str) -> None:
    """Raise an error if an optional package is missing, with the command that installs it."""
    if find_spec(module) is None:
        package = "pillow" if module == "PIL" else module
        raise ImportError(f"{what} needs the package {package!r}. Install it with: pip install 'standout[{extra}]'")


@contextmanager
def collected_warnings() -> Iterator[list[Any]]:
    """Collect each warning for users once. The list is filled when the block ends.

    Warnings on the result of a fit are left out, because the report has the same facts.
    """
    messages: list[Any] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    kept = [one.message for one in caught if type(one.message) in (CautionWarning, UserWarning)]
    messages += {str(one): one for one in kept}.values()


def listed(noun: str, names: Iterable[Any], most: int = 5) -> str:
    """Return the first names, each shortened, and the number of further names."""
    every = list(names)
    some = ", ".join(repr(short(name)) if isinstance(name, str) else repr(name) for name in every[:most])
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{noun}{'s' if len(every) != 1 else ''} {some}{more}"


def choices(words: Collection[Any]) -> str:
    """Return the values to choose from."""
    return ", ".join(map(repr, words))


def short(text: Any, most: int = LONGEST_NAME) -> str:
    """Shorten a long text."""
    words = str(text)
    return words if len(words) <= most else f"{words[: most - 3]}..."


def shown(path: Any) -> str:
    """Return a path in quotes. A long path is cut at its beginning, because its end has the name of the file."""
    words = str(path)
    return repr(words if len(words) <= LONGEST_PATH else f"...{words[3 - LONGEST_PATH :]}")


def dataset_names(n_datasets: int) -> list[str]:
    """Return the names of the datasets of a fit in messages, the target first."""
    return ["the target", *(f"background {number}" for number in range(1, n_datasets))]
