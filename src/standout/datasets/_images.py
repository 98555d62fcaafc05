"""Digits over photographs: the paper's semi-synthetic images, made from what scikit-learn brings along."""

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from sklearn.datasets import load_digits, load_sample_images

from standout._validation import check_different, check_enough
from standout.datasets._contrast import ImageContrast

Floats = npt.NDArray[np.float64]

_SIDE = 16
# Weights of red, green and blue in the brightness of a pixel (ITU-R BT.601).
_LUMA = np.array([0.299, 0.587, 0.114])


def make_digits_over_photographs(
    n_target: int = 300,
    n_background: int = 1500,
    *,
    digits: tuple[int, int] = (6, 9),
    intensity: float = 0.5,
    random_state: int | np.random.Generator | None = 0,
) -> ImageContrast:
    """Does a method see handwritten digits through the photographs they are laid over?

    The recipe of the paper's Table I without a download. Target images are digits of two kinds added to pieces of two
    photographs, background images are other pieces of the same photographs. Pieces are squares of 16 x 16 pixels on a
    grid, drawn at random, and no two of them overlap. The brightness of the photographs varies far more than that of
    the digits, so PCA sees the photographs only.

    Parameters
    ----------
    n_target : int, default=300
        Target images, half of each digit (at most about 180 of one digit exist).
    n_background : int, default=1500
        Background images (target and background together at most 2,080).
    digits : tuple of two ints, default=(6, 9)
        Which digits: the first half of the rows shows the first one.
    intensity : float, default=0.5
        Brightness of a full pen stroke; white in a photograph is 1, black is 0. Sums above 1 are not cut off.
    random_state : int, numpy.random.Generator or None, default=0
        The same int gives the same data; ``None`` gives other data on each call.

    Returns
    -------
    ImageContrast
        ``labels`` holds the digit of each target row.

    Raises
    ------
    ImportError
        If Pillow, which reads the photographs, is missing. It comes with ``standout[plots]``.

    Examples
    --------
    >>> from standout.datasets import make_digits_over_photographs
    >>> images = make_digits_over_photographs()
    >>> images.target.shape, images.backgrounds[0].shape, images.image_shape
    ((300, 256), (1500, 256), (16, 16))
    """
    check_different(digits, "digits")
    rng = np.random.default_rng(random_state)
    pieces = _photograph_pieces()
    n_pieces = n_target + n_background
    check_enough(n_pieces, len(pieces), "n_target + n_background", "the number of pieces", "Ask for fewer images.")
    pieces = pieces[rng.permutation(len(pieces))[:n_pieces]]
    n_first = n_target // 2
    labels = np.repeat(digits, [n_first, n_target - n_first])
    handwriting = np.vstack([_handwriting(digit, int((labels == digit).sum()), rng) for digit in digits])
    return ImageContrast(
        target=pieces[:n_target] + intensity * handwriting,
        backgrounds=(pieces[n_target:],),
        labels=labels,
        description=f"16 x 16 pixels: digits {digits[0]} and {digits[1]} hidden over photographs; one background",
        image_shape=(_SIDE, _SIDE),
    )


def _photograph_pieces() -> Floats:
    """All squares of the grid on both photographs, flattened, brightness in 0..1."""
    try:
        photographs = load_sample_images().images
    except ImportError as error:
        raise ImportError(
            "Reading the photographs needs Pillow. Install it with: pip install standout[plots]"
        ) from error
    pieces = []
    for photograph in photographs:
        grey = photograph @ _LUMA / 255.0
        down, across = grey.shape[0] // _SIDE, grey.shape[1] // _SIDE
        grid = grey[: down * _SIDE, : across * _SIDE].reshape(down, _SIDE, across, _SIDE)
        pieces.append(grid.swapaxes(1, 2).reshape(-1, _SIDE * _SIDE))
    return np.vstack(pieces)


def _handwriting(digit: int, count: int, rng: np.random.Generator) -> Floats:
    """Different images of one digit, flattened, pen strokes in 0..1."""
    collection = load_digits()
    images = collection.images[collection.target == digit] / 16.0
    check_enough(count, len(images), f"the number of images of digit {digit}", "that in stock", "Ask for fewer images.")
    chosen = images[rng.permutation(len(images))[:count]]
    factor = _SIDE / chosen.shape[1]
    enlarged: Floats = ndimage.zoom(chosen, (1.0, factor, factor), order=1, mode="nearest", grid_mode=True)
    return enlarged.reshape(count, -1)
