"""What an experiment declares, and the plain records of what it found."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

if TYPE_CHECKING:
    from experiments._claims import Claim, Finding
    from experiments._figure import Panel

# The quantities that claims are about.
ERROR = "clustering error"
SCATTER = "scatter ratio"
CLUSTER_SCATTER = "scatter ratio of the K-means clusters"


class Verdict(StrEnum):
    """How a claim of the paper fares."""

    BETTER = "better"
    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_JUDGED = "not judged"


class Choice(StrEnum):
    """Where the parameters of a method come from."""

    STATED = "stated in the paper"
    OPEN = "the paper is silent"
    LABEL_FREE = "chosen without labels"
    WITH_LABELS = "chosen with labels"


class Status(StrEnum):
    """How far an experiment came."""

    DONE = "done"
    MISSING = "data missing"
    UNUSABLE = "data unusable"
    FAILED = "failed"


@dataclass(frozen=True)
class Method:
    """A method as an experiment runs it.

    Attributes
    ----------
    name : str
        As in the titles of the figure.
    estimator : Any
        Of `standout`, not fitted; the number of components and the seed are set by the run.
    against : tuple of int or None
        Which backgrounds the target is fitted against: all for None, none for ().
    choice : Choice
        Where the parameters come from.
    parameters : str
        The parameters in words; by default those of the estimator.
    """

    name: str
    estimator: Any
    against: tuple[int, ...] | None = None
    choice: Choice = Choice.STATED
    parameters: str = ""

    def in_words(self) -> str:
        """Say how the method is called: what is not the default, and what matters even if it is."""
        if self.parameters:
            return self.parameters
        defaults = type(self.estimator)().get_params()
        matters = () if self.against == () else ("shrinkage", "epsilon", "alpha")
        given = {
            name: value
            for name, value in self.estimator.get_params().items()
            if name in matters or value != defaults[name]
        }
        return f"{type(self.estimator).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


@dataclass(frozen=True)
class Setting:
    """One way to read what the paper leaves open about the data.

    Attributes
    ----------
    name : str
        Empty where there is only one.
    values : Mapping[str, Any]
        For the experiment's own `draw`.
    judged : bool
        Whether claims are judged here; otherwise it is run for comparison only.
    """

    name: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    judged: bool = True


@dataclass
class MethodRun:
    """What one method gave in one setting: lists hold one value per seed.

    Attributes
    ----------
    figures : dict
        Quantity, then number of components, then values.
    seconds : list
        Times of a fit of two components; empty for what is derived from another run.
    facts : dict
        What the fit chose, such as ``alpha_``.
    warnings : list
        What the library warned of, each text once.
    """

    method: str
    setting: str
    parameters: str
    choice: Choice
    figures: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, list[Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def values(self, quantity: str = ERROR, d: int = 2) -> list[float]:
        """Return the values over the seeds; none where the data were too small for d components."""
        return self.figures.get(quantity, {}).get(d, [])

    def mean(self, quantity: str = ERROR, d: int = 2) -> float:
        """Return the mean over the seeds."""
        values = self.values(quantity, d)
        return statistics.fmean(values) if values else math.nan

    def spread(self, quantity: str = ERROR, d: int = 2) -> float:
        """Return the standard deviation over the seeds, 0 for a single one."""
        values = self.values(quantity, d)
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def in_words(self, quantity: str = ERROR, d: int = 2, digits: int = 4) -> str:
        """Return mean and spread as text."""
        if not self.values(quantity, d):
            return "–"
        mean, spread = self.mean(quantity, d), self.spread(quantity, d)
        return f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread > 0 else "")

    @property
    def median_seconds(self) -> float:
        """Return the median time of a fit."""
        return statistics.median(self.seconds) if self.seconds else math.nan


@dataclass(frozen=True, eq=False)
class View:
    """What a method shows at the first seed.

    Attributes
    ----------
    scores : ndarray of shape (m, 2)
    labels : ndarray of shape (m,)
    error : float
        Clustering error of these scores.
    """

    scores: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    error: float


@dataclass
class Results:
    """All that was measured in an experiment.

    Attributes
    ----------
    settings : list of Setting
        Those that the data allow.
    runs : dict
        ``(setting, method)`` to MethodRun.
    views : dict
        ``(setting, method)`` to View.
    contrasts : dict
        Setting to the data of the first seed.
    smaller : str
        How many rows there are, if the data are smaller than the paper's; otherwise empty.
    """

    settings: list[Setting] = field(default_factory=list)
    runs: dict[tuple[str, str], MethodRun] = field(default_factory=dict)
    views: dict[tuple[str, str], View] = field(default_factory=dict)
    contrasts: dict[str, Bunch] = field(default_factory=dict)
    smaller: str = ""

    @property
    def judged(self) -> list[str]:
        """Names of the settings in which claims are judged."""
        return [setting.name for setting in self.settings if setting.judged]

    def run(self, method: str, setting: str = "") -> MethodRun:
        """Return what a method gave in a setting."""
        return self.runs[setting, method]


@dataclass(frozen=True)
class Table:
    """A table for the report.

    Attributes
    ----------
    caption : str
    header : sequence of str
    rows : sequence of sequence of str
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper, declared.

    Attributes
    ----------
    name : str
        For the command line and the files.
    title : str
        What it is about.
    paper : str
        Table or figure of the paper.
    data : str
        The data in one or two sentences.
    draw : callable
        ``(setting, seed, *datasets)`` to a Bunch, or None where the data do not have what the setting asks for. The
        datasets are the contents of `files`.
    methods : tuple of Method
    reference : str
        The method that run times are compared with.
    claims : tuple of Claim
    figure : callable
        Results to rows of panels.
    groups : Mapping
        Label to words, for legends.
    choices : tuple of str
        What the paper leaves open, and what is done about it.
    files : tuple of str
        The files it needs, in the order of `draw`; none where the data are made.
    n_rows : tuple of int
        The paper's number of rows in each group of the target, by label, then in each background. Files may hold fewer.
    settings : tuple of Setting
    everywhere : bool
        Whether claims must hold in every setting, or only in one.
    dimensions : tuple of int
        Numbers of components at which the clustering is judged.
    tables : callable
        Results to further tables of the report.
    """

    name: str
    title: str
    paper: str
    data: str
    draw: Callable[..., Bunch | None]
    methods: tuple[Method, ...]
    reference: str
    claims: tuple[Claim, ...]
    figure: Callable[[Results], list[list[Panel]]]
    groups: Mapping[Any, str]
    choices: tuple[str, ...]
    files: tuple[str, ...] = ()
    n_rows: tuple[int, ...] = ()
    settings: tuple[Setting, ...] = (Setting(),)
    everywhere: bool = False
    dimensions: tuple[int, ...] = (2,)
    tables: Callable[[Results], list[Table]] = lambda results: []

    def n_steps(self, n_seeds: int) -> int:
        """Count the fits to come, for the progress bar."""
        return len(self.settings) * n_seeds * len(self.methods)


@dataclass(frozen=True)
class Record:
    """What an experiment found, as it is written to a JSON file.

    Attributes
    ----------
    problem : str
        Why it did not come to the end, if so.
    read : list of str
        What the files hold, one line for each.
    smaller : str
        As in `Results`.
    n_seeds : int
    seconds : float
        Wall time of the whole experiment.
    findings : list of Finding
        One per claim, in their order.
    runs : list of MethodRun
    tables : list of Table
    """

    name: str
    title: str
    paper: str
    data: str
    choices: list[str]
    reference: str
    status: Status
    problem: str
    read: list[str]
    smaller: str
    n_seeds: int
    seconds: float
    findings: list[Finding]
    runs: list[MethodRun]
    tables: list[Table]


def groups_in_words(labels: npt.NDArray[Any], groups: Mapping[Any, str]) -> npt.NDArray[Any]:
    """Replace labels by words."""
    return np.array([groups.get(label, str(label)) for label in labels.tolist()])
