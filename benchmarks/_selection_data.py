"""The data of the selection benchmark: which choice is compared with what, at which shape, and the rows.

The rows are those of the linear benchmark. Where backgrounds are to be weighted there are three, each of which knows
other factors of the target, in unequal measure: no background will do alone, and equal weights are not the worst case.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from _data import N_OWN, N_SHARED, OWN_VARIANCE, SHARED_VARIANCE, factor_directions, save, shared_rows, write_case
from _selection_sides import N_BACKGROUNDS

DTYPE = "float64"
N_PERMUTATIONS, N_DRAWS = 199, 200
# How much stronger in the target, for the factors that the first, the second and the third background knows.
TARGET_GAINS = (12.0, 6.0, 1.2)


@dataclass(frozen=True)
class Compared:
    """A side as `_child.py` knows it, as the table calls it, and what its fit is told."""

    side: str
    label: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SelectionCase:
    """One choice, and what it may cost.

    Attributes
    ----------
    name
        What `--cases` calls it.
    rows, features
        Rows of each dataset; columns of all.
    base, choice
        The fit without the choice, and with it.
    allowed
        Largest seconds of the choice over seconds of the base; None where the ratio is information only.
    backgrounds
        How many.
    grouped
        Whether the rows of the target fall into two groups along what stands out.
    null
        Whether the target is drawn from the distribution of the background.
    others
        Further sides, for information.
    """

    name: str
    rows: int
    features: int
    base: Compared
    choice: Compared
    allowed: float | None = None
    backgrounds: int = 1
    grouped: bool = False
    null: bool = False
    others: tuple[Compared, ...] = ()

    @property
    def shape(self) -> str:
        return f"({'+'.join([f'{self.rows:,}'] * (1 + self.backgrounds))}) x {self.features:,}"


ONE_ALPHA = Compared("alpha-one", "ContrastivePCA(alpha=1)")
AUTO_ALPHA = Compared("alpha-auto", "ContrastivePCA(), 0 and 40 α")
ONE_FIT = Compared("fit", "DiscriminativePCA()")
CLUSTERS = Compared("clusters", 'shrinkage="clusters"')
EQUAL = Compared("weights-equal", "DiscriminativePCA(), equal weights")
WORST_CASE = Compared("weights-worst-case", 'background_weights="worst-case"')
ANALYTIC = Compared("test-analytic", "component_test, analytic")
# Against as many fits as there are reshufflings of one component: one fit of so few rows is over too soon.
RESHUFFLED = Compared("test-permutation", f"component_test, {N_PERMUTATIONS} permutations", {"times": N_PERMUTATIONS})
FITS_FOR_RESHUFFLED = Compared("fit", f"DiscriminativePCA(), {N_PERMUTATIONS} fits", {"times": N_PERMUTATIONS})
WITHOUT_FOLDS = Compared("fit-without-folds", "DiscriminativePCA(held_out=None)")
SHRUNKEN = Compared(
    "test-permutation",
    f"component_test, up to {N_PERMUTATIONS} permutations",
    {"times": N_PERMUTATIONS, "shrinkage": "auto"},
)
DRAWN = Compared("stability", f"stability, {N_DRAWS} draws", {"times": N_DRAWS})


def _cases(
    alpha: tuple[int, int],
    alpha_large: tuple[int, int],
    permutation: tuple[int, int],
    wide: tuple[int, int],
    stability: tuple[int, int],
) -> tuple[SelectionCase, ...]:
    """Give all cases, at these rows and columns."""
    return (
        SelectionCase("alpha", *alpha, ONE_ALPHA, AUTO_ALPHA, allowed=3.0),
        SelectionCase("alpha-large", *alpha_large, ONE_ALPHA, AUTO_ALPHA, allowed=8.0),
        SelectionCase("clusters", *alpha, ONE_FIT, CLUSTERS, grouped=True),
        SelectionCase("weights", *alpha, EQUAL, WORST_CASE, backgrounds=N_BACKGROUNDS),
        SelectionCase("analytic", *alpha, ONE_FIT, ANALYTIC),
        SelectionCase("permutation", *permutation, FITS_FOR_RESHUFFLED, RESHUFFLED),
        SelectionCase("null", *wide, ONE_FIT, SHRUNKEN, allowed=25.0, null=True, others=(WITHOUT_FOLDS,)),
        SelectionCase("finding", *wide, ONE_FIT, SHRUNKEN, allowed=200.0, others=(WITHOUT_FOLDS,)),
        SelectionCase("stability", *stability, ONE_FIT, DRAWN, allowed=60.0, others=(WITHOUT_FOLDS,)),
    )


SELECTION_CASES = _cases((20_000, 500), (20_000, 2_000), (500, 50), (350, 765), (2_000, 200))
# The same proportions in a blink: for trying the script, not for its figures.
QUICK_SELECTION_CASES = _cases((1_000, 30), (1_000, 60), (100, 15), (35, 76), (200, 15))


def write_selection_case(case: SelectionCase, folder: Path) -> None:
    """Write the target, the rows of all backgrounds one below the other, and the target's own factors."""
    if case.null:
        _write_null(case, folder)
    elif case.backgrounds == 1:
        write_case(case, folder, dtypes=(DTYPE,), grouped=case.grouped)
    else:
        _write_several_backgrounds(case, folder)


def _write_null(case: SelectionCase, folder: Path, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    directions = factor_directions(case, rng)
    for name in ("target", "background"):
        save(folder, f"{name}-{DTYPE}", shared_rows(case, directions, SHARED_VARIANCE, rng))


def _write_several_backgrounds(case: SelectionCase, folder: Path, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    directions = factor_directions(case, rng)
    owner = np.arange(N_SHARED) % case.backgrounds
    target = shared_rows(case, directions, SHARED_VARIANCE * np.array(TARGET_GAINS)[owner], rng)
    target += np.sqrt(OWN_VARIANCE) * rng.standard_normal((case.rows, N_OWN)) @ directions[N_SHARED:]
    backgrounds = [
        shared_rows(case, directions, SHARED_VARIANCE * (owner == number), rng) for number in range(case.backgrounds)
    ]
    save(folder, f"target-{DTYPE}", target)
    save(folder, f"background-{DTYPE}", np.vstack(backgrounds))
