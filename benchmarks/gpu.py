"""How long does a fit take on a GPU, beside two products and one eigenproblem on the same device?

Needs PyTorch with CUDA. Figures are wall seconds with synchronisation, the best of three.

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import sklearn
import torch

from standout import DiscriminativePCA

# Rows of each dataset, columns, type, bounds of the default and of one without folds.
SHAPES = (
    (400_000, 512, torch.float64, 2.0, 1.3),
    (2_000_000, 256, torch.float64, 2.0, 1.3),
    (400_000, 512, torch.float32, 2.0, 1.3),
    (100_000, 4_096, torch.float64, 1.2, 1.3),
    (3_000, 50_000, torch.float64, 1.2, 1.3),
)


def seconds(run: Callable[[], object]) -> float:
    """Return the wall seconds of the quickest of three runs."""
    found = []
    for _ in range(3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return min(found)


def bare(X: torch.Tensor, Y: torch.Tensor) -> None:
    """Solve the plain problem in double precision."""
    if X.shape[1] > len(X) + len(Y):
        Z = torch.cat([X, Y]).double()
        torch.linalg.eigh(Z @ Z.T)
        return
    A, B = (part.double().T @ part.double() for part in (X, Y))
    L = torch.linalg.cholesky(B)
    half = torch.linalg.solve_triangular(L, A, upper=False)
    torch.linalg.eigh(torch.linalg.solve_triangular(L, half.T, upper=False))


def main() -> None:
    """Print one line per shape."""
    sklearn.set_config(array_api_dispatch=True)
    for n, width, dtype, default, plain in SHAPES:
        X, Y = (torch.randn(n, width, dtype=dtype, device="cuda") for _ in range(2))
        X[:, 0] *= 3
        reference = seconds(lambda X=X, Y=Y: bare(X, Y))
        whole = seconds(lambda X=X, Y=Y: DiscriminativePCA().fit(X, background=Y)) / reference
        fast = seconds(lambda X=X, Y=Y: DiscriminativePCA(cv=None, shrinkage=0.1).fit(X, background=Y)) / reference
        print(f"{n:,} x {width:,} {dtype}: default {whole:.2f} (bound {default}), cv=None {fast:.2f} (bound {plain})")


if __name__ == "__main__":
    main()
