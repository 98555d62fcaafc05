"""Digits laid over photographs, in the paper's numbers or in as many as the images allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments._record import Sample, Setting


def draw_digits(
    make: Callable[..., Any], loaded: Any, setting: Setting, seed: int, n_per_digit: int, n_background: int
) -> Sample:
    """Lay digits over photographs; of fewer images, the same shares."""
    mnist, photographs = loaded
    share = min(
        1.0,
        len(photographs.images) / (2 * n_per_digit + n_background),
        *(int((mnist.labels == digit).sum()) / n_per_digit for digit in (6, 9)),
    )
    n_digits, n_others = int(n_per_digit * share), int(n_background * share)
    contrast = make(
        mnist, photographs, n_per_digit=n_digits, n_background=n_others, random_state=seed, **setting.values
    )
    smaller = f"2 x {n_digits} and {n_others} images in place of 2 x {n_per_digit} and {n_background}"
    return Sample(contrast, smaller if share < 1 else "")
