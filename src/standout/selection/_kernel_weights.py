"""Weights of several kernels, learned together with the components and judged on rows held out (Remark 5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from standout._arrays import Float, Rows, product
from standout._messages import InvalidValueError
from standout._xp import leading_eigenvectors
from standout.features import Kernel, centre_columns

# Learning looks at this many rows at most: weights are a few numbers, and need no more.
MOST_ROWS = 800
FEWEST_ROWS = 4
SPLITS = 3
STEPS = 6
RIDGE = 1e-3
# Share of the rows at either end that do not count.
CLIPPED = 0.05


@dataclass(frozen=True, eq=False)
class _Fold:
    """Centred kernel matrices of the rows to fit on, and of the rows held out with these.

    Attributes
    ----------
    fitted : ndarray of shape (n_kernels, n, n)
    held : ndarray of shape (n_kernels, h, n)
    share : ndarray of shape (n,)
        1/m for rows of the target, 0 for the rest.
    against : ndarray of shape (n,)
        ωₖ/nₖ for rows of background k, 0 for the target.
    groups : ndarray of shape (h,)
        Dataset of each row held out: 0 for the target.
    weights : ndarray of shape (n_backgrounds,)
        ω.
    """

    fitted: Float
    held: Float
    share: Float
    against: Float
    groups: npt.NDArray[np.intp]
    weights: Float


def learn_kernel_weights(
    kernels: Sequence[Kernel], datasets: Sequence[Rows], weights: Float, rng: np.random.Generator
) -> Float:
    """Which mixture of these kernels shows most of what stands out, on rows that were not fitted?

    Frank-Wolfe steps on the simplex follow the analytic gradient of the leading eigenvalue on one half of the rows.
    Every mixture met on the way, and each kernel alone, is judged by the ratio of variances on the other half, over
    several splits: so an overfitting kernel, whose ratio is chance, does not win.

    Parameters
    ----------
    kernels : sequence of Kernel
    datasets : sequence of rows
        The target, then the backgrounds.
    weights : ndarray
        Weights of the backgrounds.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (n_kernels,)
        Weights with sum 1 of the kernels, each counted in units of its own mean variance.
    """
    folds, scales = _folds(kernels, datasets, weights, rng)
    n_kernels = len(kernels)
    candidates = [np.full(n_kernels, 1.0 / n_kernels), *np.eye(n_kernels)]
    for fold in folds:
        candidates.extend(_path(fold))
    distinct = np.unique(np.round(candidates, 6), axis=0)
    distinct = distinct[distinct @ scales > 0]
    scores = [np.mean([_held_out(fold, mixture) for fold in folds]) for mixture in distinct]
    best = distinct[int(np.argmax(scores))] * scales
    learned: Float = best / best.sum()
    return learned


def _path(fold: _Fold) -> list[Float]:
    """Give the mixtures that Frank-Wolfe steps on the leading eigenvalue meet, from equal weights."""
    n_kernels = len(fold.fitted)
    mixture = np.full(n_kernels, 1.0 / n_kernels)
    met = []
    for step in range(STEPS):
        gradient = _gradient(fold, mixture)
        vertex = np.eye(n_kernels)[int(np.argmax(gradient))]
        mixture = mixture + 2.0 / (step + 3.0) * (vertex - mixture)
        met.append(mixture)
    return met


def _gradient(fold: _Fold, mixture: Float) -> Float:
    """Differentiate the leading value of ``K Kₓ a = λ (K K_y + ε I) a`` with respect to the mixture."""
    kernel, value, vector, epsilon = _leading(fold, mixture)
    image = product(kernel, vector)[:, 0]
    contrast = (fold.share - value * fold.against) * image
    length = float(np.sum(fold.against * image**2) + epsilon * np.sum(vector**2))
    return np.array([2.0 * float(np.sum(product(part, vector)[:, 0] * contrast)) for part in fold.fitted]) / length


def _leading(fold: _Fold, mixture: Float) -> tuple[Float, float, Float, float]:
    """Solve the dual problem for its leading value and vector."""
    kernel = np.einsum("k,kij->ij", mixture, fold.fitted)
    a = product(kernel * fold.share, kernel)
    b = product(kernel * fold.against, kernel)
    size = len(kernel)
    trace = float(np.trace(b)) if fold.against.any() else float(np.trace(a))
    epsilon = max(RIDGE * trace / size, float(np.finfo(np.float64).tiny))
    b.flat[:: size + 1] += epsilon
    factor = linalg.cholesky(b, lower=True, check_finite=False)
    half = linalg.solve_triangular(factor, a, lower=True, check_finite=False)
    whitened = linalg.solve_triangular(factor, half.T, lower=True, check_finite=False)
    values, vectors = leading_eigenvectors(whitened, 1)
    vector = linalg.solve_triangular(factor, vectors, lower=True, trans="T", check_finite=False)
    return kernel, float(values[0]), vector, epsilon


def _held_out(fold: _Fold, mixture: Float) -> float:
    """Give the ratio along the leading component, with the variances of the rows held out in place of the fitted."""
    _, _, vector, epsilon = _leading(fold, mixture)
    scores = product(np.einsum("k,kij->ij", mixture, fold.held), vector)[:, 0]
    target, *backgrounds = (_clipped_variance(scores[fold.groups == group]) for group in np.unique(fold.groups))
    return target / (float(fold.weights @ np.array(backgrounds)) + epsilon * float(np.sum(vector**2)))


def _clipped_variance(scores: Float) -> float:
    """Give the variance without the outermost rows.

    A kernel that is too narrow finds a few rows that happen to lie close to each other. Some of the rows held out may
    lie there, too, and no background does: that must not count as a view of the target.
    """
    low, high = np.quantile(scores, [CLIPPED, 1.0 - CLIPPED])
    return float(np.var(np.clip(scores, low, high)))


def _folds(
    kernels: Sequence[Kernel], datasets: Sequence[Rows], weights: Float, rng: np.random.Generator
) -> tuple[list[_Fold], Float]:
    """Split the rows of each dataset into halves, several times; and give the unit of each kernel."""
    fewest = min(dataset.shape[0] for dataset in datasets)
    if fewest < FEWEST_ROWS:
        raise InvalidValueError(
            "a dataset has {n_rows} rows, but learning {p.kernel_weights} needs {limit} of each",
            n_rows=fewest,
            limit=FEWEST_ROWS,
            advice="Give weights.",
        )
    total = sum(dataset.shape[0] for dataset in datasets)
    kept = [max(int(dataset.shape[0] * min(1.0, MOST_ROWS / total)), FEWEST_ROWS) for dataset in datasets]
    order = [rng.permutation(dataset.shape[0])[:n] for dataset, n in zip(datasets, kept, strict=True)]
    raw = []
    for _ in range(SPLITS):
        mixed = [rng.permutation(rows) for rows in order]
        halves = [[np.sort(rows[part::2]) for rows in mixed] for part in range(2)]
        raw += [_raw_fold(kernels, datasets, weights, halves[part], halves[1 - part]) for part in range(2)]
    sizes = np.mean([np.trace(fold.fitted, axis1=1, axis2=2) / fold.fitted.shape[1] for fold in raw], axis=0)
    # A kernel that does not vary on these rows has no part in a mixture.
    varies = sizes > 1e-12 * max(float(np.max(sizes)), float(np.finfo(np.float64).tiny))
    scales = np.where(varies, 1.0 / np.where(varies, sizes, 1.0), 0.0)
    if not np.any(scales > 0):
        raise InvalidValueError(
            "no kernel varies on these rows, so no weights can be learned", advice="Use other kernels."
        )
    each = scales[:, np.newaxis, np.newaxis]
    return [replace(fold, fitted=fold.fitted * each, held=fold.held * each) for fold in raw], scales


def _raw_fold(
    kernels: Sequence[Kernel], datasets: Sequence[Rows], weights: Float, fit: list[Any], hold: list[Any]
) -> _Fold:
    sizes = tuple(len(rows) for rows in fit)
    fitted_rows = [dataset[rows] for dataset, rows in zip(datasets, fit, strict=True)]
    held_rows = [dataset[rows] for dataset, rows in zip(datasets, hold, strict=True)]

    def values(kernel: Kernel, rows: list[Any]) -> Float:
        return np.vstack([np.hstack([kernel(one, other) for other in fitted_rows]) for one in rows])

    fitted = np.array([centre_columns(values(kernel, fitted_rows), sizes) for kernel in kernels])
    for matrix in fitted:
        centre_columns(matrix.T, sizes)
    held = np.array([centre_columns(values(kernel, held_rows), sizes) for kernel in kernels])
    groups = np.repeat(np.arange(len(hold)), [len(rows) for rows in hold])
    member = np.repeat(np.arange(len(fit)), sizes)
    counts = np.asarray(sizes, dtype=np.float64)
    share = np.where(member == 0, 1.0 / counts[0], 0.0)
    against = np.concatenate([[0.0], weights])[member] / counts[member]
    return _Fold(fitted, held, share, against, groups, weights)
