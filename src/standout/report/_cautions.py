"""What to be careful about, told from the shape and the spread of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from standout._arrays import Float
from standout.moments import Moments
from standout.report._subject import Subject
from standout.report._wording import a_few, counted, isolated, number, percent, whole
from standout.selection import ComponentTest

# With fewer background rows than this times the columns, ratios are a good deal too large by chance.
ROWS_PER_COLUMN = 5
# Columns whose spreads differ by more than this factor are hardly in the same units.
UNEQUAL_SPREADS = 1000.0
FEW_ROWS = 10
# Mean fourth power of standardised scores beyond which tails are heavy; 3 is the Gaussian's, 6 that of Laplace.
HEAVY = 4.5


def heavy_tails(test: ComponentTest | None, scores: Sequence[Float]) -> list[str]:
    """Say where p-values by formula, which take rows to be Gaussian, are too small.

    Looks at the scores of each background: their mean fourth power, that of a Gaussian being 3.
    """
    if test is None or test.method != "analytic":
        return []
    centred = [part - part.mean(axis=0) for part in scores[1:]]
    spreads = [np.sqrt(np.mean(part**2, axis=0)) for part in centred]
    fourth = [
        # Squared twice: a fourth power takes ten times as long.
        np.mean(np.square(np.square(part / np.where(spread > 0.0, spread, 1.0))), axis=0)
        for part, spread in zip(centred, spreads, strict=True)
    ]
    if np.max(fourth) < HEAVY:
        return []
    sentence = (
        "Scores of the background have heavier tails than the Gaussian's, and p-values by formula are then too small. "
        'Fit with test="permutation" (--test permutation) to be sure.'
    )
    return [sentence]


def cautions(subject: Subject, features: tuple[str, ...]) -> list[str]:
    """Say what in these data calls for care."""
    return [
        *(_constant_columns(subject, features) if subject.moments else []),
        *_singular_background(subject),
        *_few_rows(subject),
        *(_unequal_units(subject, features) if subject.moments else []),
        *_missed_by_kernel(subject),
    ]


def _constant_columns(subject: Subject, features: tuple[str, ...]) -> list[str]:
    target, *backgrounds = (_is_constant(part) for part in subject.moments)
    everywhere = np.logical_and.reduce([target, *backgrounds])
    sentences = []
    if everywhere.any():
        sentences.append(
            f"{_columns(everywhere, features)} the same in every row of every dataset, and can tell nothing."
        )
    if backgrounds:
        only_there = np.logical_and.reduce(backgrounds) & ~target
        if only_there.any():
            sentences.append(
                f"{_columns(only_there, features)} constant in the background but not in the target: any variation "
                "there stands out, however small. Leave such columns out if that is not what you look for."
            )
    return sentences


def _columns(chosen: np.ndarray, features: tuple[str, ...]) -> str:
    names = [isolated(features[index]) for index in np.flatnonzero(chosen)]
    return f"{counted(len(names), 'column')} ({a_few(names)}) {'is' if len(names) == 1 else 'are'}"


def _is_constant(moments: Moments) -> np.ndarray:
    """Tell columns without any spread but that of rounding."""
    rounding = 1e-12 * np.abs(moments.mean)
    return np.asarray(moments.variances <= rounding**2)


def _singular_background(subject: Subject) -> list[str]:
    absent = int(np.isinf(subject.model.eigenvalues_).sum())
    if not absent:
        return []
    sentence = (
        f"The background is singular: along {counted(absent, 'component')} it does not vary at all, so the ratio is "
        "infinite. Such components come first, ordered by the target's variance. Shrinkage (for example 0.1) gives "
        "every direction a finite ratio."
    )
    return [sentence]


def _few_rows(subject: Subject) -> list[str]:
    n_features = int(subject.rows[0].shape[1])
    sentences = []
    if subject.counts[0] < FEW_ROWS:
        sentences.append(f"The target has {counted(subject.counts[0], 'row')} only: too few to tell a pattern by.")
    if len(subject.rows) == 1 or subject.is_kernel or subject.is_contrastive:
        return sentences
    n_rows = sum(subject.counts[1:])
    if subject.degrees <= n_features:
        sentences.append(
            f"There are more columns ({whole(n_features)}) than the background has rows ({whole(n_rows)}). Only "
            "shrinkage makes a comparison possible, and ratios of the very rows that were fitted are far too large. "
            "Trust a permutation test or new rows instead."
        )
    elif subject.degrees < ROWS_PER_COLUMN * n_features:
        sentences.append(
            f"The background has few rows ({whole(n_rows)}) for so many columns ({whole(n_features)}): ratios well "
            "above 1 are then common by chance. Go by the p-values, not by the ratios."
        )
    return sentences


def _unequal_units(subject: Subject, features: tuple[str, ...]) -> list[str]:
    spreads = subject.spreads
    varying = spreads > 0.0
    if subject.is_kernel or not varying.any() or not _depends_on_units(subject):
        return []
    low = int(np.argmin(np.where(varying, spreads, np.inf)))
    high = int(np.argmax(spreads))
    if spreads[high] < UNEQUAL_SPREADS * spreads[low]:
        return []
    sentence = (
        f"Columns differ much in size: {isolated(features[high])} varies by about {number(spreads[high], 2)}, "
        f"{isolated(features[low])} by {number(spreads[low], 2)}. This method heeds units; scale all datasets alike "
        "(by the target's spread, say) if the columns are not in the same ones."
    )
    return [sentence]


def _depends_on_units(subject: Subject) -> bool:
    shrinkage: Float = np.atleast_1d(getattr(subject.model, "shrinkage_", np.ones(1)))
    return len(subject.rows) == 1 or subject.is_contrastive or bool(np.max(shrinkage, initial=0.0) > 0.01)


def _missed_by_kernel(subject: Subject) -> list[str]:
    residual = float(getattr(subject.model, "residual_", 0.0))
    # NaN is that of random Fourier features, which know no residual.
    if not residual > 0.05:
        return []
    coordinates = counted(subject.model.feature_map_.n_coordinates, "coordinate")
    return [f"The {coordinates} of the kernel leave out {percent(residual)} of it. In Python, a larger rank sees more."]
