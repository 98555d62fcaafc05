"""The real data of the paper's experiments: read from files, fetched only where asked to."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from standout._validation import check_words
from standout.datasets import _layouts, _sources
from standout.datasets._files import DataFile, as_numbers, download_folder, find, read_arrays, read_table, refuse
from standout.datasets._records import Digits, Faces, MHealth, MiceProtein, Photographs

Folder = str | os.PathLike[str] | None


def load_mice_protein(data_dir: Folder = None, *, download: bool = False) -> MiceProtein:
    """Which protein levels were measured in the brains of mice with and without Down syndrome?

    Mice Protein Expression, 1080 rows of 77 proteins with some missing: 72 mice, 15 measurements each, in 8 classes.
    Reads ``mice_protein.csv`` with the columns of the UCI release, ``MouseID``, the proteins, ``Genotype``,
    ``Treatment``, ``Behavior`` and ``class``; an empty cell is a missing value. A file with fewer rows is read as well.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to fetch the file from OpenML (dataset 40966) if it is not there, into ``data_dir`` or else into the
        cache folder.

    Returns
    -------
    MiceProtein
        The arrays ``X``, ``columns``, ``mouse``, ``genotype``, ``treatment``, ``behavior`` and ``labels``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file, or what a download brought, is not what it should be.
    OSError
        If a download fails.

    References
    ----------
    Higuera, Gardiner, Cios, *Self-Organizing Feature Maps Identify Proteins Critical to Learning in a Mouse Model of
    Down Syndrome*, PLoS ONE 10(6), 2015. Licence: CC BY 4.0.

    Examples
    --------
    >>> from standout.datasets import load_mice_protein
    >>> load_mice_protein()  # doctest: +SKIP
    MiceProtein(description='Mice Protein Expression: 1080 of 1080 rows, 77 proteins, 1396 values missing')
    >>> load_mice_protein("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no mice_protein.csv in ... Or call with download=True to fetch it from OpenML ...
    """
    file = _layouts.MICE
    path = _located(file, data_dir, _sources.fetch_mice_protein if download else None)
    table = read_table(path, file)
    for column, known in _layouts.MICE_WORDS.items():
        check_words(table[column], known, column, str(path), file.how_to_mend)
    X = np.column_stack([as_numbers(table[name], name, path, file) for name in _layouts.PROTEINS])
    return MiceProtein(
        X=X,
        columns=np.array(_layouts.PROTEINS),
        mouse=np.array(table["MouseID"]),
        genotype=np.array(table["Genotype"]),
        treatment=np.array(table["Treatment"]),
        behavior=np.array(table["Behavior"]),
        labels=np.array(table["class"]),
        description=(
            f"Mice Protein Expression: {len(X)} of {file.n_rows} rows, {X.shape[1]} proteins, "
            f"{np.isnan(X).sum()} values missing"
        ),
    )


def load_mhealth(data_dir: Folder = None, *, download: bool = False) -> MHealth:
    """Which body-sensor values were recorded during which activity?

    MHealth (Mobile Health): 23 signals at 50 Hz, subjects 1 to 4, five activities. Reads ``mhealth.npz`` with the
    arrays ``X`` (floats, n x 23), ``label``, ``subject`` and ``row`` (integers, n), ``columns`` (names, 23) and
    ``full_precision`` (bool, 23). A file with fewer or more rows of the dataset is read as well.

    Two kinds of this file are about. Made by a download, every signal is as precise as in the release. Copies joined
    from public conversions have most signals truncated to integers, among them a gyroscope that is zero throughout:
    look at ``full_precision``. A file that is there is used as it is; to get the other kind, download into another
    ``data_dir``.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to fetch the logs from the UCI Machine Learning Repository (dataset 319, about 76 MB) if the file is not
        there, and keep these subjects and activities in ``data_dir`` or else in the cache folder.

    Returns
    -------
    MHealth
        The arrays ``X``, ``columns``, ``full_precision``, ``labels``, ``subjects`` and ``rows``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file, or what a download brought, is not what it should be.
    OSError
        If a download fails.

    References
    ----------
    Banos et al., *mHealthDroid: a novel framework for agile development of mobile health applications*, IWAAL 2014.
    Licence: CC BY 4.0.

    Examples
    --------
    >>> from standout.datasets import load_mhealth
    >>> load_mhealth("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no mhealth.npz in ... Or call with download=True to fetch it from the UCI ...
    """
    arrays = _arrays(_layouts.MHEALTH, data_dir, _sources.fetch_mhealth if download else None)
    X, precise = arrays["X"].astype(np.float64), arrays["full_precision"]
    return MHealth(
        X=X,
        columns=arrays["columns"],
        full_precision=precise,
        labels=arrays["label"].astype(np.int64),
        subjects=arrays["subject"].astype(np.int64),
        rows=arrays["row"].astype(np.int64),
        description=(
            f"MHealth: {len(X)} rows of {np.unique(arrays['subject']).size} subjects, {X.shape[1]} signals, "
            f"{precise.sum()} of them at full precision"
        ),
    )


def load_yale_faces(data_dir: Folder = None, *, download: bool = False) -> Faces:
    """How does the light change a face?

    Extended Yale Face Database B, cropped: grey frontal faces of 192 x 168 pixels under 64 directions of light. Reads
    ``yaleb.npz`` with the arrays ``images`` (uint8, n x 192 x 168), and ``person``, ``azimuth`` and ``elevation``
    (integers, n), sorted by person, for example of individuals 01 to 10 (640 images).

    This is a file to bring yourself. The database is free for research with acknowledgement and not for commercial use,
    and no source offers it in a stable form. Make the file from the ``.pgm`` images of the cropped database, whose
    names tell the rest (``yaleB01_P00A+005E-10.pgm`` is person 1, azimuth 5, elevation -10), with
    ``numpy.savez_compressed("yaleb.npz", images=images, person=person, azimuth=azimuth, elevation=elevation)``. Leave
    out the ``Ambient`` images and those that the release marks as bad.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then in
        the user's cache folder.
    download : bool, default=False
        As in the other loaders, but there is nothing to fetch: a missing file is an error that says so.

    Returns
    -------
    Faces
        The arrays ``images``, ``person``, ``azimuth`` and ``elevation``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file is not what it should be.

    References
    ----------
    Georghiades, Belhumeur, Kriegman, *From Few to Many*, IEEE TPAMI 23(6), 2001; Lee, Ho, Kriegman, *Acquiring Linear
    Subspaces for Face Recognition under Variable Lighting*, IEEE TPAMI 27(5), 2005.

    Examples
    --------
    >>> from standout.datasets import load_yale_faces
    >>> load_yale_faces("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no yaleb.npz in ... Or get the cropped images from the Extended Yale Face ...
    """
    arrays = _arrays(_layouts.FACES, data_dir, None)
    images, person = arrays["images"], arrays["person"].astype(np.int64)
    return Faces(
        images=images,
        person=person,
        azimuth=arrays["azimuth"].astype(np.int64),
        elevation=arrays["elevation"].astype(np.int64),
        description=f"Extended Yale Face Database B, cropped: {len(images)} images of {np.unique(person).size} people",
    )


def load_mnist(data_dir: Folder = None, *, download: bool = False) -> Digits:
    """How do people write the digits 0 to 9?

    The MNIST training set: 60,000 images of 28 x 28 pixels in their original order. Reads ``mnist.npz`` with the arrays
    ``images`` (uint8, n x 28 x 28) and ``labels`` (integers, n). A file with fewer rows is read as well.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to fetch the images from OpenML (dataset 554, ``mnist_784``) if the file is not there, and keep the
        training images in ``data_dir`` or else in the cache folder. They are compared with the MD5 of the original
        files. Takes a minute and about 1 GB of memory with pandas installed, more of both without.

    Returns
    -------
    Digits
        The arrays ``images`` and ``labels``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file, or what a download brought, is not what it should be.
    OSError
        If a download fails.

    References
    ----------
    LeCun, Bottou, Bengio, Haffner, *Gradient-based learning applied to document recognition*, Proc. IEEE, 1998.
    Licence: usually given as CC BY-SA 3.0.

    Examples
    --------
    >>> from standout.datasets import load_mnist
    >>> load_mnist()  # doctest: +SKIP
    Digits(description='MNIST training digits: 60000 of 60000 images')
    >>> load_mnist("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no mnist.npz in ... Or call with download=True to fetch it from OpenML ...
    """
    file = _layouts.MNIST
    arrays = _arrays(file, data_dir, _sources.fetch_mnist if download else None)
    return Digits(
        images=arrays["images"],
        labels=arrays["labels"].astype(np.int64),
        description=f"MNIST training digits: {len(arrays['images'])} of {file.n_rows} images",
    )


def load_frogs(data_dir: Folder = None, *, download: bool = False) -> Photographs:
    """What do frogs look like in small grey photographs?

    The class frog of CIFAR-10: 6000 photographs of 32 x 32 pixels, 5000 training images and then 1000 test images, in
    their original order, as grey ``floor(0.299 R + 0.587 G + 0.114 B + 0.5)``. Reads ``cifar10_frogs.npz`` with the
    arrays ``images`` (uint8, n x 32 x 32) and ``is_test`` (integers 0 or 1, n). A file with fewer rows is read as well.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to fetch the binary version of CIFAR-10 from the University of Toronto (about 170 MB) if the file is not
        there, and keep the frogs in ``data_dir`` or else in the cache folder. The archive is known by its SHA-256.

    Returns
    -------
    Photographs
        The arrays ``images`` and ``is_test``.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file, or what a download brought, is not what it should be.
    OSError
        If a download fails.

    References
    ----------
    Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, technical report, University of Toronto, 2009.
    Released for research without an explicit licence.

    Examples
    --------
    >>> from standout.datasets import load_frogs
    >>> load_frogs("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no cifar10_frogs.npz in ... Or call with download=True to fetch it from ...
    """
    fetch = _sources.fetch_frogs if download else None
    return _photographs(_layouts.FROGS, data_dir, fetch, "CIFAR-10 frogs")


def load_girls(data_dir: Folder = None, *, download: bool = False) -> Photographs:
    """What do girls look like in small grey photographs?

    The fine class girl of CIFAR-100: 600 photographs of 32 x 32 pixels, 500 training images and then 100 test images,
    grey as in :func:`load_frogs`. Reads ``cifar100_girls.npz`` with the arrays ``images`` (uint8, n x 32 x 32),
    ``is_test`` (integers 0 or 1, n) and perhaps ``filenames`` (words, n). A file with fewer rows is read as well.

    The order depends on the source: a download has the order of the release and no file names, other copies are sorted
    by file name, so that neighbours resemble each other. Shuffle before you take a part;
    :func:`make_digits_over_girls` does.

    Parameters
    ----------
    data_dir : str, path-like or None, default=None
        Folder of the file. ``None`` looks in the folder that the environment variable ``STANDOUT_DATA`` names, then
        among earlier downloads in the user's cache folder.
    download : bool, default=False
        Whether to fetch the binary version of CIFAR-100 from the University of Toronto (about 169 MB) if the file is
        not there, and keep the girls in ``data_dir`` or else in the cache folder. The archive is known by its SHA-256.

    Returns
    -------
    Photographs
        The arrays ``images`` and ``is_test``, and ``filenames`` where the file has them.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If the file, or what a download brought, is not what it should be.
    OSError
        If a download fails.

    References
    ----------
    Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, technical report, University of Toronto, 2009.
    Released for research without an explicit licence.

    Examples
    --------
    >>> from standout.datasets import load_girls
    >>> load_girls("an/empty/folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no cifar100_girls.npz in ... Or call with download=True to fetch it from ...
    """
    fetch = _sources.fetch_girls if download else None
    return _photographs(_layouts.GIRLS, data_dir, fetch, "CIFAR-100 girls")


Fetch = Callable[[Path], None]


def _located(file: DataFile, data_dir: Folder, fetch: Fetch | None) -> Path:
    """Find a file, or fetch it where that was asked for."""
    path = find(file, data_dir)
    if path is None and fetch is not None:
        path = download_folder(data_dir) / file.name
        fetch(path)
    if path is None:
        refuse(file, data_dir)
    return path


def _arrays(file: DataFile, data_dir: Folder, fetch: Fetch | None) -> dict[str, npt.NDArray[Any]]:
    return read_arrays(_located(file, data_dir, fetch), file)


def _photographs(file: DataFile, data_dir: Folder, fetch: Fetch | None, what: str) -> Photographs:
    arrays = _arrays(file, data_dir, fetch)
    return Photographs(
        images=arrays["images"],
        is_test=arrays["is_test"].astype(bool),
        filenames=arrays.get("filenames"),
        description=f"{what}: {len(arrays['images'])} of {file.n_rows} images",
    )
