"""A few subspaces that represent many: those of all α of contrastive PCA, or of all weights of the backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, product, self_product
from standout._messages import InvalidValueError
from standout._params import check_n_representatives
from standout._xp import column_norms, concat, is_foreign, leading_eigenvectors, namespace, to_host
from standout.moments import Moments
from standout.pencil import Pencil, Solution, solve, solve_path
from standout.selection._held_out import HeldOutPath
from standout.selection._paths import shares_in_span

Indices = npt.NDArray[np.intp]

# Subspaces are the same where their affinity misses 1 by no more than this: angles of about a millionth.
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class Representatives:
    """Which subspaces represent the others, and which ones.

    Attributes
    ----------
    indices : ndarray of shape (r,)
        Positions of the representatives among the subspaces, ascending.
    labels : ndarray of shape (g,)
        Cluster of each subspace: ``labels[i] == j`` says that ``indices[j]`` represents subspace i.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import representatives
    >>> x, y = np.eye(3)[:1], np.eye(3)[1:2]
    >>> found = representatives([x, x, y], 2)
    >>> found.indices, found.labels, found.sizes
    (array([0, 2]), array([0, 0, 1]), array([2, 1]))
    """

    indices: Indices
    labels: Indices

    @property
    def sizes(self) -> Indices:
        """How many subspaces each one represents, including itself."""
        return np.bincount(self.labels, minlength=len(self.indices))


def representatives(subspaces: Any, n_representatives: int) -> Representatives:
    """Which few of these subspaces show all there is to see?

    Many settings of a parameter give few different views. The affinity of two subspaces is the product of the cosines
    of their principal angles: 1 where they are the same, 0 where one has a direction orthogonal to all of the other.
    Spectral clustering of the affinities finds groups of similar subspaces, and of each group the one with the
    largest sum of affinities to its members is returned. Equal subspaces are never separated, so there may be fewer
    representatives than asked for.

    Parameters
    ----------
    subspaces : array-like of shape (g, d, n_features)
        Components as rows, such as one ``components_`` per setting. They need not be orthonormal.
    n_representatives : int
        The most representatives, at most g.

    Returns
    -------
    Representatives

    Notes
    -----
    The groups are read off the leading eigenvectors of the normalised affinities by a pivoted QR decomposition
    (A. Damle, V. Minden, L. Ying, *Simple, direct and efficient multi-way spectral clustering*, 2019), which needs no
    random start. scikit-learn's ``SpectralClustering`` has it, too, but finds the eigenvectors by iterations from a
    random start, and warns of views without any affinity, which are no reason for concern here.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.selection import representatives
    >>> angles = np.radians([0, 2, 4, 88, 90])
    >>> lines = np.column_stack([np.cos(angles), np.sin(angles)])[:, np.newaxis, :]
    >>> few = representatives(lines, 2)
    >>> few.indices, few.labels
    (array([1, 3]), array([0, 0, 0, 1, 1]))
    """
    rows = _check_subspaces(subspaces)
    n_representatives = check_n_representatives(n_representatives, len(rows))
    affinities = _affinities(_orthonormal(rows))
    first = _first_of_same(affinities)
    distinct = np.unique(first)
    labels = np.searchsorted(distinct, first)
    if len(distinct) > n_representatives:
        labels = _clusters(affinities[np.ix_(distinct, distinct)], n_representatives)[labels]
    return _medoids(affinities, labels)


def _check_subspaces(subspaces: Any) -> Float:
    """Check a stack of components, one set of rows per subspace."""
    try:
        rows = np.asarray(subspaces, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidValueError(
            "the subspaces are not one array of numbers",
            advice="Give an array of shape (g, d, n_features), with as many components in each.",
        ) from None
    if rows.ndim != 3 or 0 in rows.shape or rows.shape[1] > rows.shape[2]:
        raise InvalidValueError(
            "the subspaces have shape {shape}, which is not (g, d, n_features) with 1 <= d <= n_features",
            shape=rows.shape,
            advice="Give the components of each subspace as rows.",
        )
    if not np.all(np.isfinite(rows)):
        raise InvalidValueError(
            "there is NaN or infinity among the subspaces", advice="Leave out the components that are not finite."
        )
    return rows


def comparable(views: Sequence[Float]) -> Float:
    """Give the vectors of each view, its columns, as rows, for `representatives`.

    Of vectors on a device an orthonormal basis of each view is taken there, and only the inner products of all bases
    come to the host: as many numbers as there are vectors, squared, whatever the number of columns of the data. The
    rows are then coordinates that have these inner products.
    """
    if not is_foreign(views[0]):
        return np.array([vectors.T for vectors in views])
    xp = namespace(views[0])
    bases = concat([xp.linalg.qr(vectors / column_norms(vectors))[0] for vectors in views], axis=1)
    values, turn = np.linalg.eigh(to_host(self_product(bases)))
    coordinates: Float = turn * np.sqrt(np.maximum(values, 0.0))
    return coordinates.reshape(len(views), -1, len(values))


def _orthonormal(subspaces: Float) -> Float:
    """Give an orthonormal basis of each subspace, as rows."""
    lengths = np.linalg.norm(subspaces, axis=2, keepdims=True)
    unit = subspaces / np.where(lengths > 0, lengths, 1.0)
    bases, triangles = np.linalg.qr(np.swapaxes(unit, 1, 2))
    # Components of unit length are dependent if one is within rounding of the span of those before it.
    dependent = np.flatnonzero(np.abs(np.diagonal(triangles, axis1=1, axis2=2)).min(axis=1) <= 1e-12)
    if dependent.size:
        raise InvalidValueError(
            "the components of subspace {number} are linearly dependent",
            number=int(dependent[0]),
            advice="Give components that each add a direction.",
        )
    return np.ascontiguousarray(np.swapaxes(bases, 1, 2))


def _affinities(bases: Float) -> Float:
    """Multiply the cosines of the principal angles of every two subspaces."""
    g, d, n_features = bases.shape
    gram = self_product(bases.reshape(g * d, n_features).T).reshape(g, d, g, d)
    affinities: Float = np.abs(np.linalg.det(gram.transpose(0, 2, 1, 3)))
    return np.clip((affinities + affinities.T) / 2.0, 0.0, 1.0)


def _first_of_same(affinities: Float) -> Indices:
    """For each subspace, the first one that is the same."""
    first = np.arange(len(affinities))
    for i in range(len(affinities)):
        if first[i] == i:
            same = (affinities[i] >= 1.0 - SAME) & (first == np.arange(len(affinities)))
            same[:i] = False
            first[same] = i
    return first


def _clusters(affinities: Float, n_clusters: int) -> Indices:
    """Cut a graph of affinities into clusters; some may come out empty."""
    # No degree is zero: every subspace is its own neighbour.
    degrees = np.sqrt(affinities.sum(axis=1))
    _, vectors = leading_eigenvectors(affinities / np.outer(degrees, degrees), n_clusters)
    _, pivots = linalg.qr(vectors.T, mode="r", pivoting=True, check_finite=False)
    left, _, right = linalg.svd(vectors[pivots[:n_clusters]].T, check_finite=False)
    return np.argmax(np.abs(product(vectors, product(left, right))), axis=1)


def _medoids(affinities: Float, labels: Indices) -> Representatives:
    """Find the most central member of each cluster, and number the clusters by these."""
    medoids = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        sums = affinities[np.ix_(members, members)].sum(axis=1)
        # Of several that differ by rounding only, the first.
        medoids.append(members[np.argmax(sums >= sums.max() * (1.0 - SAME))])
    indices = np.sort(np.array(medoids, dtype=np.intp))
    order = {labels[index]: number for number, index in enumerate(indices)}
    return Representatives(indices, np.array([order[label] for label in labels], dtype=np.intp))


# --- one α among many ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """The representative α, and what each shows.

    Attributes
    ----------
    alphas : ndarray of shape (r,)
        In ascending order.
    solutions : list of Solution
        What each shows.
    chosen : int
        The one to begin with.
    accurate : bool
        Whether rounding has left enough digits at every α that was looked at.
    """

    alphas: Float
    solutions: list[Solution]
    chosen: int
    accurate: bool

    @property
    def alpha(self) -> float:
        """The α to begin with."""
        return float(self.alphas[self.chosen])

    @property
    def solution(self) -> Solution:
        """What it shows."""
        return self.solutions[self.chosen]

    def judged(self, path: HeldOutPath | None) -> AlphaChoice:
        """Begin with the α that fares best on rows that were not fitted, if that is known."""
        if path is None:
            return self
        return replace(self, chosen=int(np.argmin(np.abs(self.alphas - path.parameters[path.best]))))


def choose_alpha(
    pose: Callable[[float], Pencil],
    target: Moments,
    backgrounds: list[Moments],
    weights: Float,
    alphas: Float,
    *,
    n_components: int,
    n_representatives: int,
    solver: str,
    seed: int,
    side: str = "target",
) -> AlphaChoice:
    """Find the representative views over a list of α, after Abid et al. (2018).

    The subspaces of all α are clustered by their principal angles, and the medoid of each cluster represents it. To
    begin with, the representative is taken that holds the largest share of the target's variance beyond the share of
    the backgrounds' variance it holds: PCA holds much of both, and a large α little of either. For the backgrounds'
    side it is the other way round, and for both sides the largest of either.
    """
    if not backgrounds:
        # Nothing is subtracted, whatever α is.
        alphas = alphas[:1]
    if len(alphas) == 1:
        alone = solve(pose(alphas[0]), n_components, solver=solver, seed=seed, side=side)
        return AlphaChoice(alphas, [alone], 0, alone.accurate)
    solutions = list(solve_path([pose(alpha) for alpha in alphas], n_components, solver=solver, seed=seed, side=side))
    found = representatives(comparable([solution.vectors for solution in solutions]), n_representatives)
    kept = [solutions[index] for index in found.indices]
    shares = np.array([shares_in_span(solution, [target, *backgrounds]) for solution in kept])
    excess = shares[:, 0] - shares[:, 1:] @ weights
    excess = {"target": np.positive, "background": np.negative, "both": np.abs}[side](excess)
    accurate = all(solution.accurate for solution in solutions)
    return AlphaChoice(alphas[found.indices], kept, int(np.argmax(excess)), accurate)
