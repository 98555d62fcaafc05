"""The records that loaders of real data return: plain arrays, one entry per row."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Pixels = npt.NDArray[np.uint8]
Words = npt.NDArray[Any]


# Compared by identity: == between records of arrays has no single truth value.
@dataclass(frozen=True, eq=False)
class MiceProtein:
    """Protein levels in the brains of mice, with and without Down syndrome.

    Attributes
    ----------
    X : ndarray of shape (n, 77)
        Protein levels, NaN where one is missing; n is 1080 in the whole dataset, 15 measurements of each of 72 mice.
    columns : ndarray of shape (77,)
        Names of the proteins.
    mouse, genotype, treatment, behavior : ndarray of shape (n,)
        Words: the mouse and its measurement (``309_1``), ``Control`` or ``Ts65Dn``, ``Memantine`` or ``Saline``,
        ``C/S`` (context-shock) or ``S/C`` (shock-context).
    labels : ndarray of shape (n,)
        The class, which joins the last three: ``t-SC-m`` is Ts65Dn, S/C, Memantine.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import MiceProtein
    >>> words = np.array(["309_1", "Control", "Memantine", "C/S", "c-CS-m"]).reshape(5, 1)
    >>> mice = MiceProtein(np.ones((1, 77)), np.arange(77).astype(str), *words, description="one mouse")
    >>> mice, mice.labels
    (MiceProtein(description='one mouse'), array(['c-CS-m'], dtype='<U9'))
    """

    X: Floats = field(repr=False)
    columns: Words = field(repr=False)
    mouse: Words = field(repr=False)
    genotype: Words = field(repr=False)
    treatment: Words = field(repr=False)
    behavior: Words = field(repr=False)
    labels: Words = field(repr=False)
    description: str = ""


@dataclass(frozen=True, eq=False)
class MHealth:
    """Body sensors at 50 Hz during everyday activities.

    Attributes
    ----------
    X : ndarray of shape (n, 23)
        Sensor values in the physical units of the release.
    columns : ndarray of shape (23,)
        Names of the signals.
    full_precision : ndarray of shape (23,), bool
        Which signals have the precision of the release. The others have been truncated to integers.
    labels : ndarray of shape (n,)
        Activity: 1 standing still, 3 lying down, 6 waist bends forward, 7 frontal elevation of arms, 9 cycling.
    subjects : ndarray of shape (n,)
        Number of the person.
    rows : ndarray of shape (n,)
        Row in the person's log, from 0: tells time order and gaps.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import MHealth
    >>> number, exact = np.array([1]), np.ones(23, dtype=bool)
    >>> log = MHealth(np.zeros((1, 23)), np.arange(23).astype(str), exact, number, number, number, "one moment")
    >>> log.X[:, log.full_precision].shape
    (1, 23)
    """

    X: Floats = field(repr=False)
    columns: Words = field(repr=False)
    full_precision: npt.NDArray[np.bool_] = field(repr=False)
    labels: Integers = field(repr=False)
    subjects: Integers = field(repr=False)
    rows: Integers = field(repr=False)
    description: str = ""


@dataclass(frozen=True, eq=False)
class Faces:
    """Frontal faces under many directions of light.

    Attributes
    ----------
    images : ndarray of shape (n, 192, 168), uint8
        Grey images, black at 0 and white at 255.
    person : ndarray of shape (n,)
        Number of the person.
    azimuth, elevation : ndarray of shape (n,)
        Direction of the light in degrees.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import Faces
    >>> number = np.array([1, 2])
    >>> faces = Faces(np.zeros((2, 192, 168), dtype=np.uint8), number, number, number, "two dark faces")
    >>> faces.images[faces.person == 2].shape
    (1, 192, 168)
    """

    images: Pixels = field(repr=False)
    person: Integers = field(repr=False)
    azimuth: Integers = field(repr=False)
    elevation: Integers = field(repr=False)
    description: str = ""


@dataclass(frozen=True, eq=False)
class Digits:
    """Handwritten digits.

    Attributes
    ----------
    images : ndarray of shape (n, 28, 28), uint8
        Paper at 0, ink at 255.
    labels : ndarray of shape (n,)
        The digit.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import Digits
    >>> Digits(np.zeros((1, 28, 28), dtype=np.uint8), np.array([0]), "an empty sheet")
    Digits(description='an empty sheet')
    """

    images: Pixels = field(repr=False)
    labels: Integers = field(repr=False)
    description: str = ""


@dataclass(frozen=True, eq=False)
class Photographs:
    """Small grey photographs of one kind of thing.

    Attributes
    ----------
    images : ndarray of shape (n, 32, 32), uint8
        Black at 0, white at 255.
    is_test : ndarray of shape (n,), bool
        Whether the release counts the image as a test image.
    filenames : ndarray of shape (n,) or None
        Names of the images in the release, where the file has them.
    description : str
        One line on what the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.datasets import Photographs
    >>> night = Photographs(np.zeros((1, 32, 32), dtype=np.uint8), np.array([False]), description="at night")
    >>> night, night.filenames is None
    (Photographs(description='at night'), True)
    """

    images: Pixels = field(repr=False)
    is_test: npt.NDArray[np.bool_] = field(repr=False)
    filenames: Words | None = field(repr=False, default=None)
    description: str = ""
