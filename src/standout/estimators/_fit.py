"""From the sums of the datasets to a fit: choose, solve, and judge by held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float, Rows, product
from standout._xp import like, namespace, take, to_host
from standout.moments import Moments, RobustWeights, learn_from, weighed
from standout.pencil import Solution
from standout.problem import Problem, Sums, center_of, is_sparse_problem, lifted, mixed, solve, solve_inside
from standout.selection import (
    Data,
    Folds,
    HeldOut,
    Path,
    Places,
    TallData,
    choose,
    choose_columns,
    choose_weights,
    judge,
    ridge_unit,
)
from standout.sources import Source


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found: the problem with all choices made, its solution, and what that is worth on held-out rows.

    `inner` are the vectors in the coordinates of the sums, `mean` is the centre of scores in the columns of the data.
    """

    problem: Problem
    solution: Solution
    inner: Float
    sums: Sums
    mean: Float
    path: Path | None
    columns_path: Path | None
    held_out: HeldOut | None


def fit_problem(
    problem: Problem,
    data: Data,
    folds: Folds | Places | None,
    reason: str,
    *,
    auto: bool = False,
    auto_columns: bool = False,
    weight_rule: str | None = None,
    solver: str = "auto",
    seed: int = 0,
) -> Fit:
    """Choose what is to be chosen, solve, and judge by held-out rows."""
    if folds is not None and isinstance(data, TallData) and any(part is None for own in data.parts for part in own):
        # The number of rows of an iterator is not known before the fit.
        folds, reason = None, "a fold has no rows of one of the datasets"
    path = columns_path = None
    starts: list[Any] | None = None
    sums = data.sums(problem)
    if weight_rule is not None:
        problem = choose_weights(weight_rule, sums, problem, solver=solver, seed=seed)
    if auto:
        if folds is None:
            path = Path(_parameter(problem), np.zeros(0), np.zeros(0), np.zeros(0), 0, 0, reason)
        else:
            problem, path, starts = choose(problem, data, seed=seed)
        if path.reason:
            problem, starts = fallback(problem, sums), None
        elif weight_rule is not None:
            problem = choose_weights(weight_rule, sums, problem, solver=solver, seed=seed)
    if auto_columns and folds is not None:
        problem, columns_path = choose_columns(problem, data, seed=seed)
        sums, starts = data.sums(problem), None
    first = None if starts is None else starts[0]
    if is_sparse_problem(problem, sums):
        solution = solve(sums, problem, solver=solver, seed=seed)
        inner = sums.dropped(solution.vectors)
    else:
        found = solve_inside(sums, problem, solver=solver, seed=seed, start=first)
        solution, signs = lifted(sums, found)
        inner = found.vectors * signs
    mean = sums.point(center_of(problem, sums))
    held_out = None
    if folds is not None and len(sums.moments) > 1:
        held_out = judge(problem, data, folds, inner, starts=starts, seed=seed)
        order = np.argsort(-held_out.ratio, kind="stable")
        if np.all(np.isfinite(held_out.ratio)) and np.any(order != np.arange(len(order))):
            # What stands out most on held-out rows comes first, also where the shrunken problem has another order.
            held_out, inner = held_out.taken(order), take(inner, order, axis=1)
            solution = solution.taken(order)
    return Fit(problem, solution, inner, sums, mean, path, columns_path, held_out)


def _parameter(problem: Problem) -> str:
    return "alpha" if problem.kind == "difference" else "shrinkage" if problem.epsilon is None else "epsilon"


def fallback(problem: Problem, sums: Sums) -> Problem:
    """Return the problem with a value that needs no folds: Ledoit-Wolf, or a middle value of α or ε."""
    if len(sums.moments) == 1:
        return replace(problem, shrinkage=0.0, alpha=0.0, epsilon=None if problem.epsilon is None else 1.0)
    if problem.kind == "difference":
        return replace(problem, alpha=1.0)
    if problem.epsilon is not None:
        return replace(problem, epsilon=1e-2 * ridge_unit(problem, sums))
    return replace(problem, shrinkage="ledoit-wolf")


def unit_of(fit: Fit, moments: Sequence[Moments], vectors: Float) -> Float:
    """Return the background's standard deviation along vectors: held out, or in sample without folds; 1 if it is 0."""
    xp = namespace(vectors)
    ones = xp.ones_like(vectors[0, :])
    if fit.held_out is not None:
        return like(fit.held_out.unit, vectors)
    if len(moments) == 1:
        return ones
    squares = mixed(fit.problem.weights, [part.variance(vectors) for part in moments[1:]])
    return xp.sqrt(xp.where(squares > 0.0, squares, ones))


def shifts_of(problem: Problem, moments: Sequence[Moments], vectors: Float) -> Float:
    """Return how far the mean of each dataset is from the centre of the scores; 0 for the target, whose scores have it.

    Held-out scores of a background are about its own mean. They are moved by this much to their place in a picture.
    """
    centre = moments[0].mean
    if problem.center == "background" and len(moments) > 1:
        centre = mixed(problem.weights, [part.mean for part in moments[1:]])
    shifts = np.array([to_host(product((part.mean - centre)[None, :], vectors)[0, :]) for part in moments])
    shifts[0] = 0.0
    return shifts


# --- robust weights --------------------------------------------------------------------------------------------------


def weighed_sources(
    sources: Sequence[Source], *, cells: bool, seed: int
) -> tuple[list[Source], list[Float], list[RobustWeights], list[npt.NDArray[np.intp]]]:
    """Learn robust weights from each dataset; return it with weights, the factors learned, rules and outlying rows."""
    found, factors, rules, outlying = [], [], [], []
    for source in sources:
        learned = learn_from(source, cells=cells, seed=seed)
        part, _ = weighed(source, learned)
        assert part.weights is not None
        own = part.weights if source.weights is None else source.weights
        factors.append(part.weights if own is part.weights else part.weights / np.where(own > 0.0, own, 1.0))
        far = [to_host(learned.outlying(batch.rows)) for batch in source.batches()]
        found.append(part)
        rules.append(learned)
        outlying.append(np.flatnonzero(np.concatenate(far)))
    return found, factors, rules, outlying


def clipped(rows: Rows, learned: Sequence[RobustWeights]) -> Rows:
    """Bring cells that are wild in every dataset to the limits."""
    xp = namespace(rows)
    lows, highs = ([getattr(part, side) for part in learned] for side in ("low", "high"))
    return xp.clip(rows, reduce(xp.minimum, lows), reduce(xp.maximum, highs))
