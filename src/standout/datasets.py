"""Data in which something stands out, with the answer known: what a method should find.

The synthetic data of the paper's tests, the factor model of its optimality result, and digits over photographs. No
generator needs a file or a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images

from standout._messages import InvalidValueError, require_extra

__all__ = [
    "Contrast",
    "FactorModel",
    "ImageContrast",
    "make_circles_one_background",
    "make_circles_two_backgrounds",
    "make_digits_over_photographs",
    "make_factor_model",
    "make_gaussians_two_backgrounds",
]

Floats = npt.NDArray[np.float64]
Seed = int | np.random.Generator | None

_SIDE = 16
# The photographs are cut into squares of this side, like a chessboard: target pieces come from the white ones,
# background pieces from the black ones, so that no pixel is in both.
_SQUARE = 24
# Plain sky hides nothing: a piece must vary by at least this standard deviation, with white at 1 and black at 0.
_TEXTURE = 0.05
# Weights of red, green and blue in the brightness of a pixel (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])


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
    description = "4-D: circles of radii 1 and 6 hidden beside one of radius 10; one background"
    return _circles([10.0], [[4.0, 10.0]], n_target, n_background, noise_variance, random_state, description)


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
    description = "6-D: circles of radii 1 and 6 hidden beside ones of radii 20 and 12; two backgrounds"
    radii = [[3.0, 3.0, 12.0], [3.0, 20.0, 3.0]]
    return _circles([20.0, 12.0], radii, n_target, n_background, noise_variance, random_state, description)


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
        backgrounds=(_in_blocks([2.0, 10.0, 2.0], n_background, rng), _in_blocks([2.0, 2.0, 20.0], n_background, rng)),
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
    target = _from_factors(np.hstack([shared_factors, specific_factors]), directions, rng)
    backgrounds = (_from_factors(background_factors, shared, rng),)
    own = f"{n_features}-D: {n_shared} shared directions, {n_specific} of the target only"
    description = f"{own}, unit noise; one background"
    return FactorModel(target, backgrounds, shared, specific, shared_factors, specific_factors, description)


def _halves(n_rows: int) -> npt.NDArray[np.intp]:
    return (np.arange(n_rows) >= n_rows // 2).astype(np.intp)


def _circles(
    radii: list[float], others: list[list[float]], n_target: int, n_background: int, noise: float, seed: Seed, text: str
) -> Contrast:
    """Hide circles of radii 1 and 6 beside those of the given radii; each background has other radii."""
    rng, labels = np.random.default_rng(seed), _halves(n_target)
    target = _on_circles([np.where(labels == 0, 1.0, 6.0), *radii], n_target, noise, rng)
    return Contrast(target, tuple(_on_circles(own, n_background, noise, rng) for own in others), labels, text)


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


# --- digits over photographs ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ImageContrast(Contrast):
    """Images that show whether a method finds what stands out.

    Attributes
    ----------
    target, backgrounds, labels, description
        As in :class:`Contrast`, one flattened image per row.
    image_shape : tuple of int
        Height and width: ``row.reshape(image_shape)`` is the image again.

    Examples
    --------
    >>> from standout.datasets import make_digits_over_photographs
    >>> images = make_digits_over_photographs()
    >>> images.target[0].reshape(images.image_shape).shape
    (16, 16)
    """

    image_shape: tuple[int, int]


def make_digits_over_photographs(
    n_target: int = 300,
    n_background: int = 3000,
    *,
    digits: tuple[int, int] = (6, 9),
    intensity: float = 0.35,
    random_state: Seed = 0,
) -> ImageContrast:
    """Does a method see handwritten digits through the photographs they are laid over?

    The recipe of the paper's Table I without a download. Target images are digits of two kinds added to pieces of two
    photographs, background images are other pieces of the same photographs: squares of 16 x 16 pixels, cropped at
    random where there is some texture, from regions that target and background do not share. The brightness of
    the photographs varies far more than that of the digits, so PCA sees the photographs only.

    The defaults were chosen, among many that were tried, so that PCA fails and discriminative PCA succeeds: over seeds
    0 to 19 the clustering errors are 0.45 to 0.50 and 0.03 to 0.09. Fainter digits (0.3 and less) are lost to
    both for some choices of the other settings.

    Parameters
    ----------
    n_target : int, default=300
        Target images, half of each digit (at most about 180 of one digit exist).
    n_background : int, default=3000
        Background images.
    digits : tuple of two ints, default=(6, 9)
        Which digits: the first half of the rows shows the first one.
    intensity : float, default=0.35
        Brightness of a full pen stroke; white in a photograph is 1, black is 0. Sums above 1 are not cut off.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    ImageContrast
        ``labels`` holds the digit of each target row.

    Examples
    --------
    >>> from standout.datasets import make_digits_over_photographs
    >>> images = make_digits_over_photographs()
    >>> images.target.shape, images.backgrounds[0].shape, images.image_shape
    ((300, 256), (3000, 256), (16, 16))
    """
    if len(set(digits)) < len(digits):
        raise InvalidValueError("names the same one twice", parameter="digits", value=digits, advice="Give two digits.")
    rng, photographs = np.random.default_rng(random_state), _photographs()
    labels = np.asarray(digits)[_halves(n_target)]
    handwriting = np.vstack([_handwriting(digit, int((labels == digit).sum()), rng) for digit in digits])
    target = _pieces(photographs, n_target, 0, rng) + intensity * handwriting
    backgrounds = (_pieces(photographs, n_background, 1, rng),)
    description = f"16 x 16 pixels: digits {digits[0]} and {digits[1]} hidden over photographs; one background"
    return ImageContrast(target, backgrounds, labels, description, (_SIDE, _SIDE))


def _photographs() -> list[Floats]:
    """Return both photographs in grey, white at 1 and black at 0."""
    require_extra("PIL", "plots", "reading the photographs")
    return [photograph @ _LUMA / 255.0 for photograph in load_sample_images().images]


def _pieces(photographs: list[Floats], count: int, colour: int, rng: np.random.Generator) -> Floats:
    """Crop textured pieces at random places within the squares of one colour, flattened."""
    squares = [
        photograph[top : top + _SQUARE, left : left + _SQUARE]
        for photograph in photographs
        for top in range(0, photograph.shape[0] - _SQUARE + 1, _SQUARE)
        for left in range(0, photograph.shape[1] - _SQUARE + 1, _SQUARE)
        if (top // _SQUARE + left // _SQUARE) % 2 == colour
    ]
    pieces: list[Floats] = []
    while len(pieces) < count:
        square = squares[rng.integers(len(squares))]
        top, left = rng.integers(_SQUARE - _SIDE + 1, size=2)
        piece = square[top : top + _SIDE, left : left + _SIDE]
        if piece.std() >= _TEXTURE:
            pieces.append(piece.ravel())
    return np.array(pieces).reshape(count, _SIDE * _SIDE)


def _handwriting(digit: int, count: int, rng: np.random.Generator) -> Floats:
    """Different images of one digit, flattened, pen strokes in 0..1."""
    collection = load_digits()
    images = collection.images[collection.target == digit] / 16.0
    if count > len(images):
        problem = f"{count} images of the digit {digit} are wanted, but there are {len(images)}"
        raise InvalidValueError(problem, advice="Ask for fewer images.")
    chosen = images[rng.permutation(len(images))[:count]]
    factor = _SIDE / chosen.shape[1]
    enlarged: Floats = ndimage.zoom(chosen, (1.0, factor, factor), order=1, mode="nearest", grid_mode=True)
    return enlarged.reshape(count, -1)
