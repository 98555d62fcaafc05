"""From a declaration to results, and from results to a record: one experiment at a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from threadpoolctl import threadpool_limits

from experiments._claims import Finding, judge, unjudged
from experiments._figure import Panel
from experiments._measure import Measurement, measure
from experiments._record import (
    ERROR,
    Choice,
    Experiment,
    Method,
    MethodRun,
    Record,
    Results,
    Sample,
    Setting,
    Status,
    View,
    groups_in_words,
)

Step = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """A record, and the panels of its picture (none where nothing was measured)."""

    record: Record
    panels: list[list[Panel]]


def run(experiment: Experiment, folder: Path | None, seeds: range, step: Step) -> Outcome:
    """Run an experiment as far as it goes; what goes wrong is recorded, and never lost on the others."""
    start = time.perf_counter()
    status, problem, results = Status.DONE, "", None
    panels: list[list[Panel]] = []
    read: list[str] = []
    try:
        loaded = experiment.load(folder)
    except FileNotFoundError as error:
        # The rest of the message tells users of Python what to do.
        status, problem = Status.MISSING, str(error).split(". ")[0]
    except (ValueError, OSError) as error:
        status, problem = Status.UNUSABLE, str(error)
    else:
        files = loaded if isinstance(loaded, tuple) else (loaded,)
        read = [file.description for file in files if file is not None]
        try:
            # One thread, so that run times compare methods and not machines; on a busy machine it is also much quicker.
            with threadpool_limits(1):
                results = _results(experiment, loaded, seeds, step)
            panels = experiment.figure(results)
        except _NotInTheDataError as error:
            status, problem = Status.UNUSABLE, str(error)
        except Exception as error:  # A bug in one experiment must not cost the others.
            status, problem, results = Status.FAILED, f"{type(error).__name__}: {error}", None
    seconds = time.perf_counter() - start
    return Outcome(_record(experiment, status, problem, read, results, len(seeds), seconds), panels)


class _NotInTheDataError(ValueError):
    """The files are sound, but lack what the experiment is about."""


def _record(
    experiment: Experiment,
    status: Status,
    problem: str,
    read: list[str],
    results: Results | None,
    n_seeds: int,
    seconds: float,
) -> Record:
    findings: list[Finding]
    if results is None:
        findings = [unjudged(claim, f"{status.value}: {problem}") for claim in experiment.claims]
    else:
        findings = [judge(claim, results, everywhere=experiment.everywhere) for claim in experiment.claims]
    return Record(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        data=experiment.data,
        choices=list(experiment.choices),
        reference=experiment.reference,
        status=status.value,
        problem=problem,
        read=read,
        smaller="" if results is None else results.smaller,
        n_seeds=n_seeds,
        seconds=seconds,
        findings=findings,
        runs=[] if results is None else list(results.runs.values()),
        tables=[] if results is None else experiment.tables(results),
    )


def _results(experiment: Experiment, loaded: object, seeds: range, step: Step) -> Results:
    """Measure every method in every setting at every seed."""
    results = Results(settings=[], runs={}, views={}, samples={})
    for setting in experiment.settings:
        for seed in seeds:
            sample = _drawn(experiment, loaded, setting, seed)
            if sample is None:
                break
            if seed == seeds[0]:
                results.settings.append(setting)
                results.samples[setting.name] = sample
            for method in experiment.methods:
                step(f"{experiment.name}: {', '.join(filter(None, (setting.name, method.name)))}, seed {seed}")
                found = measure(method, sample.contrast, seed, experiment.dimensions)
                _add(results, experiment, setting, method, sample, found, first=seed == seeds[0])
    if not results.judged:
        raise _NotInTheDataError(f"the data have nothing of what {experiment.paper} shows: {experiment.data}")
    return results


def _drawn(experiment: Experiment, loaded: object, setting: Setting, seed: int) -> Sample | None:
    try:
        return experiment.draw(loaded, setting, seed)
    except ValueError as error:
        raise _NotInTheDataError(str(error)) from error


def _add(
    results: Results,
    experiment: Experiment,
    setting: Setting,
    method: Method,
    sample: Sample,
    found: Measurement,
    *,
    first: bool,
) -> None:
    """Take in one measurement; the best of several α is a run of its own, as labels are needed to know it."""
    key = (setting.name, method.name)
    run = results.runs.setdefault(key, MethodRun(method.name, setting.name, method.in_words(), method.choice.value))
    _append(run, found.figures)
    run.seconds.append(found.seconds)
    run.warnings.extend(text for text in found.warnings if text not in run.warnings)
    for name, value in found.facts.items():
        run.facts.setdefault(name, []).append(value)
    labels = groups_in_words(sample.contrast.labels, experiment.groups)
    if first:
        results.views[key] = View(found.scores, labels, found.figures[ERROR][2])
    if not found.representatives:
        return
    errors = {alpha: figures[ERROR][2] for alpha, (_, figures) in found.representatives.items()}
    run.facts.setdefault("errors of the representatives", []).append(list(errors.values()))
    best = min(errors, key=lambda alpha: errors[alpha])
    name = f"{method.name}, best α"
    derived = results.runs.setdefault(
        (setting.name, name),
        MethodRun(
            name, setting.name, "of the representatives, the one with the lowest error", Choice.WITH_LABELS.value
        ),
    )
    _append(derived, found.representatives[best][1])
    derived.facts.setdefault("α", []).append(best)
    if first:
        for alpha, (scores, figures) in found.representatives.items():
            results.views[setting.name, f"{method.name}, chosen α = {alpha:.4g}"] = View(
                scores, labels, figures[ERROR][2]
            )


def _append(run: MethodRun, figures: dict[str, dict[int, float]]) -> None:
    for quantity, values in figures.items():
        for d, value in values.items():
            run.figures.setdefault(quantity, {}).setdefault(d, []).append(value)
