"""Errors and warnings as facts: what is wrong, which parameter and value, which limit, what to do.

The library, the command line and the report phrase the same facts each in its own words: a parameter is
``shrinkage="auto"`` in Python and ``--shrinkage auto`` on the command line. A message is therefore a template for
`str.format`, never an f-string. Three kinds of fields can stand in it:

- ``{columns}``, also ``{value}`` and ``{limit}``: a fact, given by keyword;
- ``{p.shrinkage}`` and ``{p.shrinkage:auto}``: a parameter, and a parameter with a value;
- ``{v.auto}`` and ``{v.None}``: a value as a user would write it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Iterable
from importlib.util import find_spec
from typing import Any, NoReturn

# Packages that are installed under another name than they are imported by.
INSTALLED_AS = {"PIL": "pillow", "sklearn": "scikit-learn"}
LONGEST_NAME = 60
LONGEST_PATH = 200
_UNSET: Any = object()


class Names:
    """How Python names parameters and writes values; the command line has a subclass."""

    def parameter(self, name: str) -> str:
        """Name a parameter."""
        return name

    def setting(self, name: str, value: Any) -> str:
        """Write a parameter with a value."""
        return f"{name}={short(repr(value), LONGEST_PATH)}"

    def value(self, word: str) -> str:
        """Write a value: a string in quotes, None without."""
        return word if word in ("None", "True", "False") else repr(word)

    def fact(self, value: Any) -> Any:
        """Give a fact as it is to be written: a page marks names from the data."""
        return value


PYTHON = Names()


class _Parameters:
    """Give the parameter that a template asks for as ``p.name``."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, name: str) -> _Parameter:
        return _Parameter(self._names, name)


class _Parameter:
    def __init__(self, names: Names, name: str) -> None:
        self._names, self._name = names, name

    def __format__(self, value: str) -> str:
        return self._names.setting(self._name, _read(value)) if value else self._names.parameter(self._name)


class _Values:
    """Give the value that a template asks for as ``v.word``."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __getattr__(self, word: str) -> str:
        return self._names.value(word.replace("_", "-"))


def _read(word: str) -> Any:
    """Read a value in a template: a number, None, True, False, or else a string."""
    known = {"None": None, "True": True, "False": False}
    if word in known:
        return known[word]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


class Message:
    """What is wrong and what to do about it, to be phrased by whoever shows it.

    Attributes
    ----------
    problem, advice : str
        Templates: see the module. The problem comes without its final full stop.
    parameter : str or None
        The parameter that is wrong. The message then starts with it and its value.
    value, limit : object
        The value that was given, and what it had to keep to.
    facts : dict
        What the templates name beside parameters.

    Examples
    --------
    >>> from standout._messages import Message
    >>> message = Message("is outside [0, 1]", parameter="shrinkage", value=1.5, advice="Use {v.auto} or a number.")
    >>> message.phrased()
    "shrinkage=1.5 is outside [0, 1]. Use 'auto' or a number."
    """

    def __init__(
        self,
        problem: str,
        *,
        advice: str = "",
        parameter: str | None = None,
        value: Any = _UNSET,
        limit: Any = None,
        **facts: Any,
    ) -> None:
        self.problem, self.advice, self.parameter, self.limit, self.facts = problem, advice, parameter, limit, facts
        self.value = None if value is _UNSET else value
        self._has_value = value is not _UNSET

    def phrased(self, names: Names = PYTHON) -> str:
        """Give the message in the words of a surface."""
        known = {**self.facts, "value": self.value, "limit": self.limit}
        facts = {name: names.fact(fact) for name, fact in known.items()}
        fields = {**facts, "p": _Parameters(names), "v": _Values(names)}
        problem = self.problem.format_map(fields)
        if self.parameter is not None:
            given = names.setting(self.parameter, self.value) if self._has_value else names.parameter(self.parameter)
            problem = f"{given} {problem}"
        advice = self.advice.format_map(fields)
        return f"{problem}. {advice}" if advice else f"{problem}."

    def parts(self) -> dict[str, Any]:
        """Give what the message was made of: ``Message(**parts)`` is the same message."""
        given = {"value": self.value} if self._has_value else {}
        known = {"problem": self.problem, "advice": self.advice, "parameter": self.parameter, "limit": self.limit}
        return {**known, **given, **self.facts}

    def __str__(self) -> str:
        return self.phrased()


class _Phrased(Exception):  # noqa: N818
    """An error or a warning that carries a `Message`, whose fields are its own."""

    def __init__(self, problem: str | Message, **fields: Any) -> None:
        self.message = problem if isinstance(problem, Message) else Message(problem, **fields)
        super().__init__(self.message)

    def __getattr__(self, name: str) -> Any:
        if name in ("problem", "advice", "parameter", "value", "limit", "facts") and "message" in self.__dict__:
            return getattr(self.message, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __str__(self) -> str:
        return self.message.phrased()

    def __reduce__(self) -> Any:
        # Errors travel between processes, for example from a worker of Dask.
        return type(self), (self.message,)


class InvalidValueError(_Phrased, ValueError):
    """A value that cannot be used."""


class InvalidTypeError(_Phrased, TypeError):
    """A value of a type that cannot be used."""


class MixedArraysError(InvalidTypeError, ValueError):
    """Arrays of different libraries or devices: a type error to us, a value error to scikit-learn's checks."""


class FileError(_Phrased, OSError):
    """A file or folder that cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that is not there."""


class CautionWarning(_Phrased, UserWarning):
    """Something to be careful about."""


class FindingWarning(CautionWarning):
    """A warning on what a fit found. The report says the same from its own figures, and need not repeat it."""


def warn_user(
    problem: str | Message, *, finding: bool = False, category: type[CautionWarning] = CautionWarning, **fields: Any
) -> None:
    """Warn, and let the warning point to the line outside of this library and scikit-learn that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("standout", "sklearn"):
        frame = frame.f_back
        level += 1
    warnings.warn((FindingWarning if finding else category)(problem, **fields), stacklevel=level)


def require_extra(module: str, extra: str, what: str) -> None:
    """Refuse to go on without an optional package, and say how to install it."""
    if find_spec(module) is None:
        package = INSTALLED_AS.get(module, module)
        raise ImportError(
            f"{what} needs the package {package!r}. Install it with: pip install {package}, or install all packages of "
            f"standout's extra {extra!r}."
        )


def reject_too_few(name: str, n_rows: int, least: int) -> NoReturn:
    """Refuse a dataset that turned out to have too few rows."""
    raise InvalidValueError(
        "too few rows in {name}: {n_rows} sample(s), but the least is {limit}",
        advice="Give more rows.",
        name=name,
        n_rows=n_rows,
        limit=least,
    )


def listed(noun: str, names: Iterable[Any], most: int = 5) -> str:
    """Name a few things, each shortened, and count the rest."""
    every = list(names)
    some = ", ".join(repr(short(name)) if isinstance(name, str) else repr(name) for name in every[:most])
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return f"{noun}{'s' if len(every) != 1 else ''} {some}{more}"


def choices(words: Collection[Any]) -> str:
    """Write the values to choose from."""
    return ", ".join(map(repr, words))


def short(text: Any, most: int = LONGEST_NAME) -> str:
    """Shorten a name of any length for a message."""
    words = str(text)
    return words if len(words) <= most else f"{words[: most - 3]}..."


def shown(path: Any) -> str:
    """Show a path of any length by its end, which has the name of the file."""
    words = str(path)
    return repr(words if len(words) <= LONGEST_PATH else f"...{words[3 - LONGEST_PATH :]}")


def dataset_names(n_datasets: int) -> list[str]:
    """Give what messages call the datasets of a fit, the target first."""
    return ["the target", *(f"background {number}" for number in range(1, n_datasets))]
