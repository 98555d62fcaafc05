"""What a permutation test asks of each relabeling: the leading value of a method, at the values of its parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout.moments import Moments
from standout.selection._dealing import Order


@dataclass(frozen=True, eq=False)
class Problem:
    """What a test reshuffles: the leading value of a method, at each of several values of its parameter.

    For ratios the background form is ``Σ ωₖ [(1 - sₖ) Cₖ + sₖ (tr Cₖ / D) I] + ε I``. For differences the target form
    is ``Cxx - α Σ ωₖ Cₖ``.

    Attributes
    ----------
    weights : ndarray of shape (n_backgrounds,)
        ω, non-negative, with sum 1.
    shares : ndarray of shape (g, n_backgrounds)
        s, for each value of the parameter.
    ridges : ndarray of shape (g,)
        ε.
    alphas : ndarray of shape (g,) or None
        α of differences; None for ratios.
    position : int
        The place of the fit among the g values.
    fitted : Problem or None
        The problem of the fit itself; None if there is one value only.
    choose_weights : callable or None
        Finds the weights from moments, the shares and the ridge, if they are chosen by the data.
    side : {"target", "background", "both"}
        Whether the largest value is tested, the least, or the most extreme one.
    counts : ndarray of shape (g,) or None
        On how many columns, which each reshuffling chooses anew; None for all.
    n_ranked : int
        By how many components columns are chosen.
    laplacian : ndarray of shape (n_features, n_features) or None
        Of a graph over the columns.
    strengths : ndarray of shape (g,) or None
        γ: ``γ (Σ ωₖ tr Cₖ / D) L`` is added to the background form.
    of_total : bool
        Whether the coordinates are those in which the inverse of the total scatter, a kernel's ridge, is the identity.
    """

    weights: Float
    shares: Float
    ridges: Float
    alphas: Float | None = None
    position: int = 0
    fitted: Problem | None = None
    choose_weights: Callable[[Moments, list[Moments], Float, float], Float] | None = None
    side: str = "target"
    counts: Order | None = None
    n_ranked: int = 1
    laplacian: Float | None = None
    strengths: Float | None = None
    of_total: bool = False

    @classmethod
    def of_shrinkage(
        cls, weights: Float, shares: Float, path: Float | None = None, choose_weights: Any = None
    ) -> Problem:
        """Pose the ratio with shrinkage; `path` has the shrinkages among which that of the fit was chosen."""
        one = cls(weights, shares[None, :], np.zeros(1), choose_weights=choose_weights)
        if path is None:
            return one
        path, position = _with_value(path, float(shares[0]))
        many = np.repeat(path[:, None], len(weights), axis=1)
        return replace(one, shares=many, ridges=np.zeros(len(path)), position=position, fitted=one)

    @classmethod
    def of_ridge(cls, weights: Float, epsilon: float, path: Float | None = None, choose_weights: Any = None) -> Problem:
        """Pose the ratio with a given ridge."""
        one = cls(weights, np.zeros((1, len(weights))), np.array([epsilon]), choose_weights=choose_weights)
        if path is None:
            return one
        path, position = _with_value(path, epsilon)
        return replace(one, shares=np.zeros((len(path), len(weights))), ridges=path, position=position, fitted=one)

    @classmethod
    def of_difference(cls, weights: Float, alpha: float, path: Float | None = None) -> Problem:
        """Pose the difference of variances."""
        one = cls(weights, np.zeros((1, len(weights))), np.zeros(1), np.array([alpha]))
        if path is None:
            return one
        path, position = _with_value(path, alpha)
        shares = np.zeros((len(path), len(weights)))
        return replace(one, shares=shares, ridges=np.zeros(len(path)), alphas=path, position=position, fitted=one)

    @property
    def n_values(self) -> int:
        """Number of values of the parameter."""
        return len(self.ridges)

    @property
    def is_ridged(self) -> bool:
        """Whether the background form of every value has a ridge."""
        return bool(np.all((self.shares @ self.weights > 0.0) | (self.ridges > 0.0)))

    def of_side(self, side: str) -> Problem:
        """Give the same for a side."""
        return replace(self, side=side, fitted=None if self.fitted is None else self.fitted.of_side(side))

    def of_columns(self, n_columns: int, path: Sequence[int] | None, n_ranked: int) -> Problem:
        """Give the same on few columns; `path` has the numbers among which this one was chosen."""
        fitted = replace(self.fitted or self, counts=np.array([n_columns]), n_ranked=n_ranked)
        if self.fitted is None and path is None:
            return fitted
        # With the number of columns of the fit every value of the parameter, with the value of the fit every number.
        others = np.array([count for count in path or () if count != n_columns], dtype=np.intp)
        counts = np.append(np.full(self.n_values, n_columns), others)
        return replace(self._longer(len(others)), fitted=fitted, counts=counts, n_ranked=n_ranked)

    def of_smoothness(self, laplacian: Float, strength: float, path: Float | None) -> Problem:
        """Give the same with smoothing over a graph; `path` has the strengths among which this one was chosen."""
        fitted = replace(self.fitted or self, laplacian=laplacian, strengths=np.array([strength]))
        if self.fitted is None and path is None:
            return fitted
        others = np.zeros(0) if path is None else path[path != strength]
        strengths = np.append(np.full(self.n_values, strength), others)
        return replace(self._longer(len(others)), fitted=fitted, laplacian=laplacian, strengths=strengths)

    def _longer(self, n_more: int) -> Problem:
        """Repeat the value of the fit."""
        place = np.append(np.arange(self.n_values), np.full(n_more, self.position))
        return replace(
            self,
            shares=self.shares[place],
            ridges=self.ridges[place],
            alphas=None if self.alphas is None else self.alphas[place],
            strengths=None if self.strengths is None else self.strengths[place],
        )

    def extremity(self, value: float) -> float:
        """Give how extreme a value is on the side that is tested: the larger, the more."""
        if self.alphas is not None:
            return {"target": value, "background": -value, "both": abs(value)}[self.side]
        if self.side == "target" or (self.side == "both" and value >= 1.0):
            return value
        return 1.0 / value if value > 0.0 else float("inf")

    def value_of(self, extremity: float, observed: float) -> float:
        """Give the value that is as extreme, on the side of an observed one."""
        if self.alphas is not None:
            return extremity if self.side == "target" or (self.side == "both" and observed > 0.0) else -extremity
        return extremity if self.side == "target" or (self.side == "both" and observed >= 1.0) else 1.0 / extremity

    def with_fewer_components(self) -> Problem:
        """Give the same for the next component: columns are chosen by those that are left."""
        fitted = None if self.fitted is None else self.fitted.with_fewer_components()
        return replace(self, n_ranked=max(self.n_ranked - 1, 1), fitted=fitted)

    def used(self, used: npt.NDArray[np.bool_]) -> Problem:
        """Give the same without the backgrounds that have no weight."""
        fitted = None if self.fitted is None else self.fitted.used(used)
        return replace(self, weights=self.weights[used], shares=self.shares[:, used], fitted=fitted)


def _with_value(path: Float, value: float) -> tuple[Float, int]:
    """Give an increasing path that holds a value, and the place of that value."""
    full = np.union1d(path, [value])
    return full, int(np.searchsorted(full, value))
