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

from standout.datasets import Contrast

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


Backgrounds = Callable[[Contrast], Any]


def nothing(contrast: Contrast) -> None:
    """Fit the target alone."""


def every_background(contrast: Contrast) -> list[Any]:
    """Fit the target against all backgrounds."""
    return list(contrast.backgrounds)


def first_background(contrast: Contrast) -> Any:
    """Fit the target against the first background alone."""
    return contrast.backgrounds[0]


def second_background(contrast: Contrast) -> Any:
    """Fit the target against the second background alone."""
    return contrast.backgrounds[1]


@dataclass(frozen=True)
class Method:
    """A method as an experiment runs it.

    Attributes
    ----------
    name : str
        As in the titles of the figure.
    estimator : Any
        Of `standout`, not fitted; the number of components and the seed are set by the run.
    against : callable
        Picks what the target is fitted against.
    choice : Choice
        Where the parameters come from.
    parameters : str
        The parameters in words; by default those of the estimator.
    """

    name: str
    estimator: Any
    against: Backgrounds = every_background
    choice: Choice = Choice.STATED
    parameters: str = ""

    def in_words(self) -> str:
        """Say how the method is called: what is not the default, and what matters even if it is."""
        if self.parameters:
            return self.parameters
        defaults = type(self.estimator)().get_params()
        matters = () if self.against is nothing else ("shrinkage", "epsilon", "alpha")
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


@dataclass(frozen=True, eq=False)
class Sample:
    """The data of one run.

    Attributes
    ----------
    contrast : Contrast
        Target, backgrounds and labels.
    smaller : str
        Where there are fewer rows than in the paper, how many; otherwise empty.
    """

    contrast: Contrast
    smaller: str = ""


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
    choice: str
    figures: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    facts: dict[str, list[Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def values(self, quantity: str = ERROR, d: int = 2) -> list[float]:
        """Give the values over the seeds; none where the data were too small for d components."""
        return self.figures.get(quantity, {}).get(d, [])

    def mean(self, quantity: str = ERROR, d: int = 2) -> float:
        """Give the mean over the seeds."""
        values = self.values(quantity, d)
        return statistics.fmean(values) if values else math.nan

    def spread(self, quantity: str = ERROR, d: int = 2) -> float:
        """Give the standard deviation over the seeds, 0 for a single one."""
        values = self.values(quantity, d)
        return statistics.stdev(values) if len(values) > 1 else 0.0

    def in_words(self, quantity: str = ERROR, d: int = 2, digits: int = 4) -> str:
        """Give mean and spread as text."""
        if not self.values(quantity, d):
            return "–"
        mean, spread = self.mean(quantity, d), self.spread(quantity, d)
        return f"{mean:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread > 0 else "")

    @property
    def median_seconds(self) -> float:
        """Give the median time of a fit."""
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


@dataclass(frozen=True)
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
    samples : dict
        Setting to the Sample of the first seed.
    """

    settings: list[Setting]
    runs: dict[tuple[str, str], MethodRun]
    views: dict[tuple[str, str], View]
    samples: dict[str, Sample]

    @property
    def judged(self) -> list[str]:
        """Names of the settings in which claims are judged."""
        return [setting.name for setting in self.settings if setting.judged]

    @property
    def smaller(self) -> str:
        """Where the data are smaller than the paper's, how much."""
        return next((sample.smaller for sample in self.samples.values() if sample.smaller), "")

    def run(self, method: str, setting: str = "") -> MethodRun:
        """Give what a method gave in a setting."""
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
    files : tuple of str
        The files it needs.
    load : callable
        Folder to whatever `draw` needs; reads the files once.
    draw : callable
        ``(loaded, setting, seed)`` to a Sample, or None where the data do not have what the setting asks for.
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
    files: tuple[str, ...]
    load: Callable[[Any], Any]
    draw: Callable[[Any, Setting, int], Sample | None]
    methods: tuple[Method, ...]
    reference: str
    claims: tuple[Claim, ...]
    figure: Callable[[Results], list[list[Panel]]]
    groups: Mapping[Any, str]
    choices: tuple[str, ...]
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
    status : str
        A `Status`.
    problem : str
        Why it did not come to the end, if so.
    read : list of str
        What the files hold, in the words of their loaders.
    smaller : str
        Where the data are smaller than the paper's, how much.
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
    status: str
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
