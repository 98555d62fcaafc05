"""The synthetic data of the paper's tests, and the factor model of its optimality result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._messages import InvalidValueError

Floats = npt.NDArray[np.float64]
Seed = int | np.random.Generator | None


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class Contrast:
    """Data that show whether a method finds what stands out.

    A target with groups hidden in it, and backgrounds without them.

    Attributes
    ----------
    target : ndarray of shape (m, D)
        The data to be looked into.
    backgrounds : tuple of ndarray of shape (n_k, D)
        The data to be looked past; one or more.
    labels : ndarray of shape (m,)
        Hidden group of each target row, to judge a method by and never to fit it with.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> from standout.datasets import make_circles_one_background
    >>> make_circles_one_background()
    Contrast(description='4-D: circles of radii 1 and 6 hidden beside one of radius 10; one background')
    """

    target: Floats = field(repr=False)
    backgrounds: tuple[Floats, ...] = field(repr=False)
    labels: npt.NDArray[Any] = field(repr=False)
    description: str


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Data that show which of the true directions a method finds.

    No groups are hidden here but directions, so there are factors in place of labels.

    Attributes
    ----------
    target : ndarray of shape (m, D)
        Varies along the shared and the specific directions.
    backgrounds : tuple of one ndarray of shape (n, D)
        Varies along the shared directions only.
    shared : ndarray of shape (k, D)
        Orthonormal rows: the directions of both datasets.
    specific : ndarray of shape (d, D)
        Orthonormal rows, orthogonal to ``shared``: the directions to be found.
    shared_factors : ndarray of shape (m, k)
        Coefficients of the target rows along ``shared``.
    specific_factors : ndarray of shape (m, d)
        Coefficients of the target rows along ``specific``.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> from standout.datasets import make_factor_model
    >>> make_factor_model(n_features=50)
    FactorModel(description='50-D: 10 shared directions, 1 of the target only, unit noise; one background')
    """

    target: Floats = field(repr=False)
    backgrounds: tuple[Floats, ...] = field(repr=False)
    shared: Floats = field(repr=False)
    specific: Floats = field(repr=False)
    shared_factors: Floats = field(repr=False)
    specific_factors: Floats = field(repr=False)
    description: str


def make_circles_one_background(
    n_target: int = 300, n_background: int = 150, *, noise_variance: float = 0.1, random_state: Seed = 0
) -> Contrast:
    """Does a method find groups that no linear view shows?

    The data of the paper's first KdPCA test, in four dimensions. In the first two the target lies on circles of radius
    1 (first half of the rows) and 6 (second half), in the last two on one of radius 10. The background has circles of
    radii 4 and 10 there. The groups share their means, so no linear view separates them.

    Parameters
    ----------
    n_target, n_background : int, default=300, 150
        Rows.
    noise_variance : float, default=0.1
        Variance of the Gaussian noise on every coordinate.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    Contrast
        ``labels`` tells the small circle (0) from the large one (1).

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import make_circles_one_background
    >>> data = make_circles_one_background(noise_variance=0.0)
    >>> data.target.shape, [background.shape for background in data.backgrounds]
    ((300, 4), [(150, 4)])
    >>> np.hypot(data.target[:, 0], data.target[:, 1])[[0, -1]].round(6)
    array([1., 6.])
    """
    rng = np.random.default_rng(random_state)
    labels = _halves(n_target)
    inner = np.where(labels == 0, 1.0, 6.0)
    return Contrast(
        target=_on_circles([inner, 10.0], n_target, noise_variance, rng),
        backgrounds=(_on_circles([4.0, 10.0], n_background, noise_variance, rng),),
        labels=labels,
        description="4-D: circles of radii 1 and 6 hidden beside one of radius 10; one background",
    )


def make_circles_two_backgrounds(
    n_target: int = 300, n_background: int = 150, *, noise_variance: float = 0.1, random_state: Seed = 0
) -> Contrast:
    """Does a method find groups that no linear view and no single background shows?

    The data of the paper's KMdPCA test, in six dimensions. In the first two the target lies on circles of radius 1
    (first half of the rows) and 6 (second half), in the next two pairs on circles of radii 20 and 12. The backgrounds
    have radii (3, 3, 12) and (3, 20, 3): each explains away only one of the two large circles.

    Parameters
    ----------
    n_target, n_background : int, default=300, 150
        Rows of the target, and of each background.
    noise_variance : float, default=0.1
        Variance of the Gaussian noise on every coordinate.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    Contrast
        ``labels`` tells the small circle (0) from the large one (1).

    Examples
    --------
    >>> from standout.datasets import make_circles_two_backgrounds
    >>> data = make_circles_two_backgrounds()
    >>> data.target.shape, [background.shape for background in data.backgrounds]
    ((300, 6), [(150, 6), (150, 6)])
    """
    rng = np.random.default_rng(random_state)
    labels = _halves(n_target)
    inner = np.where(labels == 0, 1.0, 6.0)
    return Contrast(
        target=_on_circles([inner, 20.0, 12.0], n_target, noise_variance, rng),
        backgrounds=(
            _on_circles([3.0, 3.0, 12.0], n_background, noise_variance, rng),
            _on_circles([3.0, 20.0, 3.0], n_background, noise_variance, rng),
        ),
        labels=labels,
        description="6-D: circles of radii 1 and 6 hidden beside ones of radii 20 and 12; two backgrounds",
    )


def make_gaussians_two_backgrounds(n_target: int = 300, n_background: int = 150, *, random_state: Seed = 0) -> Contrast:
    """Does a method find groups that no single background shows?

    The data of the paper's first MdPCA test: three blocks of five dimensions. In the first block the target's halves
    are Gaussian with mean 0 and spread 1, and with mean 8 and spread 2; in the other two, spreads of 10 and 20 drown
    this. The backgrounds have spreads (2, 10, 2) and (2, 2, 20): each explains away only one of the two. The paper's
    2, 10 and 20 are standard deviations: read as variances, one background alone would do.

    Parameters
    ----------
    n_target, n_background : int, default=300, 150
        Rows of the target, and of each background.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    Contrast
        ``labels`` tells the group around 0 (0) from the group around 8 (1).

    Examples
    --------
    >>> from standout.datasets import make_gaussians_two_backgrounds
    >>> data = make_gaussians_two_backgrounds(n_target=4000)
    >>> data.target[data.labels == 1].std(axis=0)[[0, 5, 10]].round()
    array([ 2., 10., 20.])
    """
    rng = np.random.default_rng(random_state)
    labels = _halves(n_target)
    target = _in_blocks([1.0, 10.0, 20.0], n_target, rng)
    # The first block is drawn with mean 1 and spread 1: bring each half to its own.
    target[:, :5] = np.where(labels[:, None] == 0, target[:, :5] - 1.0, 8.0 + 2.0 * (target[:, :5] - 1.0))
    return Contrast(
        target=target,
        backgrounds=(
            _in_blocks([2.0, 10.0, 2.0], n_background, rng),
            _in_blocks([2.0, 2.0, 20.0], n_background, rng),
        ),
        labels=labels,
        description="15-D: two Gaussian groups 8 apart hidden beside spreads of 10 and 20; two backgrounds",
    )


def make_factor_model(
    n_target: int = 500,
    n_background: int = 500,
    n_features: int = 100,
    *,
    n_shared: int = 10,
    n_specific: int = 1,
    shared_variance: float | Sequence[float] = 100.0,
    shared_ratio: float = 1.2,
    specific_variance: float | Sequence[float] = 16.0,
    random_state: Seed = 0,
) -> FactorModel:
    """Does a method recover the directions that only the target has?

    The model of the paper's optimality result (Theorem 3): a background row is ``m_y + U_b psi + e`` as in eq. (y), a
    target row ``m_x + U_b chi_b + U_s chi_s + e`` as in eq. (x), with orthonormal ``[U_b, U_s]``, Gaussian factors and
    unit noise. By default the shared directions have the most variance, so that PCA finds them, and the specific ones
    the largest ratio of variances.

    Parameters
    ----------
    n_target, n_background, n_features : int, default=500, 500, 100
        Rows of each dataset, and columns.
    n_shared, n_specific : int, default=10, 1
        Number of directions in both datasets, and in the target only.
    shared_variance : float or sequence of n_shared floats, default=100.0
        Variance of the shared factors in the background.
    shared_ratio : float, default=1.2
        Variance of the shared factors in the target, as a multiple of that in the background.
    specific_variance : float or sequence of n_specific floats, default=16.0
        Variance of the specific factors. No estimate of such a factor from a row can do better than an R² of
        ``specific_variance / (1 + specific_variance)``, because of the noise along the direction.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    FactorModel
        The data with the true directions and the target's true factors.

    Examples
    --------
    >>> from standout.datasets import make_factor_model
    >>> from standout.metrics import captured_variance
    >>> data = make_factor_model(n_specific=2)
    >>> data.target.shape, data.shared.shape, data.specific.shape
    ((500, 100), (10, 100), (2, 100))
    >>> round(captured_variance(data.target, data.specific), 3)
    0.025
    >>> round(captured_variance(data.backgrounds[0], data.specific), 3)
    0.002
    """
    n_directions = n_shared + n_specific
    if n_directions > n_features:
        problem = f"`n_shared` + `n_specific` is {n_directions}, but `n_features` is {n_features}"
        raise InvalidValueError(problem, advice="Ask for fewer directions.")
    rng = np.random.default_rng(random_state)
    directions = np.linalg.qr(rng.standard_normal((n_features, n_directions))).Q.T
    shared, specific = directions[:n_shared], directions[n_shared:]
    shared_spread = np.sqrt(np.broadcast_to(shared_variance, n_shared))
    specific_spread = np.sqrt(np.broadcast_to(specific_variance, n_specific))
    background_factors = rng.standard_normal((n_background, n_shared)) * shared_spread
    shared_factors = rng.standard_normal((n_target, n_shared)) * shared_spread * np.sqrt(shared_ratio)
    specific_factors = rng.standard_normal((n_target, n_specific)) * specific_spread
    target_factors = np.hstack([shared_factors, specific_factors])
    return FactorModel(
        target=_from_factors(target_factors, directions, rng),
        backgrounds=(_from_factors(background_factors, shared, rng),),
        shared=shared,
        specific=specific,
        shared_factors=shared_factors,
        specific_factors=specific_factors,
        description=(
            f"{n_features}-D: {n_shared} shared directions, {n_specific} of the target only, unit noise; one background"
        ),
    )


def _halves(n_rows: int) -> npt.NDArray[np.intp]:
    return (np.arange(n_rows) >= n_rows // 2).astype(np.intp)


def _on_circles(
    radii: Sequence[float | Floats], n_rows: int, noise_variance: float, rng: np.random.Generator
) -> Floats:
    """One pair of columns per radius; a radius may differ from row to row."""
    pairs = []
    for radius in radii:
        angle = rng.uniform(0.0, 2.0 * np.pi, n_rows)
        pairs += [radius * np.cos(angle), radius * np.sin(angle)]
    noise: Floats = rng.standard_normal((n_rows, len(pairs)))
    noise *= np.sqrt(noise_variance)
    return np.column_stack(pairs) + noise


def _in_blocks(spreads: Sequence[float], n_rows: int, rng: np.random.Generator) -> Floats:
    """Five columns of mean 1 for each spread."""
    return 1.0 + np.repeat(spreads, 5) * rng.standard_normal((n_rows, 5 * len(spreads)))


def _from_factors(factors: Floats, directions: Floats, rng: np.random.Generator) -> Floats:
    # In place, because the rows may be wide: noise, then signal, then the mean, which differs between datasets.
    rows: Floats = rng.standard_normal((factors.shape[0], directions.shape[1]))
    rows += factors @ directions
    rows += rng.standard_normal(directions.shape[1])
    return rows
