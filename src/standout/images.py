"""Image cubes of rows x columns x bands: which spectra stand out from the noise of the sensor?

The method is discriminative PCA of the pixels against the noise. It is known as minimum noise fraction (MNF) and
noise-adjusted principal components (NAPC).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._arrays import Float
from standout._messages import InvalidTypeError, InvalidValueError, require_extra, shown
from standout.estimators import DiscriminativePCA
from standout.io._binary import mat_arrays
from standout.io._files import attempt, check_choice, check_file

__all__ = ["NoiseFractions", "noise_fractions", "read_cube"]

Mask = npt.NDArray[np.bool_]
# Steps to the neighbour that is subtracted, in rows and columns. The names are as in the package spectral.
STEPS = {"both": [(0, 1), (1, 0)], "right": [(0, 1)], "lower": [(1, 0)], "lowerright": [(1, 1)], "lowerleft": [(1, -1)]}
# Pixels next to each other are similar. Held-out pixels are therefore whole strips of image rows.
N_STRIPS = 20


@dataclass(frozen=True, eq=False)
class NoiseFractions:
    """Components of an image cube, ordered by the ratio of the variance of the image to the variance of the noise.

    Attributes
    ----------
    model : DiscriminativePCA
        The fitted model: ``model.ratio_``, ``model.components_``, ``model.correlations_`` of the bands and so on.
    images : ndarray of shape (n_rows, n_columns, n_components)
        The scores of every pixel, folded back into images; NaN outside of the mask. The noise has a variance of 1.

    Examples
    --------
    See `noise_fractions`.
    """

    model: DiscriminativePCA
    images: Float

    @property
    def snr(self) -> Float:
        """Signal-to-noise ratio of each component, on held-out strips if there are folds.

        The ratio of the variance of the pixels to the variance of the noise, minus one.
        """
        held_out = np.asarray(self.model.ratio_)
        return np.where(np.isnan(held_out), self.model.eigenvalues_, held_out) - 1.0

    def transform(self, cube: Any) -> Float:
        """Return the scores of the pixels of a new cube, or of the fitted cube, as images.

        Parameters
        ----------
        cube : array-like of shape (n_rows, n_columns, n_bands)

        Returns
        -------
        ndarray of shape (n_rows, n_columns, n_components)
        """
        pixels = _cube(cube, self.model.n_features_in_)
        return self.model.transform(pixels.reshape(-1, pixels.shape[2])).reshape(*pixels.shape[:2], -1)

    def denoise(self, cube: Any, n_components: int | None = None) -> Float:
        """Return the cube that the first components reconstruct. The other components are mostly noise.

        Parameters
        ----------
        cube : array-like of shape (n_rows, n_columns, n_bands)
        n_components : int, default=None
            Number of first components to keep. None keeps all components with an SNR above 1.

        Returns
        -------
        ndarray of shape (n_rows, n_columns, n_bands)
        """
        kept = int(np.sum(self.snr > 1.0)) if n_components is None else n_components
        scores = self.transform(cube)
        scores[:, :, kept:] = 0.0
        return self.model.inverse_transform(scores.reshape(-1, scores.shape[2])).reshape(*scores.shape[:2], -1)


def noise_fractions(
    cube: Any,
    *,
    noise: Any = "differences",
    direction: str = "both",
    mask: Any = None,
    n_components: int = 20,
    shrinkage: Any = None,
    cv: int | None = 5,
    **params: Any,
) -> NoiseFractions:
    """Which components of an image cube have the largest ratio of signal to noise?

    The minimum noise fraction transform: discriminative PCA of the pixels against the noise of the sensor. The noise is
    estimated from differences of neighbouring pixels, which mostly see the same material, or from a dark image.

    Parameters
    ----------
    cube : array-like of shape (n_rows, n_columns, n_bands)
        The image cube, such as `read_cube` returns.
    noise : "differences" or array-like of shape (..., n_bands), default="differences"
        "differences": the noise is the difference of neighbouring pixels, divided by √2. An array is a dark image or
        another measurement of noise alone.
    direction : {"both", "right", "lower", "lowerright", "lowerleft"}, default="both"
        Which neighbour is subtracted. "both" uses the right neighbour and the lower one. If the sensor makes stripes
        along one of these directions, use the other direction alone.
    mask : array-like of bool of shape (n_rows, n_columns), default=None
        The pixels to use. A difference is used only if both of its pixels are in the mask. None uses all pixels.
    n_components : int, default=20
        Number of components; all bands if there are fewer.
    shrinkage : float, "auto", "ledoit-wolf" or None, default=None
        How far the covariance of the noise is pulled towards a multiple of the identity. None is the textbook formula.
        Use "auto" for small regions with many bands.
    cv : int or None, default=5
        Number of folds for held-out ratios. A fold is made of whole strips of image rows.
    **params
        Further parameters of `DiscriminativePCA`.

    Returns
    -------
    NoiseFractions
        With ``snr``, ``images``, ``model``, ``transform`` and ``denoise``. `standout.plots.ratios` draws the ratios of
        ``model``, which are the SNR plus one.

    Notes
    -----
    ``model.eigenvalues_`` equal the values of ``scipy.linalg.eigh(C, N)``, with C the covariance of the pixels and N
    the covariance of the noise. The SNR is the eigenvalue minus one.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.images import noise_fractions
    >>> rng = np.random.default_rng(0)
    >>> scene = np.cumsum(rng.normal(size=(60, 60)), axis=1)  # one material, smooth from left to right
    >>> cube = scene[:, :, None] * [0.0, 1.0, 2.0, 1.0] + rng.normal(size=(60, 60, 4)) * [9, 3, 3, 3]
    >>> found = noise_fractions(cube, direction="right")
    >>> found.images.shape, found.snr.round(1)[:2]
    ((60, 60, 4), array([15.2,  0. ]))
    """
    inside, rows, strips = as_rows(cube, noise, direction=direction, mask=mask)
    groups = {} if cv is None or not strips else {"groups": strips[0], "background_groups": strips[1]}
    model = DiscriminativePCA(min(n_components, rows[0].shape[1]), shrinkage=shrinkage, cv=cv, **params)
    model.fit(rows[0], background=rows[1], **groups)
    return NoiseFractions(model, folded(model.transform(rows[0]), inside))


def read_cube(path: str | os.PathLike[str], *, variable: str | None = None) -> npt.NDArray[Any]:
    """Read an image cube from a file: ENVI and other formats of the package spectral, MATLAB, or NumPy.

    Parameters
    ----------
    path : str or path-like
        A header of ENVI (``.hdr``), an image of another format that ``spectral.open_image`` reads, a ``.mat`` or an
        ``.npy`` file.
    variable : str, default=None
        Name of the array in a ``.mat`` file. None uses the only array with three dimensions.

    Returns
    -------
    ndarray of shape (n_rows, n_columns, n_bands)

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from standout.images import read_cube
    >>> with TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "cube.npy", np.ones((4, 5, 6)))
    ...     read_cube(Path(folder) / "cube.npy").shape
    (4, 5, 6)
    """
    place = Path(path).expanduser()
    check_file(place)
    return attempt(place, "an image cube", lambda: _read(place, variable))


def _read(place: Path, variable: str | None) -> npt.NDArray[Any]:
    """Read the array of a file. In a .mat file, choose the named or the only array with three dimensions."""
    if place.suffix == ".npy":
        return np.load(place, allow_pickle=False)
    if place.suffix != ".mat":
        require_extra("spectral", "spectra", "a cube from a file of images")
        import spectral

        image = spectral.open_image(str(place))
        return np.asarray(image.load(dtype=np.result_type(image.dtype, np.float32)))
    cubes = {name: value for name, value in mat_arrays(place).items() if np.ndim(value) == 3}
    chosen = list(cubes) if variable is None else [variable]
    if len(chosen) != 1 or chosen[0] not in cubes:
        problem = f"{shown(place)} has {len(cubes)} arrays with three dimensions: {', '.join(cubes) or 'none'}"
        raise InvalidValueError(problem, advice="Name the one to use with `variable`.")
    return np.asarray(cubes[chosen[0]])


def as_rows(
    cube: Any, noise: Any = "differences", *, direction: str = "both", mask: Any = None
) -> tuple[Mask, list[Float], list[npt.NDArray[np.intp]]]:
    """Return a mask of the used pixels, the rows of pixels and of noise, and the strip of each row.

    If the image or the noise has few rows, the list of strips is empty. The mean of the noise is moved to the mean of
    the pixels, because only the variances are compared.
    """
    whole = _cube(cube)
    shape, n_bands = whole.shape[:2], whole.shape[2]
    inside = np.ones(shape, dtype=bool) if mask is None else np.asarray(mask)
    if inside.shape != shape or inside.dtype != np.bool_ or not inside.any():
        problem = f"has shape {inside.shape} and type {inside.dtype}, but a truth value for each pixel is needed"
        raise InvalidValueError(problem, parameter="mask", advice=f"Give an array of bool of shape {shape}.")
    strips = np.broadcast_to((np.arange(shape[0]) * N_STRIPS // shape[0])[:, None], shape)
    pixels = whole[inside]
    if isinstance(noise, str):
        check_choice(noise, "noise", ["differences"])
        other, of_other = _differences(whole, inside, strips, direction)
    else:
        dark = np.asarray(noise)
        if dark.ndim < 2 or dark.dtype.kind not in "fiu" or dark.shape[-1] != n_bands:
            problem = f"has shape {dark.shape}, but the cube has {n_bands} bands"
            raise InvalidValueError(problem, parameter="noise", advice="Give a dark image with the same bands.")
        other = dark.reshape(-1, n_bands).astype(np.float64)
        of_other = np.arange(len(other)) * N_STRIPS // len(other)
    other += (pixels.mean(axis=0, dtype=np.float64) - other.mean(axis=0, dtype=np.float64)).astype(other.dtype)
    few = min(shape[0], len(other)) < 2 * N_STRIPS
    return inside, [pixels, other], [] if few else [strips[inside], of_other]


def folded(scores: Any, inside: Mask) -> Float:
    """Return the scores of the used pixels as images; NaN elsewhere."""
    images = np.full((*inside.shape, np.shape(scores)[1]), np.nan)
    images[inside] = scores
    return images


def _cube(cube: Any, n_bands: int | None = None) -> npt.NDArray[Any]:
    """Return a cube as an array of floating-point numbers. Refuse other shapes and types."""
    whole = np.asarray(cube)
    if whole.ndim != 3 or whole.dtype.kind not in "fiu" or (n_bands is not None and whole.shape[2] != n_bands):
        bands = "bands" if n_bands is None else f"{n_bands} bands"
        problem = f"has shape {whole.shape} and type {whole.dtype}, but rows x columns x {bands} of numbers are needed"
        raise InvalidTypeError(problem, parameter="cube", advice="For a table of spectra use DiscriminativePCA.")
    # Differences of unsigned numbers would wrap around.
    return whole if whole.dtype.kind == "f" else whole.astype(np.float64)


def _differences(
    cube: npt.NDArray[Any], inside: Mask, strips: npt.NDArray[np.intp], direction: str
) -> tuple[Float, npt.NDArray[np.intp]]:
    """Return differences of neighbours, scaled to the variance of the noise, and the strip of each difference."""
    check_choice(direction, "direction", STEPS)
    found, numbers = [], []
    for down, right in STEPS[direction]:
        here = np.s_[: len(cube) - down, max(-right, 0) : cube.shape[1] - max(right, 0)]
        there = np.s_[down:, max(right, 0) : cube.shape[1] - max(-right, 0)]
        both = inside[here] & inside[there]
        found.append((cube[here][both] - cube[there][both]) / np.sqrt(2.0).astype(cube.dtype))
        numbers.append(strips[here][both])
    if sum(map(len, found)) < 2:
        problem = "leaves fewer than two pairs of neighbours"
        raise InvalidValueError(problem, parameter="mask", advice="Use more pixels that lie side by side.")
    return np.concatenate(found), np.concatenate(numbers)
