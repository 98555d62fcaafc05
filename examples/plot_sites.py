"""
Several hospitals, and rows that may not leave them
===================================================

Three hospitals have patients and healthy people. None may share rows. Each hospital fits an estimator to its own rows
and sends only the estimator, which stores counts, means and sums of products. The merged estimator equals the fit on
all rows, up to rounding.
"""

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA
from standout.metrics import clustering_error
from standout.plots import plot_scores

rng = np.random.default_rng(0)
everybody = rng.normal(size=(3, 25)) * 3.0
subtype = np.zeros(25)
subtype[[3, 7, 11, 19]] = [1.0, -0.9, 1.1, 0.8]


def people(n_people, kind=0.0):
    rows = rng.normal(size=(n_people, 3)) @ everybody + rng.normal(size=(n_people, 25))
    return rows + np.reshape(kind, (-1, 1)) * subtype


# Each hospital has few rows: 30, 40 and 50 patients, and as many healthy people.
kinds = [np.repeat([-1.0, 1.0], size // 2) for size in (30, 40, 50)]
hospitals = [(people(len(kind), kind), people(len(kind))) for kind in kinds]

# %%
# Fit at each hospital, then merge. ``merge`` adds the other estimators to the first and does not change them.

alone = [
    DiscriminativePCA(2).fit(patients, background=healthy)
    for patients, healthy in hospitals
]
merged = DiscriminativePCA(2).fit(hospitals[0][0], background=hospitals[0][1])
for other in alone[1:]:
    merged.merge(other)

# The result equals a fit on all rows together:
together = DiscriminativePCA(2).fit(
    np.vstack([patients for patients, _ in hospitals]),
    background=np.vstack([healthy for _, healthy in hospitals]),
)
print(
    "largest difference of the components:",
    np.abs(merged.components_ - together.components_).max(),
)

# %%
# How well does each estimator separate the patients of all three hospitals? The rows are combined here only for the
# picture.

patients = np.vstack([rows for rows, _ in hospitals])
truth = np.concatenate(kinds)
names = np.where(truth > 0, "subtype 1", "subtype 2")
fig, axes = plt.subplots(2, 2, figsize=(9, 7.4), layout="constrained")
titles = [
    *(
        f"hospital {number} alone ({len(kind)} patients)"
        for number, kind in enumerate(kinds, 1)
    ),
    "merged",
]
for ax, title, model in zip(axes.flat, titles, [*alone, merged], strict=True):
    scores = model.transform(patients)
    plot_scores(
        scores, names, ax=ax, title=f"{title}: error {clustering_error(scores, truth):.0%}"
    )

# %%
# ``partial_fit`` takes batches of any size, in any order, with the same result.

streamed = DiscriminativePCA(2)
for patients_here, healthy_here in hospitals:
    streamed.partial_fit(patients_here, background=healthy_here)
print(
    "largest difference of the components:",
    np.abs(streamed.components_ - together.components_).max(),
)
