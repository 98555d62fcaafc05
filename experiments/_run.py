"""From a declaration to results, and from results to a record: one experiment at a time."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import calinski_harabasz_score
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from experiments._claims import judge, unjudged
from experiments._figure import Panel
from experiments._record import (
    CLUSTER_SCATTER,
    ERROR,
    SCATTER,
    Choice,
    Experiment,
    Method,
    MethodRun,
    Record,
    Results,
    Setting,
    Status,
    View,
    groups_in_words,
)
from experiments.data import Dataset, load
from standout.metrics import clustering_error

# What the paper's figures show; run times are those of a fit of as many components.
SHOWN = 2
# A fit quicker than this is timed five times, and the quickest counts: others waited for something, or for another
# process.
QUICK = 0.1

# Of the values among which α is chosen, every fourth is shown.
STEP = 4

Figures = dict[str, dict[int, float]]
Step = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """A record, and the panels of its picture (none where nothing was measured)."""

    record: Record
    panels: list[list[Panel]]


class _NotInTheDataError(ValueError):
    """The files are sound, but lack what the experiment is about."""


def run(experiment: Experiment, folder: Path | None, seeds: range, step: Step, *, download: bool = False) -> Outcome:
    """Run an experiment as far as it goes. What goes wrong is recorded, so that the others can go on."""
    start = time.perf_counter()
    status, problem, results = Status.DONE, "", None
    panels: list[list[Panel]] = []
    datasets: list[Dataset] = []
    try:
        datasets = [load(file, folder, download=download) for file in experiment.files]
    except FileNotFoundError as error:
        status, problem = Status.MISSING, _sentence(error)
    except (ValueError, OSError, ImportError) as error:
        status, problem = Status.UNUSABLE, _sentence(error)
    else:
        try:
            # One thread, so that run times compare methods and not machines; on a busy machine it is also much quicker.
            with threadpool_limits(1):
                results = _measured(experiment, datasets, seeds, step)
            panels = experiment.figure(results)
        except _NotInTheDataError as error:
            status, problem = Status.UNUSABLE, _sentence(error)
        except Exception as error:  # A bug in one experiment must not cost the others.
            status, problem, results = Status.FAILED, f"{type(error).__name__}: {error}", None
    record = Record(
        name=experiment.name,
        title=experiment.title,
        paper=experiment.paper,
        data=experiment.data,
        choices=list(experiment.choices),
        reference=experiment.reference,
        status=status,
        problem=problem,
        read=[dataset.description for dataset in datasets],
        smaller=results.smaller if results else "",
        n_seeds=len(seeds),
        seconds=time.perf_counter() - start,
        findings=[
            judge(claim, results, everywhere=experiment.everywhere)
            if results
            else unjudged(claim, f"{status}: {problem}")
            for claim in experiment.claims
        ],
        runs=list(results.runs.values()) if results else [],
        tables=experiment.tables(results) if results else [],
    )
    return Outcome(record, panels)


def _sentence(error: Exception) -> str:
    return str(error).rstrip(".")


def _measured(experiment: Experiment, datasets: list[Dataset], seeds: range, step: Step) -> Results:
    """Measure every method in every setting at every seed."""
    results = Results()
    for setting in experiment.settings:
        for seed in seeds:
            try:
                contrast = experiment.draw(setting, seed, *datasets)
            except ValueError as error:
                raise _NotInTheDataError(str(error)) from error
            if contrast is None:
                break
            first = seed == seeds[0]
            if first:
                results.settings.append(setting)
                results.contrasts[setting.name] = contrast
            results.smaller = results.smaller or _smaller(contrast, experiment.n_rows)
            labels = groups_in_words(contrast.labels, experiment.groups)
            for method in experiment.methods:
                step(f"{experiment.name}: {', '.join(filter(None, (setting.name, method.name)))}, seed {seed}")
                found = measure(method, contrast, seed, experiment.dimensions)
                _add(results, setting, method, found, labels if first else None)
    if not results.judged:
        raise _NotInTheDataError(f"the data have nothing of what {experiment.paper} shows: {experiment.data}")
    return results


def _smaller(contrast: Bunch, n_rows: tuple[int, ...]) -> str:
    """Say how many rows there are, if the paper has others."""
    groups = np.unique(contrast.labels, return_counts=True)[1].tolist()
    found = (*groups, *map(len, contrast.backgrounds))
    if not n_rows or found == n_rows:
        return ""
    ours, theirs = (
        f"{' + '.join(map(str, counts[: len(groups)]))} against {' and '.join(map(str, counts[len(groups) :]))}"
        for counts in (found, n_rows)
    )
    return f"{ours} rows in place of {theirs}"


def _add(
    results: Results, setting: Setting, method: Method, found: Measurement, labels: npt.NDArray[Any] | None
) -> None:
    """Take in one measurement, and keep its views if labels are given.

    The best of several α is a run of its own: labels are needed to know it.
    """
    key = (setting.name, method.name)
    run = results.runs.setdefault(key, MethodRun(method.name, setting.name, method.in_words(), method.choice))
    _append(run, found.figures)
    run.seconds.append(found.seconds)
    run.warnings.extend(text for text in found.warnings if text not in run.warnings)
    for name, value in found.facts.items():
        run.facts.setdefault(name, []).append(value)
    views = {method.name: (found.scores, found.figures)}
    if found.representatives:
        errors = {alpha: figures[ERROR][SHOWN] for alpha, (_, figures) in found.representatives.items()}
        run.facts.setdefault("errors of the representatives", []).append(list(errors.values()))
        best = min(errors, key=lambda alpha: errors[alpha])
        name = f"{method.name}, best α"
        parameters = "of the representatives, the one with the lowest error"
        derived = results.runs.setdefault(
            (setting.name, name), MethodRun(name, setting.name, parameters, Choice.WITH_LABELS)
        )
        _append(derived, found.representatives[best][1])
        derived.facts.setdefault("α", []).append(best)
        views |= {f"{method.name}, chosen α = {alpha:.4g}": view for alpha, view in found.representatives.items()}
    if labels is not None:
        for name, (scores, figures) in views.items():
            results.views[setting.name, name] = View(scores, labels, figures[ERROR][SHOWN])


def _append(run: MethodRun, figures: Figures) -> None:
    for quantity, values in figures.items():
        for d, value in values.items():
            run.figures.setdefault(quantity, {}).setdefault(d, []).append(value)


# One method on one dataset


@dataclass(frozen=True, eq=False)
class Measurement:
    """One method on one dataset.

    Attributes
    ----------
    scores : ndarray of shape (m, 2)
    figures : dict
        Quantity, then number of components, then value.
    representatives : dict
        α to scores and figures, for each α that represents a list that was searched.
    seconds : float
        Time of a fit of two components.
    facts : dict
        What the fit chose.
    warnings : list of str
    """

    scores: npt.NDArray[Any]
    figures: Figures
    representatives: dict[float, tuple[npt.NDArray[Any], Figures]]
    seconds: float
    facts: dict[str, Any]
    warnings: list[str]


def measure(method: Method, contrast: Bunch, seed: int, dimensions: tuple[int, ...]) -> Measurement:
    """Fit and time a method, and judge its clusters at each number of components that the data allow."""
    chosen = range(len(contrast.backgrounds)) if method.against is None else method.against
    backgrounds = [contrast.backgrounds[number] for number in chosen]
    # The centred rows of the target span at most so many directions. With α = 0 there are no others.
    largest = min(len(contrast.target) - 1, contrast.target.shape[1])
    n_components = max((d for d in dimensions if d <= largest), default=SHOWN)

    def scores(model: Any, **changes: float) -> npt.NDArray[Any]:
        """Return the target's scores, fitted again where more components or another α are wanted."""
        if n_components != SHOWN or changes:
            model = clone(model).set_params(n_components=n_components, **changes)
            model.fit(contrast.target, background=backgrounds or None)
        return model.transform(contrast.target)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = clone(method.estimator).set_params(n_components=SHOWN, random_state=seed)
        seconds = _time(model, contrast, backgrounds)
        # α is chosen for the two components that are shown, and kept for more: a list is searched once.
        path = getattr(model, "path_", None)
        alphas = []
        if path is not None and path.parameter == "alpha" and not path.reason:
            alphas = [float(alpha) for alpha in path.values[::STEP]]
        searched = bool(alphas)
        own = scores(model, alpha=model.alpha_) if searched else scores(model)
        figures = _figures(own, contrast.labels, seed, dimensions)
        representatives = {}
        for alpha in alphas:
            view = scores(model, alpha=alpha)
            representatives[alpha] = (view[:, :SHOWN], _figures(view, contrast.labels, seed, dimensions))
    return Measurement(
        scores=own[:, :SHOWN],
        figures=figures,
        representatives=representatives,
        seconds=seconds,
        facts=_facts(model, searched=searched, alone=not backgrounds),
        warnings=list(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def _time(model: Any, contrast: Bunch, backgrounds: list[Any]) -> float:
    """Fit a model, and give the time that it takes."""
    seconds: list[float] = []
    while not seconds or (seconds[0] < QUICK and len(seconds) < 5):
        start = time.perf_counter()
        model.fit(contrast.target, background=backgrounds or None)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _facts(model: Any, *, searched: bool, alone: bool) -> dict[str, Any]:
    """Return the eigenvalues, and what the fit chose by itself."""
    facts = {"eigenvalues": model.eigenvalues_.tolist()}
    if searched:
        facts |= {"α": model.alpha_, "representative α": model.path_.values[::STEP].tolist()}
    for name, fitted in (("shrinkage", "shrinkage_"), ("epsilon", "epsilon_")):
        if isinstance(getattr(model, name, None), str) and not alone:
            facts[name] = np.atleast_1d(getattr(model, fitted)).tolist()
    return facts


def _scatter_ratio(scores: npt.NDArray[Any], groups: npt.NDArray[Any]) -> float:
    """Return the total scatter over the sum of the scatters of the groups, as in the paper's Table I.

    The paper prints the centre of a group as the sum of its rows; its mean is meant.
    """
    n_groups = len(np.unique(groups))
    return 1.0 + float(calinski_harabasz_score(scores, groups)) * (n_groups - 1) / (len(scores) - n_groups)


def _figures(scores: npt.NDArray[Any], labels: npt.NDArray[Any], seed: int, dimensions: tuple[int, ...]) -> Figures:
    figures: Figures = {ERROR: {}, SCATTER: {}, CLUSTER_SCATTER: {}}
    for d in dimensions:
        if d <= scores.shape[1]:
            some = scores[:, :d]
            clusters = KMeans(n_clusters=2, n_init=10, random_state=seed).fit_predict(some)
            figures[ERROR][d] = clustering_error(some, labels, random_state=seed)
            figures[SCATTER][d] = _scatter_ratio(some, labels)
            figures[CLUSTER_SCATTER][d] = _scatter_ratio(some, clusters)
    return figures
