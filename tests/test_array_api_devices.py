"""Rows on their way to a device: batch by batch, with the answers of one array."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.preprocessing import MinMaxScaler, Normalizer

import standout
from array_libraries import Torch, close, dispatch, kernel_data, library, linear_data
from standout import DiscriminativePCA, KernelDiscriminativePCA
from standout.io import on_device
from standout.sources._device import overlapped_copies

# Fixtures, which pytest finds by their names.
__all__ = ["dispatch", "kernel_data", "library", "linear_data"]


@pytest.mark.parametrize("source", ["array", "memory map", "iterator", "big-endian", "sparse"])
def test_batches_from_the_host_equal_one_array(source, library, linear_data, tmp_path):
    target, (background, _) = linear_data
    ours = DiscriminativePCA(2).fit(target, background=background)
    data = target
    if source == "memory map":
        np.save(tmp_path / "target.npy", target)
        data = np.load(tmp_path / "target.npy", mmap_mode="r")
    elif source == "iterator":
        data = (target[start : start + 70] for start in range(0, 300, 70))
    elif source == "big-endian":
        data = target.astype(">f8")
    elif source == "sparse":
        scipy_sparse = pytest.importorskip("scipy.sparse")
        data = scipy_sparse.csr_matrix(target)

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    theirs = DiscriminativePCA(2).fit(there(data), background=there(background))
    close(library.back(theirs.components_), ours.components_, 1e-10, "components_")
    if source != "iterator":
        close(library.back(theirs.transform(there(data))), ours.transform(target), 1e-10, "transform")


def test_kernel_fits_read_batches_from_the_host(library, kernel_data):
    target, (background, _) = kernel_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=32)

    for options in ({}, {"approximation": "fourier", "rank": 30}):
        model = KernelDiscriminativePCA(2, **options)
        ours = sklearn.clone(model).fit(target, background=background)
        theirs = sklearn.clone(model).fit(there(target), background=there(background))
        close(library.back(theirs.eigenvalues_), ours.eigenvalues_, 1e-9, "eigenvalues_")
    chosen = KernelDiscriminativePCA(2, approximation="pivoted", rank=40).fit(
        there(target), background=there(background)
    )
    assert 0.0 < chosen.residual_ < 0.5


def test_steps_of_a_pipeline_work_on_batches_where_they_are(library, linear_data):
    target, backgrounds = linear_data

    def there(rows):
        return on_device(rows, library.device, library=library.name, batch_rows=64)

    ours, theirs = (standout.make_pipeline(MinMaxScaler(), Normalizer(), DiscriminativePCA(2)) for _ in range(2))
    ours.fit(target, background=backgrounds)
    theirs.fit(there(target), background=[there(rows) for rows in backgrounds])
    close(library.back(theirs[-1].components_), ours[-1].components_, 1e-10, "components_")
    close(library.back(theirs.transform(there(target))), ours.transform(target), 1e-10, "transform")


def test_overlapped_copies_bring_every_batch_in_order(monkeypatch):
    # Streams and events of the CPU have nothing to wait for; threads, memory and the order of batches are real.
    torch = Torch().torch
    waited = []

    class Nothing:
        def __init__(self, *args):
            self.number = len(waited)

        def record(self, *args):
            waited.append("recorded")

        def synchronize(self):
            waited.append("waited")

        def wait_event(self, event):
            assert isinstance(event, Nothing)

    make = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, pin_memory=False, **options: make(*args, **options))
    monkeypatch.setattr(torch.cuda, "Stream", Nothing)
    monkeypatch.setattr(torch.cuda, "Event", Nothing)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", Nothing)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: None)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: False)
    batches = [np.full((size, 3), size, dtype=dtype) for size, dtype in ((5, "f8"), (9, "f4"), (2, "i4"), (1, "u1"))]
    batches.append(np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    arrived = [rows.numpy().copy() for rows in overlapped_copies(iter(batches), "cpu")]
    for found, expected in zip(arrived, batches, strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    assert waited.count("recorded") == len(batches)
    assert waited[-2:] == ["waited", "waited"]

    def failing():
        yield batches[0]
        raise ValueError("the disk is gone")

    with pytest.raises(ValueError, match="the disk is gone"):
        list(overlapped_copies(failing(), "cpu"))
    halfway = overlapped_copies(iter(batches), "cpu")
    next(halfway)
    halfway.close()
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: True)
    assert [rows.shape[0] for rows in overlapped_copies(iter(batches), "cpu")] == [5, 9, 2, 1, 4]


def test_a_source_on_a_device_says_what_is_wrong(library, linear_data):
    target, (background, _) = linear_data
    holed = target.copy()
    holed[100, 5] = np.nan

    def there(rows, **options):
        return on_device(rows, library.device, library=library.name, **options)

    with pytest.raises(ValueError, match="batch 2 of the target: the first is nan in row 36, column 5"):
        DiscriminativePCA(2).fit(there(holed, batch_rows=64), background=there(background))
    with pytest.raises(TypeError, match="background 1 is of numpy"):
        DiscriminativePCA(2).fit(there(target), background=background)
    with pytest.raises(ValueError, match="batch_rows=0 is less than 1. Give"):
        there(target, batch_rows=0)
    with pytest.raises(TypeError, match="batch_rows='many' is not a whole number. Give"):
        there(target, batch_rows="many")
    with pytest.raises(ValueError, match=f"device='nowhere' cannot be used by {library.name}"):
        on_device(target, "nowhere", library=library.name)
    with pytest.raises(ImportError, match="library='nolibrary' cannot be imported"):
        on_device(target, "cpu", library="nolibrary")
    with pytest.raises(TypeError, match="library=3 is not a name"):
        on_device(target, "cpu", library=3)
    with pytest.raises(ValueError, match="too few rows in the target: 1 sample"):
        DiscriminativePCA(2).fit(there(target[:1]), background=there(background))
    for model in (DiscriminativePCA(2), KernelDiscriminativePCA(2, approximation="fourier", rank=20)):
        with pytest.raises(ValueError, match="background 1 has 11 features, but the target has 12"):
            model.fit(there(target), background=there(iter([background[:, :-1]])))
    if library.name == "array_api_strict":
        with pytest.raises(TypeError, match="on array_api_strict.* already"):
            there(library.there(target))
    else:
        assert next(there(library.there(target)).parts()).shape == target.shape


def test_names_of_columns_travel_to_a_device(library, linear_data):
    target, (background, _) = linear_data
    columns = [f"column {number}" for number in range(12)]

    def there(rows, columns):
        return on_device(pd.DataFrame(rows, columns=columns), library.device, library=library.name)

    model = DiscriminativePCA(2).fit(there(target, columns), background=there(background, columns))
    assert list(model.feature_names_in_) == columns
    for call in (
        lambda other: DiscriminativePCA(2).fit(there(target, columns), background=other),
        lambda other: DiscriminativePCA(2).partial_fit(there(target, columns), background=other),
        model.transform,
    ):
        with pytest.raises(ValueError, match="in another order"):
            call(there(background, columns[::-1]))
