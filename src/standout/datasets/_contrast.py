"""The records that generators of data return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
