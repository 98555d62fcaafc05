"""Coordinates of wide rows in the space that they span."""

import numpy as np
import pytest
from scipy import sparse

from array_libraries import library  # noqa: F401
from moments_data import forms
from standout.moments import span_of


@pytest.mark.parametrize("form", ["C", "F", "sparse", "thin", "single"])
@pytest.mark.parametrize(("offset", "ratio"), [(0.0, 1.0), (1e5, 1.0), (0.0, 1e-7), (3.0, 1e4)])
def test_coordinates_in_the_span_have_all_inner_products_of_the_rows(form, offset, ratio, rng):
    X, Y = (
        forms(part)[form] for part in (rng.normal(size=(12, 400)) + offset, ratio * rng.normal(size=(9, 400)) + offset)
    )
    span = span_of([X, Y])
    origin = np.float64(X.toarray() if sparse.issparse(X) else X).mean(axis=0)
    # Products of similar datasets near zero are in single precision: 400 terms with a rounding of 6e-8.
    spread = 2.4e-5 if form == "single" and offset == 0.0 and ratio == 1.0 else 1e-9 * (1 + offset * 1e-2)
    for rows, coordinates in zip((X, Y), span.coordinates, strict=True):
        centred = np.float64(rows.toarray() if sparse.issparse(rows) else rows) - origin
        np.testing.assert_allclose(span.lift(coordinates.T).T, centred, atol=spread * max(1.0, ratio))
        np.testing.assert_allclose(span.drop(centred.T).T, coordinates, atol=10 * spread * max(1.0, ratio))
        # A dataset of small spread keeps its own digits.
        own = np.linalg.svd(centred - centred.mean(axis=0), compute_uv=False)
        found = np.linalg.svd(coordinates - coordinates.mean(axis=0), compute_uv=False)
        padded = np.pad(found, (0, max(len(own) - len(found), 0)))[: len(own)]
        np.testing.assert_allclose(padded, own, rtol=1e-6, atol=1e-7 * own[0])
    basis = span.lift(np.eye(span.rank))
    np.testing.assert_allclose(basis.T @ basis, np.eye(span.rank), atol=max(1e-8, spread if offset == 0.0 else 0.0))


def test_the_span_of_equal_and_of_dependent_rows_has_no_direction_too_many(rng):
    X = rng.normal(size=(10, 50))
    assert span_of([X, X]).rank == 9
    assert span_of([np.ones((3, 10)), np.ones((2, 10))]).rank == 0
    assert span_of([np.ones((1, 10))]).rank == 0
    assert span_of([X + 1e6, X[:4] + 1e6]).rank == 9
    weighted = span_of([X, X[:3]], [np.arange(1.0, 11.0), None])
    np.testing.assert_allclose(weighted.origin, np.average(X, axis=0, weights=np.arange(1.0, 11.0)))


@pytest.mark.parametrize("ratio", [1.0, 1e-7])
def test_foreign_wide_rows_stay_on_their_device(library, ratio, rng, monkeypatch):  # noqa: F811
    X, Y = rng.normal(size=(12, 100)), ratio * rng.normal(size=(9, 100))
    there = [library.there(X), library.there(Y)]
    library.forbid_copies(monkeypatch)
    span = span_of(there)
    lifted = [span.lift(part.T).T for part in span.coordinates]
    monkeypatch.undo()
    for rows, found in zip((X, Y), lifted, strict=True):
        np.testing.assert_allclose(library.back(found), rows - X.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("weights", [None, [0.0, 2.0, 1.0, 0.5] * 3])
def test_coordinates_are_the_same_in_every_library(library, weights, rng):  # noqa: F811
    X, Y = rng.normal(size=(12, 100)), rng.normal(size=(9, 100))
    own = [None if weights is None else np.array(weights), None]
    expected, found = span_of([X, Y], own), span_of([library.there(X), library.there(Y)], own)
    for one, other in zip(expected.coordinates, found.coordinates, strict=True):
        np.testing.assert_allclose(library.back(other), one, atol=1e-11)
    centred = X - np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(expected.lift(expected.coordinates[0].T).T, centred, atol=1e-11)
    # Rows without weight and backgrounds come first: the target has directions in which these are exactly zero.
    assert np.all(expected.coordinates[1][:, 9 if weights is None else 12 :] == 0.0)
