"""Coordinates in the span of the rows: each dataset at its own size, whatever lies beside it."""

import numpy as np
import pytest

from array_libraries import Strict, Torch, dispatch  # noqa: F401
from standout._xp import is_foreign
from standout.moments import RowMoments, gather, in_span


def on_host(rows):
    return gather(rows, kind="rows"), np.asarray


def on(library):
    def there(rows):
        place = library()
        return gather(place.there(rows), kind="rows"), place.back

    return there


PLACES = {"host": on_host, "torch": on(Torch), "strict": on(Strict)}


def spanned(place, datasets):
    moments, back = zip(*(PLACES[place](rows) for rows in datasets), strict=True)
    basis, coordinates = in_span(list(moments))
    assert all(isinstance(part, RowMoments) for part in moments)
    assert is_foreign(basis) == (place != "host")
    return back[0](basis), [back[0](part) for part in coordinates]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sizes", [(1.0, 1e-20), (1e-20, 1.0), (1e12, 1.0, 1e-12)])
def test_a_tiny_dataset_beside_a_huge_one_keeps_its_directions(place, sizes, rng):
    datasets = [size * (rng.normal(size=(n, 60)) + 3) for size, n in zip(sizes, (5, 7, 4), strict=False)]
    basis, coordinates = spanned(place, datasets)
    # Of n rows about their mean, n - 1 directions.
    assert basis.shape == (60, sum(len(rows) - 1 for rows in datasets))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-13)
    for rows, found in zip(datasets, coordinates, strict=True):
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(found @ basis.T, centred, atol=1e-13 * np.abs(centred).max())


@pytest.mark.parametrize("place", PLACES)
def test_directions_that_datasets_share_are_counted_once(place, rng):
    shared = rng.normal(size=(3, 50))
    datasets = [scale * rng.normal(size=(6, 3)) @ shared for scale in (1.0, 1e-9)]
    basis, coordinates = spanned(place, datasets)
    assert basis.shape == (50, 3)
    for rows, found in zip(datasets, coordinates, strict=True):
        centred = rows - rows.mean(axis=0)
        np.testing.assert_allclose(found @ basis.T, centred, atol=1e-13 * np.abs(centred).max())


@pytest.mark.parametrize("place", PLACES)
def test_a_dataset_without_any_spread_adds_no_direction(place, rng):
    varying, constant = rng.normal(size=(4, 30)), np.ones((5, 30))
    for datasets in ([varying, constant], [constant, varying]):
        basis, coordinates = spanned(place, datasets)
        assert basis.shape == (30, 3)
        still = coordinates[0 if datasets[0] is constant else 1]
        np.testing.assert_allclose(still, 0.0, atol=1e-14)
