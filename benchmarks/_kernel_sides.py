"""The sides of the kernel benchmark: our fit, the paper's equations as they stand, and the bare cost of landmarks.

The equations are those of kernel dPCA with one background: (k) centres the kernel matrix block by block, (kxky) takes
the target's and the background's rows of it, (kdpcasol) is the eigenproblem.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from _sides import N_COMPONENTS, Side

EPSILON = 1e-3
# Large enough for both the kernel and the product to run at full speed, small enough for the cache's neighbourhood.
BARE_ROWS = 4096

Inputs = tuple[np.ndarray, np.ndarray]


def _centred(block: np.ndarray) -> np.ndarray:
    """Take the means off rows and columns, in place: the paper's ``K - 1K/m - K1/n + 1K1/mn``."""
    block -= block.mean(axis=0, keepdims=True)
    block -= block.mean(axis=1, keepdims=True)
    return block


def _centred_kernel(inputs: Inputs, kernel: str, params: dict[str, Any]) -> np.ndarray:
    """Give K of eq. (k)."""
    from sklearn.metrics.pairwise import pairwise_kernels

    m = len(inputs[0])
    K = pairwise_kernels(np.vstack(inputs), metric=kernel, **params)
    for rows in (slice(m), slice(m, None)):
        for columns in (slice(m), slice(m, None)):
            _centred(K[rows, columns])
    return K


def _pencil_fit(inputs: Inputs, kernel: str, **params: Any) -> np.ndarray:
    """Solve ``K Kx a = λ (K Ky + ε I) a`` as the symmetric pencil it is.

    ``K Kx`` is taken as ``K[:m]ᵀ K[:m] / m``, a quarter of the arithmetic: this side is no slower than need be.
    """
    from scipy.linalg import eigh

    m, n = map(len, inputs)
    K = _centred_kernel(inputs, kernel, params)
    A, B = K[:m].T @ K[:m], K[m:].T @ K[m:]
    A /= m
    B /= n
    B.flat[:: m + n + 1] += EPSILON
    wanted = (m + n - N_COMPONENTS, m + n - 1)
    values, _ = eigh(A, B, subset_by_index=wanted, overwrite_a=True, overwrite_b=True, check_finite=False)
    return values[::-1]


def _paper_fit(inputs: Inputs, kernel: str, **params: Any) -> np.ndarray:
    """Solve eq. (kdpcasol) to the letter: the eigenvectors of ``(K Ky + ε I)⁻¹ K Kx``."""
    from scipy.linalg import eig, solve

    m, n = map(len, inputs)
    K = _centred_kernel(inputs, kernel, params)
    Kx, Ky = np.zeros_like(K), np.zeros_like(K)
    Kx[:m] = K[:m] / m
    Ky[m:] = K[m:] / n
    values, _ = eig(solve(K @ Ky + EPSILON * np.eye(m + n), K @ Kx))
    return np.sort(values.real)[::-1][:N_COMPONENTS]


def _bare_fit(inputs: Inputs, kernel: str, rank: int, **params: Any) -> None:
    """Kernel blocks against `rank` rows, and the product of each block with itself; nothing else."""
    from sklearn.metrics.pairwise import pairwise_kernels

    landmarks = np.vstack([rows[: rank // 2] for rows in inputs])
    total = np.zeros((len(landmarks), len(landmarks)))
    for rows in _blocks(inputs):
        block = pairwise_kernels(rows, landmarks, metric=kernel, **params)
        total += block.T @ block


def _blocks(inputs: Inputs) -> Iterator[np.ndarray]:
    for rows in inputs:
        for start in range(0, len(rows), BARE_ROWS):
            yield rows[start : start + BARE_ROWS]


def _standout_fit(inputs: Inputs, **params: Any) -> Any:
    from standout import KernelDiscriminativePCA

    X, Y = inputs
    # The other sides hold out no rows, either.
    return KernelDiscriminativePCA(N_COMPONENTS, epsilon=EPSILON, held_out=None, **params).fit(X, background=Y)


def _standout_facts(model: Any) -> dict[str, Any]:
    return {
        "eigenvalues": model.eigenvalues_.tolist(),
        "residual": model.residual_,
        "coordinates": model.feature_map_.n_coordinates,
        "solver": model.solver_,
    }


def _eigenvalues(values: np.ndarray) -> dict[str, Any]:
    return {"eigenvalues": values.tolist()}


KERNEL_SIDES: dict[str, Side] = {
    "kernel-standout": Side(_standout_fit, facts=_standout_facts),
    "kernel-pencil": Side(_pencil_fit, facts=_eigenvalues),
    "kernel-paper": Side(_paper_fit, facts=_eigenvalues),
    "kernel-bare": Side(_bare_fit),
}
