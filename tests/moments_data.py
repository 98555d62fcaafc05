"""Moments of any kind, compared with a dense reference."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from standout.moments import gather

KINDS = ["scatter"]
EVERY = [*KINDS, "rows"]


def of_kind(X, kind, **options):
    return gather(sparse.csr_array(X) if kind == "rows" else X, kind=kind, **options)


def reference(X, weights=None):
    """Return mean and covariance, from centred float64 rows."""
    X = np.asarray(X, dtype=np.float64)
    mean = np.average(X, axis=0, weights=weights)
    return mean, np.cov(X.T, aweights=weights, bias=True).reshape(X.shape[1], X.shape[1])


def assert_moments(moments, X, rtol=1e-12, weights=None):
    mean, covariance = reference(X, weights)
    # Entries of a covariance are accurate relative to the spreads of their two columns.
    scale = np.sqrt(np.diagonal(covariance)) + np.abs(mean) * 1e-15 + 1e-300
    assert moments.count == len(X)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-14 if rtol < 1e-9 else 1e-7, atol=rtol * scale.max())
    np.testing.assert_array_less(np.abs(moments.covariance() - covariance), rtol * np.outer(scale, scale) + 1e-300)


tables = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.just(4)),
    elements=st.floats(-1e3, 1e3, allow_nan=False, allow_subnormal=False).map(lambda x: round(x, 6)),
)


def assert_same(first, second, size):
    """Check that moments are equal up to rounding at the size of the data."""
    assert first.count == second.count
    np.testing.assert_allclose(first.mean, second.mean, atol=1e-13 * size)
    np.testing.assert_allclose(first.covariance(), second.covariance(), atol=1e-12 * size**2)
    np.testing.assert_allclose(first.norms.cubic, second.norms.cubic, atol=1e-10 * size**3)
    np.testing.assert_allclose(first.norms.quartic, second.norms.quartic, rtol=1e-10, atol=1e-10 * size**4)


def forms(X):
    """Return the same rows in every form."""
    return {
        "C": X,
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "sparse": sparse.csr_array(X),
        "thin": sparse.csr_array(X * (np.arange(X.shape[1]) == 0)),
        "single": X.astype(np.float32),
    }
