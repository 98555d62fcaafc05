"""The paper's claims, and the rules that judge them by what was measured.

A rule judges one setting at a time. Where the paper fixed a parameter without telling (such as the intensity of the
digits), a claim is as good as its best setting; where it took any one of many (such as a person), it must hold for all.
The finding names the settings in which it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Rule:
    """How a claim is judged in one setting.

    Attributes
    ----------
    words : str
        When the claim holds.
    judge : callable
        ``(results, setting)`` to a Judgement.
    """

    words: str
    judge: Callable[[Results, str], Judgement]


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
    verdict : Verdict
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
    ours: str = "–"
    verdict: Verdict = Verdict.NOT_JUDGED
    where: str = ""
    reason: str = ""
    values: dict[str, dict[str, float]] = field(default_factory=dict)


def unjudged(claim: Claim, reason: str) -> Finding:
    """Leave a claim open, and say why."""
    return Finding(claim.text, claim.printed, claim.rule.words, claim.beyond, reason=reason)


def judge(claim: Claim, results: Results, *, everywhere: bool = False) -> Finding:
    """Judge a claim in every setting that counts: the best verdict counts, or the worst if it must hold everywhere."""
    judged = {setting: claim.rule.judge(results, setting) for setting in results.judged}
    order = [Verdict.BETTER, Verdict.REPRODUCED, Verdict.NOT_REPRODUCED]
    if everywhere:
        order.reverse()
    verdict = next(one for one in order if any(found.verdict is one for found in judged.values()))
    holds = [setting for setting, one in judged.items() if one.verdict is not Verdict.NOT_REPRODUCED]
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
        verdict=verdict,
        where=", ".join(holds) if partly else "",
        reason=reason,
        values={setting: one.values for setting, one in judged.items()},
    )


def _verdict(holds: bool, better: bool = False) -> Verdict:
    if not holds:
        return Verdict.NOT_REPRODUCED
    return Verdict.BETTER if better else Verdict.REPRODUCED


# The rules


def printed(method: str, value: float, quantity: str = ERROR, d: int = 2) -> Rule:
    """Expect a printed figure of a method that the paper proposes: a smaller error or a larger ratio is better."""
    is_error = quantity == ERROR
    tolerance = ERROR_TOLERANCE if is_error else SCATTER_TOLERANCE
    low, high = value - tolerance, value + tolerance
    better = f"below {low:.4f}" if is_error else f"above {high:.4f}"

    def judge(results: Results, setting: str) -> Judgement:
        run = results.run(method, setting)
        mean = run.mean(quantity, d)
        verdict = _verdict(mean <= high, mean < low) if is_error else _verdict(mean >= low, mean > high)
        return Judgement(verdict, run.in_words(quantity, d), {method: mean})

    return Rule(f"{quantity} within {tolerance} of {value:.4f}; better: {better}", judge)


def printed_baseline(method: str, value: float, quantity: str = ERROR, d: int = 2) -> Rule:
    """Expect a printed figure of a method that others are compared with: neither less nor more."""
    tolerance = ERROR_TOLERANCE if quantity == ERROR else SCATTER_TOLERANCE

    def judge(results: Results, setting: str) -> Judgement:
        run = results.run(method, setting)
        mean = run.mean(quantity, d)
        return Judgement(_verdict(abs(mean - value) <= tolerance), run.in_words(quantity, d), {method: mean})

    return Rule(f"{quantity} within {tolerance} of {value:.4f}", judge)


def separates(method: str, limit: float = SEPARATE) -> Rule:
    """Expect that a figure shows the groups apart."""

    def judge(results: Results, setting: str) -> Judgement:
        run = results.run(method, setting)
        return Judgement(_verdict(run.mean() <= limit), run.in_words(), {method: run.mean()})

    return Rule(f"error ≤ {limit}", judge)


def mixes(method: str, limit: float = SEPARATE) -> Rule:
    """Expect that a figure does not show the groups."""

    def judge(results: Results, setting: str) -> Judgement:
        run = results.run(method, setting)
        return Judgement(_verdict(run.mean() >= limit), run.in_words(), {method: run.mean()})

    return Rule(f"error ≥ {limit}", judge)


def improves(method: str, over: str, limit: float = SEPARATE) -> Rule:
    """Expect that a choice of this library shows the groups apart, and better than the paper's own method."""

    def judge(results: Results, setting: str) -> Judgement:
        run, other = results.run(method, setting), results.run(over, setting)
        verdict = _verdict(run.mean() <= limit, run.mean() + ERROR_TOLERANCE <= other.mean())
        return Judgement(verdict, run.in_words(), {method: run.mean(), over: other.mean()})

    return Rule(f"error ≤ {limit}; better: and lower than that of {over} by {ERROR_TOLERANCE} or more", judge)


def lowest(method: str, others: tuple[str, ...], margin: float = ERROR_TOLERANCE) -> Rule:
    """Expect that a method does better than others."""

    def judge(results: Results, setting: str) -> Judgement:
        run = results.run(method, setting)
        best = min((results.run(name, setting) for name in others), key=lambda other: other.mean())
        ours = f"{run.in_words()}, next {best.method} {best.in_words()}"
        values = {method: run.mean(), best.method: best.mean()}
        return Judgement(_verdict(run.mean() + margin <= best.mean()), ours, values)

    return Rule(f"error lower than that of every other by {margin} or more", judge)


def at_every(method: str, other: str, quantity: str, dimensions: tuple[int, ...], *, higher: bool = False) -> Rule:
    """Expect a quantity to be lower (or higher) than another method's, whatever the number of components."""

    def judge(results: Results, setting: str) -> Judgement:
        run, rival = results.run(method, setting), results.run(other, setting)
        known = [d for d in dimensions if run.values(quantity, d) and rival.values(quantity, d)]
        gaps = {d: run.mean(quantity, d) - rival.mean(quantity, d) for d in known}
        wins = [d for d, gap in gaps.items() if (gap > 0 if higher else gap < 0)]
        lost = ", ".join(str(d) for d in known if d not in wins)
        ours = f"at {len(wins)} of {len(known)} d" + (f", not at {lost}" if lost else "")
        return Judgement(_verdict(wins == known), ours, {f"d={d}": gap for d, gap in gaps.items()})

    return Rule(f"{quantity} {'higher' if higher else 'lower'} than that of {other} at every d", judge)


def below_up_to(method: str, limit: float, other: str, other_limit: float, dimensions: tuple[int, ...]) -> Rule:
    """Expect a method below an error up to a number of components, where another one stays above a second error."""

    def judge(results: Results, setting: str) -> Judgement:
        run, rival = results.run(method, setting), results.run(other, setting)
        most = max((run.mean(ERROR, d) for d in dimensions if run.values(ERROR, d)), default=math.nan)
        least = min((rival.mean(ERROR, d) for d in dimensions if rival.values(ERROR, d)), default=math.nan)
        verdict = _verdict(most <= limit and least >= other_limit, better=True)
        return Judgement(verdict, f"at most {most:.4f}, {other} at least {least:.4f}", {method: most, other: least})

    where = f"at every d ≤ {max(dimensions)}"
    return Rule(f"error ≤ {limit:.4f} and {other} ≥ {other_limit} {where}; this counts as better", judge)


def takes_longer(method: str, than: str, times: float, factor: float = 1.5) -> Rule:
    """Expect that a method takes several times as long as another."""

    def judge(results: Results, setting: str) -> Judgement:
        ratio = results.run(method, setting).median_seconds / results.run(than, setting).median_seconds
        return Judgement(_verdict(times / factor <= ratio <= times * factor), f"{ratio:.1f} times", {"ratio": ratio})

    return Rule(f"{times / factor:.0f} to {times * factor:.0f} times the run time of {than}", judge)
