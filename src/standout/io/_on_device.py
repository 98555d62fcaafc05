"""Data larger than a device: batches from the host's memory, one under way while the other is worked on."""

from __future__ import annotations

from typing import Any

from standout._validation import check_batch_rows, check_device, check_host_array, column_names
from standout._xp import looks_foreign, to_host
from standout.sources import OnDevice, open_dataset


def on_device(X: Any, device: Any, *, library: str = "torch", batch_rows: int | None = None) -> OnDevice:
    """How do I fit on a GPU what does not fit into its memory?

    Gives a dataset that `fit` and `transform` take like any other: it is read in batches, which are copied to the
    device and worked on there. On a CUDA device of PyTorch the next batch travels while the present one is multiplied,
    through page-locked memory and on a stream of its own. What is fitted lies on the device.

    Parameters
    ----------
    X : array-like, memory map, sparse matrix, frame, dataset that is read in parts, or iterator of batches
        The dataset, in the host's memory or to be read into it. An iterator can be read only once. Rows of a sparse
        matrix are made dense, a batch at a time.
    device : object
        The device, as the library names it: ``"cuda"``, ``"cuda:1"``, ``"cpu"``.
    library : {"torch", "cupy", "numpy"} or name of another array library, default="torch"
        Whose arrays the batches become.
    batch_rows : int, default=None
        Number of rows of a batch. None means as many as make 256 MB. An iterator's own batches are cut where they are
        larger.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.io import on_device
    >>> target, background = np.random.default_rng(0).normal(size=(2, 1000, 5))
    >>> dpca = DiscriminativePCA(1)
    >>> dpca.fit(on_device(target, "cuda"), background=on_device(background, "cuda"))  # doctest: +SKIP
    >>> [rows.shape for rows in on_device(target, "cpu", library="numpy", batch_rows=400).parts()]
    [(400, 5), (400, 5), (200, 5)]
    """
    xp, specimen = check_device(library, device)
    if looks_foreign(X):
        check_host_array(X)
        X = to_host(X)
    host = open_dataset(X, "the data", min_rows=1)
    return OnDevice(host, xp, device, specimen, check_batch_rows(batch_rows), column_names(X))
