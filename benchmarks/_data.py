"""The data of the linear benchmark, and of others: shapes, bounds to keep, and the rows themselves.

Ten factors are shared by target and background (a little stronger in the target, so that the
target's own PCA follows them), two factors are the target's alone, and the noise has unit variance.
A method that looks for ratios of variance finds the two; a method that looks for variance does not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

N_SHARED, N_OWN = 10, 2
SHARED_VARIANCE, OWN_VARIANCE, TARGET_GAIN = 30.0, 15.0, 1.2
DTYPES = ("float64", "float32")


class Shape(Protocol):
    """What the rows depend on: how many there are of each dataset, and the columns of both."""

    @property
    def rows(self) -> int: ...
    @property
    def features(self) -> int: ...


@dataclass(frozen=True)
class Case:
    """One shape of the data, and what the fit may cost there.

    Attributes
    ----------
    rows, features
        Rows of each of the two datasets; columns of both.
    allowed_ratio
        Largest seconds of the fit over seconds of the reference.
    tall
        Whether the bound on memory applies: rows far outnumber columns.
    """

    name: str
    rows: int
    features: int
    allowed_ratio: float
    tall: bool = False

    @property
    def shape(self) -> str:
        return f"({self.rows:,}+{self.rows:,}) x {self.features:,}"

    @property
    def wide(self) -> bool:
        """Columns far outnumber rows: the unavoidable work is then the Gram matrix of the rows."""
        return self.features > 4 * self.rows

    @property
    def allowed_megabytes(self) -> float | None:
        """64 MB and eight D x D matrices of doubles, on the tall cases."""
        return 64.0 + 8 * 8 * self.features**2 / 1e6 if self.tall else None


CASES = (
    Case("tall", 20_000, 500, 1.15, tall=True),
    Case("taller", 200_000, 100, 1.4, tall=True),
    Case("square", 2_000, 2_000, 1.1),
    Case("wide", 300, 20_000, 2.0),
)

# The same proportions in a blink: for trying the script, not for its figures.
QUICK_CASES = (
    Case("tall", 2_000, 50, 1.15, tall=True),
    Case("taller", 5_000, 20, 1.4, tall=True),
    Case("square", 200, 200, 1.1),
    Case("wide", 60, 1_000, 2.0),
)


def write_case(
    case: Shape, folder: Path, seed: int = 0, *, dtypes: Sequence[str] = DTYPES, grouped: bool = False
) -> None:
    """Write target, background and the target's own factors into `folder`.

    With `grouped`, the first of these factors is the same but for its distribution: two groups in place of one.
    """
    rng = np.random.default_rng(seed)
    directions = factor_directions(case, rng)
    # Past D = N unit noise drowns a factor of fixed variance; grow it with D / N, so that the question stays
    # how a method copes with many columns and not whether anything is there to find.
    strength = max(1.0, case.features / case.rows)
    own = rng.standard_normal((case.rows, N_OWN))
    if grouped:
        own[:, 0] = np.sign(own[:, 0])
    target = shared_rows(case, directions, TARGET_GAIN * SHARED_VARIANCE * strength, rng)
    target += np.sqrt(OWN_VARIANCE * strength) * own @ directions[N_SHARED:]
    save(folder, "own", own)
    for name, rows in (
        ("target", target),
        ("background", shared_rows(case, directions, SHARED_VARIANCE * strength, rng)),
    ):
        for dtype in dtypes:
            save(folder, f"{name}-{dtype}", rows.astype(dtype, copy=False))


def factor_directions(case: Shape, rng: np.random.Generator) -> np.ndarray:
    """Return orthonormal directions as rows, those of the shared factors first."""
    return np.linalg.qr(rng.standard_normal((case.features, N_SHARED + N_OWN)))[0].T


def shared_rows(
    case: Shape, directions: np.ndarray, variance: float | np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return unit noise, the shared factors, and a mean that is not zero: centring is part of a fit."""
    rows = rng.standard_normal((case.rows, case.features))
    rows += np.sqrt(variance) * rng.standard_normal((case.rows, N_SHARED)) @ directions[:N_SHARED]
    rows += 3.0 * rng.standard_normal(case.features)
    return rows


def save(folder: Path, name: str, array: np.ndarray) -> None:
    """Save, and wait for the disk: no writing in the background while others are timed."""
    with open(folder / f"{name}.npy", "wb") as file:
        np.save(file, array)
        file.flush()
        os.fsync(file.fileno())
