"""The paper's claims, and the rules that judge them by what was measured.

A rule looks at one setting at a time. Where the paper fixed a parameter without telling (such as the intensity of the
digits), a claim is as good as its best setting; where it took any one of many (such as a person), it must hold for all.
The finding names the settings in which it holds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from experiments._record import ERROR, Results, Verdict

# Clustering errors this close are the same: the spread over seeds is of this size.
ERROR_TOLERANCE = 0.02
# So are scatter ratios: what they say is their excess over 1, and most are near 1.
SCATTER_TOLERANCE = 0.02
# Two groups of equal size: an error of 0.5 is chance. Up to half of that, most rows are on the right side.
SEPARATE = 0.25


@dataclass(frozen=True)
class Judgement:
    """What a rule says in one setting.

    Attributes
    ----------
    verdict : Verdict
    ours : str
        Our figure, in words.
    values : dict
        The figures that decided.
    """

    verdict: Verdict
    ours: str
    values: dict[str, float] = field(default_factory=dict)


class Rule(ABC):
    """How a claim is judged in one setting."""

    @property
    @abstractmethod
    def words(self) -> str:
        """When the claim holds."""

    @abstractmethod
    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or one that puts a choice of this library beside it.

    Attributes
    ----------
    text : str
    printed : str
        The printed figure, or what a figure is said to show.
    rule : Rule
    reason : str
        Why it may not come out, as far as known.
    beyond : bool
        Whether the line is about what this library adds, and not about the paper's own method.
    """

    text: str
    printed: str
    rule: Rule
    reason: str = ""
    beyond: bool = False


@dataclass(frozen=True)
class Finding:
    """A claim with its verdict.

    Attributes
    ----------
    ours : str
        Our figures, setting by setting.
    verdict : str
        A `Verdict`.
    where : str
        The settings in which the claim holds, where it does not hold in all.
    reason : str
        Why it does not hold, as far as known; or why it was not judged.
    values : dict
        Setting to the figures that decided.
    """

    text: str
    printed: str
    rule: str
    beyond: bool
    ours: str
    verdict: str
    where: str
    reason: str
    values: dict[str, dict[str, float]]


def unjudged(claim: Claim, reason: str) -> Finding:
    """Leave a claim open, and say why."""
    return Finding(
        claim.text, claim.printed, claim.rule.words, claim.beyond, "–", Verdict.NOT_JUDGED.value, "", reason, {}
    )


def judge(claim: Claim, results: Results, *, everywhere: bool = False) -> Finding:
    """Judge a claim in every setting that counts: the best verdict counts, or the worst if it must hold everywhere."""
    judged = {setting: claim.rule.judge(results, setting) for setting in results.judged}
    order = [Verdict.BETTER, Verdict.REPRODUCED, Verdict.NOT_REPRODUCED]
    if everywhere:
        order.reverse()
    verdict = next(one for one in order if any(found.verdict is one for found in judged.values()))
    holds = [setting for setting, one in judged.items() if one.verdict in (Verdict.BETTER, Verdict.REPRODUCED)]
    named = len(judged) > 1
    ours = "; ".join(f"{one.ours} ({setting})" if named else one.ours for setting, one in judged.items())
    partly = 0 < len(holds) < len(judged)
    reason = claim.reason if verdict is Verdict.NOT_REPRODUCED or partly else ""
    if results.smaller:
        verdict, partly, reason = Verdict.NOT_JUDGED, False, f"smaller than the paper's: {results.smaller}"
    return Finding(
        text=claim.text,
        printed=claim.printed,
        rule=claim.rule.words,
        beyond=claim.beyond,
        ours=ours,
        verdict=verdict.value,
        where=", ".join(holds) if partly else "",
        reason=reason,
        values={setting: one.values for setting, one in judged.items()},
    )


def _holds(holds: bool, better: bool = False) -> Verdict:
    if not holds:
        return Verdict.NOT_REPRODUCED
    return Verdict.BETTER if better else Verdict.REPRODUCED


@dataclass(frozen=True)
class PrintedError(Rule):
    """A printed clustering error of a proposed method: smaller is better."""

    method: str
    printed: float
    d: int = 2

    @property
    def words(self) -> str:
        """When the claim holds."""
        return (
            f"error within {ERROR_TOLERANCE} of {self.printed:.4f}; better: below {self.printed - ERROR_TOLERANCE:.4f}"
        )

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run = results.run(self.method, setting)
        mean = run.mean(ERROR, self.d)
        verdict = _holds(mean <= self.printed + ERROR_TOLERANCE, mean < self.printed - ERROR_TOLERANCE)
        return Judgement(verdict, run.in_words(ERROR, self.d), {self.method: mean})


@dataclass(frozen=True)
class PrintedBaseline(Rule):
    """A printed figure of a method that another one is compared with: it should be the same, neither less nor more."""

    method: str
    printed: float
    quantity: str = ERROR
    d: int = 2

    @property
    def tolerance(self) -> float:
        """How far the figures may be apart."""
        return ERROR_TOLERANCE if self.quantity == ERROR else SCATTER_TOLERANCE

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"{self.quantity} within {self.tolerance:.2g} of {self.printed:.4f}"

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run = results.run(self.method, setting)
        mean = run.mean(self.quantity, self.d)
        verdict = _holds(abs(mean - self.printed) <= self.tolerance)
        return Judgement(verdict, run.in_words(self.quantity, self.d), {self.method: mean})


@dataclass(frozen=True)
class PrintedScatter(Rule):
    """A printed scatter ratio of a proposed method: larger is better."""

    method: str
    printed: float
    quantity: str
    d: int = 2

    @property
    def words(self) -> str:
        """When the claim holds."""
        return (
            f"ratio within {SCATTER_TOLERANCE} of {self.printed:.4f}; "
            f"better: above {self.printed + SCATTER_TOLERANCE:.4f}"
        )

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run = results.run(self.method, setting)
        mean = run.mean(self.quantity, self.d)
        verdict = _holds(mean >= self.printed - SCATTER_TOLERANCE, mean > self.printed + SCATTER_TOLERANCE)
        return Judgement(verdict, run.in_words(self.quantity, self.d), {self.method: mean})


@dataclass(frozen=True)
class Separates(Rule):
    """A figure is said to show the groups apart."""

    method: str
    limit: float = SEPARATE
    sign: ClassVar[str] = "≤"

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"error {self.sign} {self.limit}"

    def met_by(self, error: float) -> bool:
        """Tell whether an error is on the right side of the limit."""
        return error <= self.limit

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run = results.run(self.method, setting)
        return Judgement(_holds(self.met_by(run.mean())), run.in_words(), {self.method: run.mean()})


@dataclass(frozen=True)
class Mixes(Separates):
    """A figure is said not to show the groups."""

    sign: ClassVar[str] = "≥"

    def met_by(self, error: float) -> bool:
        """Tell whether an error is on the right side of the limit."""
        return error >= self.limit


@dataclass(frozen=True)
class Lowest(Rule):
    """A method is said to do better than others."""

    method: str
    others: tuple[str, ...]
    margin: float = ERROR_TOLERANCE

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"error lower than that of every other by {self.margin} or more"

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run, others = results.run(self.method, setting), [results.run(name, setting) for name in self.others]
        best = min(others, key=lambda other: other.mean())
        ours = f"{run.in_words()}, next {best.method} {best.in_words()}"
        values = {self.method: run.mean(), best.method: best.mean()}
        return Judgement(_holds(run.mean() + self.margin <= best.mean()), ours, values)


@dataclass(frozen=True)
class Improves(Rule):
    """A choice of this library shows the groups apart, and better than the paper's own method."""

    method: str
    over: str
    limit: float = SEPARATE

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"error ≤ {self.limit}; better: and lower than that of {self.over} by {ERROR_TOLERANCE} or more"

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run, over = results.run(self.method, setting), results.run(self.over, setting)
        verdict = _holds(run.mean() <= self.limit, run.mean() + ERROR_TOLERANCE <= over.mean())
        return Judgement(verdict, run.in_words(), {self.method: run.mean(), self.over: over.mean()})


@dataclass(frozen=True)
class AtEvery(Rule):
    """A quantity is said to be lower (or higher) than another method's, whatever the number of components."""

    method: str
    other: str
    quantity: str
    dimensions: tuple[int, ...]
    higher: bool = False

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"{self.quantity} {'higher' if self.higher else 'lower'} than that of {self.other} at every d"

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run, other = results.run(self.method, setting), results.run(self.other, setting)
        known = [d for d in self.dimensions if run.values(self.quantity, d) and other.values(self.quantity, d)]
        gaps = {d: run.mean(self.quantity, d) - other.mean(self.quantity, d) for d in known}
        wins = [d for d, gap in gaps.items() if (gap > 0 if self.higher else gap < 0)]
        lost = ", ".join(str(d) for d in known if d not in wins)
        ours = f"at {len(wins)} of {len(known)} d" + (f", not at {lost}" if lost else "")
        return Judgement(_holds(wins == known), ours, {f"d={d}": gap for d, gap in gaps.items()})


@dataclass(frozen=True)
class BelowUpTo(Rule):
    """A method stays below an error up to a number of components, where another one stays above a second error."""

    method: str
    limit: float
    other: str
    other_limit: float
    dimensions: tuple[int, ...]

    @property
    def words(self) -> str:
        """When the claim holds."""
        last = max(self.dimensions)
        return (
            f"error ≤ {self.limit:.4f} and {self.other} ≥ {self.other_limit} at every d ≤ {last}; this counts as better"
        )

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        run, other = results.run(self.method, setting), results.run(self.other, setting)
        most = max((run.mean(ERROR, d) for d in self.dimensions if run.values(ERROR, d)), default=math.nan)
        least = min((other.mean(ERROR, d) for d in self.dimensions if other.values(ERROR, d)), default=math.nan)
        verdict = _holds(most <= self.limit and least >= self.other_limit, better=True)
        ours = f"at most {most:.4f}, {self.other} at least {least:.4f}"
        return Judgement(verdict, ours, {self.method: most, self.other: least})


@dataclass(frozen=True)
class TakesLonger(Rule):
    """A method is said to take several times as long as another."""

    method: str
    than: str
    printed: float
    factor: float = 1.5

    @property
    def words(self) -> str:
        """When the claim holds."""
        return f"{self.printed / self.factor:.0f} to {self.printed * self.factor:.0f} times the run time of {self.than}"

    def judge(self, results: Results, setting: str) -> Judgement:
        """Judge by what was measured in a setting."""
        ratio = results.run(self.method, setting).median_seconds / results.run(self.than, setting).median_seconds
        holds = self.printed / self.factor <= ratio <= self.printed * self.factor
        return Judgement(_holds(holds), f"{ratio:.1f} times", {"ratio": ratio})
