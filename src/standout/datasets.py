"""Example data in which something stands out, with the known answer that a method should find.

There are the synthetic data of the paper's tests, the factor model of its optimality result, and digits over
photographs. No generator needs a file or a download.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images
from sklearn.utils import Bunch

from standout._messages import InvalidValueError, require_extra

__all__ = ["make_digits_over_photographs", "make_factor_model", "make_hidden_circles"]

Floats = npt.NDArray[np.float64]
Seed = int | np.random.Generator | None

_SIDE = 16
# The photographs are cut into squares of this side, like a chessboard: target pieces come from the white ones,
# background pieces from the black ones, so that no pixel is in both.
_SQUARE = 24
# Minimum standard deviation of a piece, with white at 1 and black at 0. Pieces of plain sky would not hide a digit.
_TEXTURE = 0.05
# Variance of the shared factors in a target, as a multiple of their variance in the background.
_SHARED_RATIO = 1.2
# Weights of red, green and blue in the brightness of a pixel (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])


def make_hidden_circles(
    n_target: int = 300,
    n_background: int = 150,
    *,
    n_backgrounds: int = 1,
    noise_variance: float = 0.1,
    random_state: Seed = 0,
) -> Bunch:
    """Does a method find groups that no linear view shows?

    The data of the paper's KdPCA and KMdPCA tests. In the first two dimensions the target lies on circles of radius 1
    (first half of the rows) and 6 (second half). The two groups have the same mean, so no linear view separates them.
    Larger circles in further dimensions hide the groups: in two dimensions with one background, in four dimensions with
    two backgrounds.

    - One background: the target has radius 10 in the last two dimensions, the background has radii 4 and 10.
    - Two backgrounds: the target has radii 20 and 12, the backgrounds have radii (3, 3, 12) and (3, 20, 3). Each
      background has only one of the two large circles.

    Parameters
    ----------
    n_target, n_background : int, default=300, 150
        Number of rows of the target, and of each background.
    n_backgrounds : {1, 2}, default=1
        Number of backgrounds.
    noise_variance : float, default=0.1
        Variance of the Gaussian noise on every coordinate.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    sklearn.utils.Bunch
        ``target`` is an array with a row per sample, and ``backgrounds`` a tuple of such arrays. ``labels`` is 0 for
        target rows on the small circle and 1 for rows on the large one, for judging a method. ``description`` is one
        line.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import make_hidden_circles
    >>> data = make_hidden_circles(noise_variance=0.0)
    >>> data.target.shape, [background.shape for background in data.backgrounds]
    ((300, 4), [(150, 4)])
    >>> np.hypot(data.target[:, 0], data.target[:, 1])[[0, -1]].round(6)
    array([1., 6.])
    """
    if n_backgrounds not in (1, 2):
        raise InvalidValueError("is not 1 or 2", parameter="n_backgrounds", value=n_backgrounds)
    rng, labels = np.random.default_rng(random_state), _halves(n_target)
    hidden = np.where(labels == 0, 1.0, 6.0)
    radii, others = [10.0], [[4.0, 10.0]]
    if n_backgrounds == 2:
        radii, others = [20.0, 12.0], [[3.0, 3.0, 12.0], [3.0, 20.0, 3.0]]
    target = _on_circles([hidden, *radii], n_target, noise_variance, rng)
    backgrounds = tuple(_on_circles(own, n_background, noise_variance, rng) for own in others)
    description = f"{target.shape[1]}-D: circles of radii 1 and 6 hidden by larger ones; backgrounds: {n_backgrounds}"
    return Bunch(target=target, backgrounds=backgrounds, labels=labels, description=description)


def make_factor_model(
    n_target: int = 500,
    n_background: int = 500,
    n_features: int = 100,
    *,
    n_shared: int = 10,
    n_specific: int = 1,
    shared_variance: float | Sequence[float] = 100.0,
    specific_variance: float | Sequence[float] = 16.0,
    random_state: Seed = 0,
) -> Bunch:
    """Does a method recover the directions that only the target has?

    The model of the paper's optimality result (Theorem 3): a background row is ``m_y + U_b psi + e`` as in eq. (y), a
    target row ``m_x + U_b chi_b + U_s chi_s + e`` as in eq. (x), with orthonormal ``[U_b, U_s]``, Gaussian factors and
    unit noise. By default the shared directions have the most variance, so that PCA finds them. The specific directions
    have the largest ratio of variances.

    Parameters
    ----------
    n_target, n_background, n_features : int, default=500, 500, 100
        Rows of each dataset, and columns.
    n_shared, n_specific : int, default=10, 1
        Number of directions that both datasets have, and of directions that only the target has.
    shared_variance : float or sequence of n_shared floats, default=100.0
        Variance of the shared factors in the background; in the target it is 1.2 times as large.
    specific_variance : float or sequence of n_specific floats, default=16.0
        Variance of the specific factors. No estimate of such a factor from a row can do better than an R² of
        ``specific_variance / (1 + specific_variance)``, because of the noise along the direction.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    sklearn.utils.Bunch
        ``target``, ``backgrounds`` and ``description`` as in `make_hidden_circles`; ``directions`` of shape
        (n_specific, n_features) has the orthonormal directions of the target alone, and ``labels`` of shape
        (n_target, n_specific) the coefficients of each target row along them.

    Examples
    --------
    >>> from standout.datasets import make_factor_model
    >>> data = make_factor_model(n_specific=2)
    >>> data.target.shape, data.directions.shape, data.labels.shape
    ((500, 100), (2, 100), (500, 2))
    """
    n_directions = n_shared + n_specific
    if n_directions > n_features:
        problem = f"`n_shared` + `n_specific` is {n_directions}, but `n_features` is {n_features}"
        raise InvalidValueError(problem, advice="Ask for fewer directions.")
    rng = np.random.default_rng(random_state)
    directions = np.linalg.qr(rng.standard_normal((n_features, n_directions))).Q.T
    shared_spread = np.sqrt(shared_variance)
    background_factors = rng.standard_normal((n_background, n_shared)) * shared_spread
    shared_factors = rng.standard_normal((n_target, n_shared)) * shared_spread * np.sqrt(_SHARED_RATIO)
    specific_factors = rng.standard_normal((n_target, n_specific)) * np.sqrt(specific_variance)
    target = _from_factors(np.hstack([shared_factors, specific_factors]), directions, rng)
    backgrounds = (_from_factors(background_factors, directions[:n_shared], rng),)
    facts = {"labels": specific_factors, "directions": directions[n_shared:]}
    description = f"{n_features}-D: {n_shared} shared directions, {n_specific} of the target only, unit noise"
    return Bunch(target=target, backgrounds=backgrounds, description=description, **facts)


def _halves(n_rows: int) -> npt.NDArray[np.intp]:
    return (np.arange(n_rows) >= n_rows // 2).astype(np.intp)


def _on_circles(radii: Sequence[Any], n_rows: int, noise_variance: float, rng: np.random.Generator) -> Floats:
    """Return one pair of columns per radius. A radius is a number, or an array with one number per row."""
    angles = rng.uniform(0.0, 2.0 * np.pi, (len(radii), n_rows))
    lengths = np.array([np.broadcast_to(radius, n_rows) for radius in radii])
    circles = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=1).reshape(-1, n_rows).T
    return circles + np.sqrt(noise_variance) * rng.standard_normal(circles.shape)


def _from_factors(factors: Floats, directions: Floats, rng: np.random.Generator) -> Floats:
    noise = rng.standard_normal((factors.shape[0], directions.shape[1]))
    # The mean differs between datasets.
    return noise + factors @ directions + rng.standard_normal(directions.shape[1])


def make_digits_over_photographs(
    n_target: int = 300, n_background: int = 3000, *, intensity: float = 0.35, random_state: Seed = 0
) -> Bunch:
    """Does a method see handwritten digits through the photographs they are laid over?

    The recipe of the paper's Table I without a download. All images are pieces of two photographs: 16 x 16 pixels,
    cropped at random from textured regions. Target and background use different regions. Sixes and nines are added to
    the target images. The brightness of the photographs varies far more than the brightness of the digits, so PCA shows
    only the photographs.

    The defaults were chosen, among many that were tried, so that PCA fails and discriminative PCA succeeds: over seeds
    0 to 19 the clustering errors are 0.45 to 0.50 for PCA, and 0.03 to 0.09 for discriminative PCA. With fainter digits
    (an intensity of 0.3 or less), PCA and discriminative PCA both fail for some values of the other parameters.

    Parameters
    ----------
    n_target : int, default=300
        Target images: sixes, then as many nines (at most about 180 of one digit exist).
    n_background : int, default=3000
        Background images.
    intensity : float, default=0.35
        Brightness of a full pen stroke; white in a photograph is 1, black is 0. Sums of photograph and digit above 1
        are not cut off.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    sklearn.utils.Bunch
        ``target``, ``backgrounds`` and ``description`` as in `make_hidden_circles`, with a flattened image per row;
        ``labels`` has the digit of each target row; ``row.reshape(image_shape)`` is the image of a row.

    Examples
    --------
    >>> from standout.datasets import make_digits_over_photographs
    >>> images = make_digits_over_photographs()
    >>> images.target.shape, images.backgrounds[0].shape, images.image_shape
    ((300, 256), (3000, 256), (16, 16))
    """
    rng, photographs = np.random.default_rng(random_state), _photographs()
    labels = np.array([6, 9])[_halves(n_target)]
    handwriting = np.vstack([_handwriting(digit, int((labels == digit).sum()), rng) for digit in (6, 9)])
    target = _pieces(photographs, n_target, 0, rng) + intensity * handwriting
    backgrounds = (_pieces(photographs, n_background, 1, rng),)
    description = "16 x 16 pixels: digits 6 and 9 hidden over photographs; one background"
    facts = {"labels": labels, "image_shape": (_SIDE, _SIDE)}
    return Bunch(target=target, backgrounds=backgrounds, description=description, **facts)


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
    """Return different images of one digit, flattened, with numbers from 0 to 1."""
    collection = load_digits()
    images = collection.images[collection.target == digit] / 16.0
    if count > len(images):
        problem = f"{count} images of the digit {digit} are wanted, but there are {len(images)}"
        raise InvalidValueError(problem, advice="Ask for fewer images.")
    chosen = images[rng.permutation(len(images))[:count]]
    factor = _SIDE / chosen.shape[1]
    return ndimage.zoom(chosen, (1.0, factor, factor), order=1, mode="nearest", grid_mode=True).reshape(count, -1)
