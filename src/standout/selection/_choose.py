"""One rule for every choice: values of a parameter are judged on held-out folds."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from standout._arrays import Float
from standout._xp import namespace
from standout.problem import Problem, Sums, adjusted, column_scale, solve, solve_path
from standout.selection._data import Data, together
from standout.selection._held_out import held_variances

# A value that is more regularised than the best value is good if its mean log ratio is at least this share of the best
# mean log ratio (see `rule`).
KEPT = 0.7
# Values of shrinkage s = r / (1 + r), from 0 (the paper's formula) to nearly PCA. The ridges r have equal steps of the
# logarithm.
_RIDGES = np.geomspace(1e-2, 32.0, 13)
PATHS = {
    "shrinkage": np.concatenate([[0.0], _RIDGES / (1.0 + _RIDGES)]),
    # In units of the target's total variance divided by the total variance of the backgrounds.
    "alpha": np.concatenate([np.geomspace(50.0, 0.02, 16), [0.0]]),
    # In units of the backgrounds' mean variance.
    "epsilon": np.geomspace(1e-6, 1e2, 14),
}
# How many different numbers of columns are compared.
N_COUNTS = 15


@dataclass(frozen=True, eq=False)
class Path:
    """How large is the held-out ratio at each value of a parameter?

    Attributes
    ----------
    parameter : str
        "shrinkage", "alpha", "epsilon" or "n_columns".
    values : ndarray of shape (g,)
        From the least to the most regularised.
    log_ratios : ndarray of shape (g,)
        Mean over folds and components of the logarithm of the held-out ratio.
    errors : ndarray of shape (g,)
        Standard error of the difference between the mean log ratio at each value and at the best value.
    best, chosen : int
        Index of the value with the largest mean, and of the value that was chosen.
    reason : str
        Why no choice was possible; empty otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(2, 100, 20)) * np.linspace(1, 5, 20)
    >>> X[:, 0] *= 4
    >>> path = DiscriminativePCA(1).fit(X, background=Y).path_
    >>> path.parameter, len(path.values), bool(path.chosen >= path.best)
    ('shrinkage', 14, True)
    """

    parameter: str
    values: Float
    log_ratios: Float
    errors: Float
    best: int
    chosen: int
    reason: str = ""

    @property
    def value(self) -> float:
        """The chosen value."""
        return float(self.values[self.chosen])


def rule(log_ratios: Float) -> tuple[int, int]:
    """Which value of a path is best on held-out rows, and which value is chosen?

    A value after the best one is good if its mean log ratio is at least 70 % of the best. Let k be the number of good
    values that directly follow the best value. The chosen value is k / 2 steps after the best value, rounded down. If
    the best mean log ratio is not positive, the best value is chosen.

    Parameters
    ----------
    log_ratios : ndarray of shape (g,)
        Mean log ratios, from the least to the most regularised value; NaN for values that cannot be judged.

    Returns
    -------
    best, chosen : int

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import rule
    >>> rule(np.array([0.5, 1.0, 0.9, 0.8, 0.75, 0.2]))
    (1, 2)
    """
    usable = np.where(np.isfinite(log_ratios), log_ratios, -np.inf)
    best = int(np.argmax(usable))
    good = (usable[best + 1 :] >= KEPT * usable[best]) & (usable[best] > 0.0)
    # Move by half of the number of good values that directly follow the best value.
    return best, best + int(np.argmin(np.append(good, False))) // 2


def grid(problem: Problem, sums: Sums, paths: dict[str, Float] = PATHS) -> tuple[str, list[Problem]]:
    """Return the name of the regularisation parameter, and the problem at each of its values."""
    backgrounds = sums.moments[1:]
    name, unit = "shrinkage" if problem.epsilon is None else "epsilon", 1.0
    if problem.kind == "difference":
        own, spread = _sizes(problem, sums)
        name, unit = "alpha", own / (spread or 1.0)
    elif problem.epsilon is not None:
        unit = ridge_unit(problem, sums)
    values = unit * paths[name]
    degrees = sum(part.count - 1 for part, weight in zip(backgrounds, problem.weights, strict=True) if weight > 0.0)
    if name == "shrinkage" and 0.8 * degrees <= sums.dimension:
        # Leave out the value 0, because backgrounds with so few rows do not vary in all directions.
        values = values[values > 0.0]
    return name, [replace(problem, **{name: float(value)}) for value in values]  # type: ignore[arg-type]


def ridge_unit(problem: Problem, sums: Sums) -> float:
    """Return the unit of a kernel's ridge: the mean variance of the backgrounds.

    If the backgrounds do not vary, the unit is the mean variance of the target.
    """
    own, spread = _sizes(problem, sums)
    return (spread or own) / (sums.moments[0].n_features - problem.n_covariates) or float(np.finfo(np.float64).tiny)


def _sizes(problem: Problem, sums: Sums) -> tuple[float, float]:
    """Return the total variances of target and backgrounds, of scaled columns, without effects of covariates."""
    variances = [adjusted(part, problem.n_covariates).variances for part in sums.moments]
    if problem.scale is not None and sums.scaled is None:
        squares = column_scale(variances, problem) ** 2
        variances = [part / squares for part in variances]
    own, *others = (float(namespace(part).sum(part)) for part in variances)
    return own, sum(weight * other for weight, other in zip(problem.weights, others, strict=True))


def choose(problem: Problem, data: Data, *, seed: int = 0) -> tuple[Problem, Path]:
    """Return the problem with the shrinkage, α or ε that held-out folds choose, and the path.

    Returns
    -------
    problem : Problem
        The problem with the chosen value.
    path : Path
    """
    name, problems = grid(problem, data.sums(problem))
    values = np.array([getattr(one, name) for one in problems])
    judged = np.full((data.n_folds, len(problems)), np.nan)
    for folds, trains in together(data, problem):
        vectors = solve_path(trains, problems, seed=seed)
        held = [data.held_out(problem, fold) for fold in folds]
        logs = held_variances(problem, trains, held, vectors, data.subjects).logs
        judged[list(folds)] = logs.reshape(len(folds), len(problems), -1).mean(axis=2)
    path = path_of(name, values, judged)
    return problem if path.reason else problems[path.chosen], path


def path_of(name: str, values: Float, judged: Float) -> Path:
    """Return the path, with the choice of `rule`. `judged` has the mean log ratio of each fold, shape (n_folds, g)."""
    log_ratios = judged.mean(axis=0)
    if not np.any(np.isfinite(log_ratios)):
        reason = "at each value held-out rows do not vary along one of the components"
        return Path(name, values, log_ratios, np.full(len(values), np.nan), 0, 0, reason)
    best, chosen = rule(log_ratios)
    away = judged - judged[:, best : best + 1]
    errors = away.std(axis=0, ddof=1) / np.sqrt(len(judged))
    return Path(name, values, log_ratios, errors, best, chosen)


def choose_columns(problem: Problem, data: Data, *, seed: int = 0) -> tuple[Problem, Path]:
    """Return the problem with the chosen number of columns, and the path.

    The search starts at the number of columns with the best mean log ratio. It goes to smaller numbers, as long as
    the mean log ratio is at most one standard error below the best mean log ratio. The last such number is chosen.
    """
    n_rows = sum(part.count for part in data.sums(problem).moments)
    size = data.n_columns
    few = min(max(problem.n_components, 2), size)
    most = size if size <= n_rows else max(n_rows // 2, few)
    counts = np.unique(np.append(np.round(np.geomspace(few, most, N_COUNTS)).astype(np.intp), size))[::-1]
    judged = np.empty((data.n_folds, len(counts)))
    for fold in range(data.n_folds):
        whole = replace(problem, n_columns=int(counts[-1]))
        train = data.sums(whole, fold)
        for place, count in enumerate(counts.tolist()):
            found = solve(train, replace(problem, n_columns=count), seed=seed)
            inside, held = train.dropped(found.vectors)[None], data.held_out(whole, fold)
            judged[fold, place] = held_variances(whole, [train], [held], inside, data.subjects).logs.mean()
    path = path_of("n_columns", counts.astype(np.float64), judged)
    if path.reason:
        return replace(problem, n_columns=None), path
    within = path.log_ratios + path.errors >= path.log_ratios[path.best]
    chosen = path.best + int(np.argmin(np.append(within[path.best + 1 :], False)))
    return replace(problem, n_columns=int(counts[chosen])), replace(path, chosen=chosen)
