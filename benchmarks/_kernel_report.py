"""From the kernel measurements to what is printed: the table, the bounds, and accuracy for growing rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from _kernel_data import AccuracyCase, KernelCase, two_datasets
from _kernel_sides import EPSILON
from _report import ERROR_WIDTH, Requirement, Row, aligned, find, number
from _sides import N_COMPONENTS

OURS = "standout"
LABELS = {
    "pencil": "symmetric pencil",
    "paper": "eig(solve(B, A))",
    "bare": "bare blocks and products",
}


def eigenvalue_error(row: Row, reference: Row) -> float:
    """Return the largest relative difference of any run's eigenvalues from the reference's."""
    if not row.facts or not reference.facts:
        return math.nan
    exact = np.array(reference.facts[0]["eigenvalues"])
    return max(float(np.max(np.abs(np.array(facts["eigenvalues"]) / exact - 1))) for facts in row.facts)


def kernel_requirements(rows: list[Row], cases: list[KernelCase]) -> list[Requirement]:
    """Return the bounds that the fit has to keep, in the order of the cases."""
    found = []
    for case in cases:
        ours = find(rows, case, OURS)
        for side, factor in case.faster.items():
            other = find(rows, case, LABELS[side])
            text = f"{case.shape} {LABELS[side]} / fit" if factor >= 1 else f"{case.shape} fit / {LABELS[side]}"
            ratio = other.median_seconds / ours.median_seconds
            if factor >= 1:
                found.append(Requirement(text, ratio, factor, "x", at_least=True))
            else:
                found.append(Requirement(text, 1 / ratio, 1 / factor, "x"))
        if case.error is not None:
            error = eigenvalue_error(ours, find(rows, case, LABELS["pencil"]))
            found.append(Requirement(f"{case.shape} relative error of the eigenvalues", error, case.error, ""))
        if case.memory is not None:
            text = f"{case.shape} peak memory beyond the inputs"
            found.append(Requirement(text, ours.peak_megabytes, case.memory, "MB"))
    return found


def kernel_table(rows: list[Row]) -> str:
    """Return one line per side and case; a side without a result says why."""
    head = ("case", "side", "seconds", "x standout", "at least", "peak MB", "allowed", "coordinates", "λ error")
    return aligned([head, *(_cells(row, rows) for row in rows)])


def _cells(row: Row, rows: list[Row]) -> tuple[str, ...]:
    case: KernelCase = row.case
    if not row.seconds:
        return case.shape, row.side, (row.error or "not measured")[:ERROR_WIDTH]
    ours = row.side == OURS
    required = next((factor for side, factor in case.faster.items() if LABELS[side] == row.side), math.nan)
    error = eigenvalue_error(row, find(rows, case, LABELS["pencil"]))
    return (
        case.shape,
        row.side,
        f"{row.median_seconds:.3f}",
        number(row.median_seconds / find(rows, case, OURS).median_seconds),
        number(required),
        f"{row.peak_megabytes:.0f}",
        number((case.memory or math.nan) if ours else math.nan, 0),
        str(row.facts[0]["coordinates"]) if ours else "-",
        "-" if math.isnan(error) or row.side == LABELS["pencil"] else f"{error:.0e}",
    )


@dataclass(frozen=True)
class Accuracy:
    """How far landmarks of one rank are from the exact fit.

    Attributes
    ----------
    residual
        The certificate of the fit itself: share of the kernel's trace that is left out.
    eigenvalue_error
        Relative error of the leading eigenvalue.
    correlations
        Of each score of the target with the exact one, without its sign.
    angle
        Largest angle in degrees between the span of the scores and of the exact ones.
    """

    rank: int
    residual: float
    eigenvalue_error: float
    correlations: list[float]
    angle: float


def accuracy(case: AccuracyCase) -> Iterator[Accuracy]:
    """Fit exactly, then with growing rank, and compare."""
    X, Y = two_datasets(case.rows, case.features)
    exact = _fit(X, Y, case, approximation="exact")
    exact_scores = exact.transform(X)
    for rank in case.ranks:
        model = _fit(X, Y, case, approximation="pivoted", rank=rank)
        scores = model.transform(X)
        yield Accuracy(
            rank,
            float(model.residual_),
            abs(float(model.eigenvalues_[0] / exact.eigenvalues_[0]) - 1),
            [abs(float(np.corrcoef(*pair)[0, 1])) for pair in zip(scores.T, exact_scores.T, strict=True)],
            _angle(scores, exact_scores),
        )


def accuracy_table(found: list[Accuracy]) -> str:
    """Return one line per rank."""
    head = ("rank", "residual_", "λ₁ error", *(f"|corr| {i + 1}" for i in range(N_COMPONENTS)), "angle")
    lines = [
        (
            str(one.rank),
            f"{one.residual:.1e}",
            f"{one.eigenvalue_error:.1e}",
            *(f"{correlation:.6f}" for correlation in one.correlations),
            f"{one.angle:.2f}°",
        )
        for one in found
    ]
    return aligned([head, *lines])


def _fit(X: np.ndarray, Y: np.ndarray, case: AccuracyCase, **how: Any) -> Any:
    from standout import KernelDiscriminativePCA

    model = KernelDiscriminativePCA(N_COMPONENTS, epsilon=EPSILON, **case.options, **how)
    return model.fit(X, background=Y)


def _angle(first: np.ndarray, second: np.ndarray) -> float:
    from scipy.linalg import subspace_angles

    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    return float(np.degrees(np.max(subspace_angles(first, second))))
