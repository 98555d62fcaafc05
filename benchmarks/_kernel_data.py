"""The data of the kernel benchmark: shapes, kernels, bounds to keep, and the rows themselves.

In two columns the target lies on two circles, one inside the other, where the background is a round cloud of about the
same spread; all other columns are unit noise in both. No linear view shows the circles.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from _data import save

RADII, NOISE = (0.6, 1.8), 0.2


@dataclass(frozen=True)
class KernelCase:
    """One shape, one kernel, and what the fit may cost there.

    Attributes
    ----------
    name
        What `--cases` calls it.
    rows, features
        Rows of each of the two datasets; columns of both.
    options
        What every side's fit is told: the kernel and its parameters.
    ours
        What our fit alone is told.
    faster
        Sides to be compared, and how many times faster than each the fit has to be; below one, how much slower it may
        be.
    error
        Largest relative difference of the eigenvalues from those of the symmetric pencil.
    memory
        Largest peak beyond the inputs in MB.
    """

    name: str
    rows: int
    features: int
    options: dict[str, Any]
    ours: dict[str, Any] = field(default_factory=dict)
    faster: dict[str, float] = field(default_factory=dict)
    error: float | None = None
    memory: float | None = None

    @property
    def shape(self) -> str:
        words = [self.options["kernel"]]
        words += [f"{key} {value}" for key, value in self.options.items() if key in ("gamma", "degree")]
        words += [f"rank {self.ours['rank']}"] if "rank" in self.ours else []
        return f"({self.rows:,}+{self.rows:,}) x {self.features:,} {', '.join(words)}"


@dataclass(frozen=True)
class AccuracyCase:
    """The shape and the ranks at which landmarks are compared with the exact fit."""

    rows: int
    features: int
    options: dict[str, Any]
    ranks: tuple[int, ...]

    @property
    def shape(self) -> str:
        return f"({self.rows:,}+{self.rows:,}) x {self.features:,} {self.options['kernel']}"


RBF: dict[str, Any] = {"kernel": "rbf"}
DECAYING: dict[str, Any] = {"kernel": "rbf", "gamma": 0.02}
QUADRATIC: dict[str, Any] = {"kernel": "poly", "degree": 2}


def _three_matrices(rows: int) -> float:
    """Three matrices of doubles of all rows by all rows, in MB."""
    return 3 * 8 * (2 * rows) ** 2 / 1e6


def _cases(full: int, decaying: int, large: int, million: int, rank: int) -> tuple[KernelCase, ...]:
    """Give all cases, at these numbers of rows per dataset."""
    landmarks = {"approximation": "pivoted", "rank": rank}
    memory = _three_matrices(large)
    return (
        KernelCase("full-rank", full, 50, RBF, faster={"pencil": 2.0, "paper": 8.0}),
        KernelCase("decaying", decaying, 5, DECAYING, faster={"pencil": 10.0}, error=1e-6),
        KernelCase("quadratic", decaying, 5, QUADRATIC, faster={"pencil": 10.0}, error=1e-6),
        KernelCase("large", large, 50, RBF, memory=memory),
        KernelCase("large-decaying", large, 5, DECAYING, memory=memory),
        KernelCase("million", million, 20, RBF, landmarks, faster={"bare": 0.5}, memory=1500.0),
    )


KERNEL_CASES = _cases(1_000, 2_500, 5_000, 500_000, 500)
QUICK_KERNEL_CASES = _cases(100, 250, 200, 2_000, 50)

ACCURACY = AccuracyCase(2_000, 5, RBF, (25, 50, 100, 200, 400, 800))
QUICK_ACCURACY = AccuracyCase(200, 5, RBF, (25, 50, 100))


def two_datasets(rows: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the target, with its two circles, and the background."""
    rng = np.random.default_rng(seed)
    target, background = (rng.standard_normal((rows, features)) for _ in range(2))
    radius, angle = rng.choice(RADII, rows), rng.uniform(0.0, 2.0 * np.pi, rows)
    target[:, :2] *= NOISE
    target[:, :2] += radius[:, np.newaxis] * np.column_stack([np.cos(angle), np.sin(angle)])
    return target, background


def write_kernel_case(case: KernelCase, folder: Path) -> None:
    """Write target and background into `folder`."""
    for name, rows in zip(("target", "background"), two_datasets(case.rows, case.features), strict=True):
        save(folder, f"{name}-float64", rows)
