"""From moments to a pencil: what each method compares, one short function per method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from standout._arrays import Float
from standout._xp import cholesky, diagonal, eigh, namespace
from standout.graphs import Smooth
from standout.moments import Moments, ScatterMoments
from standout.pencil import Form, Pencil
from standout.private import PrivateMoments

# Pivots of a Cholesky factor up to so many times the unit of rounding may be nothing but rounding.
ROUNDED_PIVOT = 100.0


def principal(target: Moments, smooth: Smooth | None = None) -> Pencil:
    """Which problem is PCA? The variance of the target against unit length: ``Cxx u = λ u`` (eq. 1, and Remark 1).

    Parameters
    ----------
    target : Moments
    smooth : Smooth, optional
        Adds ``γ L`` to the identity, with L the Laplacian of a graph over the columns.

    Returns
    -------
    Pencil

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> pencil.solve(contrast.principal(moments.gather(X)), 1).values
    array([4.5])
    """
    d = target.n_features
    rough = () if smooth is None or smooth.strength == 0.0 else ((smooth.strength, smooth.graph),)
    return Pencil(Form(d, ((1.0, target),)), Form(d, rough, ridge=1.0))


def discriminative(
    target: Moments,
    backgrounds: Sequence[Moments],
    weights: Sequence[float] | Float,
    shrinkage: Sequence[float] | Float,
    *,
    n_columns: int | None = None,
    smooth: Smooth | None = None,
) -> Pencil:
    """Which problem is dPCA and MdPCA? The variance of the target against that of the backgrounds (eqs. 6 and 20).

    ``A = Cxx`` and ``B = Σ ωₖ [(1 - sₖ) Cₖ + sₖ (tr Cₖ / D) I]``. With all shrinkages sₖ zero this is the paper's
    formula.

    Parameters
    ----------
    target : Moments
    backgrounds : sequence of Moments
    weights : sequence of float
        ω, non-negative, with sum 1.
    shrinkage : sequence of float
        s, one number in [0, 1] per background.
    n_columns : int, optional
        Number of columns D of the data, if the moments are those of coordinates in a subspace.
    smooth : Smooth, optional
        Adds ``γ (Σ ωₖ tr Cₖ / D) L`` to B, with L the Laplacian of a graph over the columns.

    Returns
    -------
    Pencil

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 2])
    >>> background = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 1])
    >>> problem = contrast.discriminative(target, [background], [1.0], [0.0])
    >>> np.argmax(np.abs(pencil.solve(problem, 1).vectors[:, 0]))
    np.int64(2)
    """
    d = target.n_features
    terms: list[tuple[float, Moments]] = []
    ridge = 0.0
    for background, weight, share in zip(backgrounds, weights, shrinkage, strict=True):
        if weight == 0.0:
            continue
        # At a share of 1 as well: the rows of the background still span directions.
        terms.append((float(weight * (1.0 - share)), background))
        if isinstance(background, PrivateMoments):
            # The identity of private sums is that of their units, in which noise is the same along every direction.
            terms.append((float(weight * share), background.spherical))
            continue
        ridge += float(weight * share) * background.total_variance / (n_columns or d)
    if smooth is not None and smooth.strength > 0.0:
        mean = sum(weight * part.total_variance for weight, part in zip(weights, backgrounds, strict=True)) / d
        terms.append((float(smooth.strength * mean), smooth.graph))
    return Pencil(Form(d, ((1.0, target),)), Form(d, tuple(terms), ridge=ridge))


def contrastive(
    target: Moments, backgrounds: Sequence[Moments], weights: Sequence[float] | Float, alpha: float
) -> Pencil:
    """Which problem is cPCA? The target's variance minus α times the backgrounds', against unit length.

    ``A = Cxx - α Σ ωₖ Cₖ`` and ``B = I``: contrastive PCA, the baseline of the paper's Sec. VII, for one or several
    backgrounds. With α = 0 it is PCA. With α the leading ratio of dPCA it has dPCA's leading direction (Theorem 2).

    Parameters
    ----------
    target : Moments
    backgrounds : sequence of Moments
    weights : sequence of float
        ω, non-negative, with sum 1.
    alpha : float
        α, non-negative.

    Returns
    -------
    Pencil

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> rng = np.random.default_rng(0)
    >>> target = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 2])
    >>> background = moments.gather(rng.normal(size=(1000, 3)) * [9, 1, 1])
    >>> problem = contrast.contrastive(target, [background], [1.0], 2.0)
    >>> np.argmax(np.abs(pencil.solve(problem, 1).vectors[:, 0]))
    np.int64(2)
    """
    d = target.n_features
    taken = tuple(
        (-float(alpha * weight), background)
        for background, weight in zip(backgrounds, weights, strict=True)
        if alpha * weight > 0.0
    )
    return Pencil(Form(d, ((1.0, target), *taken)), Form(d, (), ridge=1.0))


def kernel_discriminative(
    target: Moments, backgrounds: Sequence[Moments], weights: Sequence[float] | Float, epsilon: float
) -> Pencil:
    """Which problem is KdPCA and KMdPCA? In coordinates, ``A = Cxx`` and ``B = Σ ωₖ Cₖ + ε I`` (eqs. 19 and 23).

    The paper adds ``ε I`` in dual coordinates. The moments must be those of coordinates in which the ridge is ``ε I``,
    too: the centred kernel rows, or features g multiplied by R with ``RᵀR = T``, the total scatter of the centred
    features (see `total_root`). The weights ω, which the paper leaves out of its equation, are used here.

    Parameters
    ----------
    target : Moments
    backgrounds : sequence of Moments
    weights : sequence of float
        ω, non-negative, with sum 1.
    epsilon : float
        ε, positive.

    Returns
    -------
    Pencil

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments, pencil
    >>> rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> problem = contrast.kernel_discriminative(moments.gather(rows), [], [], 0.5)
    >>> pencil.solve(problem, 1).values
    array([4.])
    """
    d = target.n_features
    terms = tuple(
        (float(weight), background) for background, weight in zip(backgrounds, weights, strict=True) if weight > 0.0
    )
    return Pencil(Form(d, ((1.0, target),)), Form(d, terms, ridge=epsilon))


def total_root(datasets: Sequence[ScatterMoments]) -> Float:
    """What is a root R, with ``RᵀR`` the total scatter of the datasets, each about its own mean?

    Parameters
    ----------
    datasets : sequence of ScatterMoments

    Returns
    -------
    ndarray of shape (n_features, n_features)
        With rows of zeros for directions in which no dataset varies, such as the constant of a polynomial kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import contrast, moments
    >>> rows = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> contrast.total_root([moments.gather(rows), moments.gather(rows)]).round(3)
    array([[4., 0.],
           [0., 2.]])
    """
    total = sum((moments.scatter for moments in datasets[1:]), start=datasets[0].scatter)
    xp = namespace(total)
    factor = cholesky(1.0 * total)
    rounding = total.shape[0] * float(np.finfo(np.float64).eps)
    # A singular matrix can have a factor, too, with pivots that are nothing but rounding.
    if factor is not None and bool(xp.all(diagonal(factor) ** 2 > ROUNDED_PIVOT * rounding * diagonal(total))):
        return xp.tril(factor).T
    values, vectors = eigh(total)
    values = xp.where(values > rounding * xp.max(values), values, 0.0 * values)
    root: Float = xp.sqrt(values)[:, None] * vectors.T
    return root
