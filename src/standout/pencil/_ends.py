"""The other end of a pencil: its least values as the leading ones of a mirrored pencil, and both ends together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from standout._arrays import stacked
from standout._messages import InvalidValueError
from standout._xp import concat, namespace, take, to_host
from standout.pencil._record import Pencil, Solution, finish, most_directions


def mirrored(pencil: Pencil) -> Pencil:
    """Give the pencil whose leading solutions are the last ones of this pencil.

    Of a ratio the two forms change places: the least ratio of A to B is the inverse of the largest ratio of B to A,
    which keeps the digits of a small ratio. If B is the identity, A changes its sign.
    """
    if pencil.b.is_identity:
        return Pencil(pencil.a.scaled(-1.0), pencil.b, mirrored=True)
    return Pencil(pencil.b, pencil.a, mirrored=True)


def turned_back(pencil: Pencil, found: Solution) -> Solution:
    """Give the last solutions of a pencil, in ascending order, from the leading ones of its mirror."""
    xp = namespace(found.values)
    if pencil.b.is_identity:
        return replace(found, values=-found.values)
    # What rounding leaves of further directions can be positive.
    n_found = min(
        int(xp.count_nonzero(found.values > 0.0)), found.values.shape[0] - found.n_lost, most_directions(pencil.b)
    )
    if n_found < found.values.shape[0]:
        raise InvalidValueError(
            "is more than {limit}, the number of directions in which the background varies, as far as double precision "
            "can tell",
            parameter="n_components",
            value=found.values.shape[0],
            limit=n_found,
            advice="Choose at most {limit}, or use shrinkage.",
        )
    solution = finish(
        pencil,
        1.0 / found.values,
        found.vectors,
        found.solver,
        rounding=found.rounding,
        singular=found.singular and not found.n_absent,
        rank=found.rank,
    )
    # The equation of the mirror has residuals of its own, which hold for a ratio of zero as well.
    return replace(solution, residuals=found.residuals, n_missing=found.n_absent)


def both_ends(pencil: Pencil, leading: Solution, last: Solution | None) -> Solution:
    """Give the most extreme solutions of the leading and the last ones, as many as there are leading ones.

    Ratios are compared by the size of their logarithms, differences by their size.
    """
    if last is None:
        last = _part(leading, np.zeros(0, dtype=np.intp))
    values = np.concatenate([to_host(leading.values), to_host(last.values)])
    if pencil.b.is_identity:
        extremity = np.abs(values)
    else:
        with np.errstate(divide="ignore"):
            extremity = np.abs(np.log(values))
    order = np.argsort(-extremity, kind="stable")[: leading.values.shape[0]]
    joined = replace(
        leading,
        values=stacked([leading.values, last.values]),
        vectors=concat([leading.vectors, last.vectors], axis=1),
        patterns=concat([leading.patterns, last.patterns], axis=1),
        residuals=stacked([leading.residuals, last.residuals]),
        rounding=stacked([leading.rounding, last.rounding]),
        n_missing=last.n_missing,
        n_lost=0,
    )
    return _part(joined, order)


def n_at_the_end(pencil: Pencil, leading: Solution) -> int:
    """Give how many last solutions both ends need, so that none of them is among the leading ones."""
    wanted = int(leading.values.shape[0])
    return min(wanted, (leading.rank or pencil.n_features) - max(wanted, leading.n_absent))


def _part(solution: Solution, places: npt.NDArray[np.intp]) -> Solution:
    """Give some of the solutions, in another order."""
    return replace(
        solution,
        values=take(solution.values, places),
        vectors=take(solution.vectors, places, axis=1),
        patterns=take(solution.patterns, places, axis=1),
        residuals=take(solution.residuals, places),
        rounding=take(solution.rounding, places),
    )
