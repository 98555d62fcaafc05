"""Approximate coordinates: landmarks, given or chosen, and random Fourier features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from standout._algebra import lower_triangle
from standout._arrays import Rows, stacked, take_rows
from standout._namespaces import is_foreign, like
from standout._validation import check_fourier_kernel, check_kernel_matrix, reject_indefinite
from standout.features._device import pivot_on_device, random_pivots_on_device
from standout.features._exact import is_indefinite
from standout.features._kernels import Kernel, NamedKernel
from standout.features._maps import FourierMap, LandmarkMap
from standout.features._pivoted import pivoted_cholesky, random_pivots
from standout.sources import Source, all_rows, count_rows

# Landmarks are chosen among this many rows at most, drawn from all datasets alike: so many rows show the kernel's
# leading directions, and the choice stays cheap beside the pass over all rows.
CANDIDATES = 20_000


def given_landmarks(kernel: Kernel, landmarks: Rows) -> LandmarkMap:
    """Use these rows as landmarks (Nyström); those that repeat others are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import given_landmarks, resolve_kernel
    >>> mapping = given_landmarks(resolve_kernel("rbf"), np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]))
    >>> mapping.n_coordinates
    2
    """
    values = kernel(landmarks, landmarks)
    check_kernel_matrix(values, kernel.symmetric)
    factor, pivots = (pivot_on_device if is_foreign(values) else pivoted_cholesky)(values, 1e-12)
    assert factor is not None
    if is_indefinite(values, factor, 1e-12):
        reject_indefinite("the landmarks")
    return LandmarkMap(kernel, take_rows(landmarks, pivots), lower_triangle(take_rows(factor, pivots)))


def chosen_landmarks(
    kernel: Kernel, datasets: Sequence[Any], rank: int, tol: float, rng: np.random.Generator
) -> LandmarkMap:
    """Choose landmarks by randomly pivoted Cholesky among rows of all datasets.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import chosen_landmarks, resolve_kernel
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(500, 2))
    >>> chosen_landmarks(resolve_kernel("rbf"), [rows], 20, 1e-10, rng).landmarks.shape
    (20, 2)
    """
    counts = [count_rows(dataset) for dataset in datasets]
    share = min(1.0, max(CANDIDATES, 4 * rank) / sum(counts))
    rows = stacked([_draw(dataset, count, share, rng) for dataset, count in zip(datasets, counts, strict=True)])
    if is_foreign(rows):
        chosen, factor = random_pivots_on_device(kernel, rows, rank, rng, tol)
        return LandmarkMap(kernel, take_rows(rows, chosen), factor)
    pivots = random_pivots(kernel, rows, rank, rng, tol)
    return LandmarkMap(kernel, rows[pivots.chosen], pivots.factor)


def fourier_features(
    kernel: Kernel, n_features: int, rank: int, rng: np.random.Generator, some: Rows | None = None
) -> FourierMap:
    """Draw random Fourier features of a Gaussian or Laplacian kernel (Rahimi and Recht, 2007).

    They are for rows of the library and on the device of `some`, or for NumPy's.

    Examples
    --------
    >>> import numpy as np
    >>> from standout.features import fourier_features, resolve_kernel
    >>> mapping = fourier_features(resolve_kernel("rbf", gamma=0.5), 2, 100, np.random.default_rng(0))
    >>> mapping.transform(np.zeros((3, 2))).shape
    (3, 100)
    """
    check_fourier_kernel(kernel.metric if isinstance(kernel, NamedKernel) else kernel)
    assert isinstance(kernel, NamedKernel)
    gamma = kernel.params.get("gamma") or 1.0 / n_features
    seed = int(rng.integers(2**31))
    if kernel.metric == "rbf":
        sampler = RBFSampler(gamma=gamma, n_components=rank, random_state=seed).fit(np.zeros((1, n_features)))
        frequencies, phases = sampler.random_weights_, sampler.random_offset_
    else:
        frequencies = gamma * rng.standard_cauchy((n_features, rank))
        phases = rng.uniform(0.0, 2.0 * np.pi, rank)
    return FourierMap(frequencies, phases) if some is None else FourierMap(like(frequencies, some), like(phases, some))


def _draw(dataset: Any, n_rows: int, share: float, rng: np.random.Generator) -> Rows:
    if share == 1.0:
        return all_rows(dataset)
    size = max(int(share * n_rows), 1)
    if isinstance(dataset, Source):
        return dataset.sample(size, rng)
    return take_rows(dataset, np.sort(rng.choice(n_rows, size=size, replace=False)))
