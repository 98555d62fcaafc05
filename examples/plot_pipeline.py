"""
Pipelines: scaling, logarithms and a grid of parameters
=======================================================

Counts need several steps: a logarithm, scaling, then discriminative PCA. Every step must treat the backgrounds exactly
as the target. ``standout.make_pipeline`` does this.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from standout import DiscriminativePCA, make_pipeline
from standout.metrics import clustering_error
from standout.plots import plot_scores

# %%
# Simulated counts of 60 genes. Cells differ in size (which scales all counts), genes differ in activity, and the
# stimulated cells have two subtypes, which differ in eight genes.

rng = np.random.default_rng(0)
activity = rng.gamma(2.0, 20.0, size=60)
programmes = rng.normal(size=(3, 60)) * 0.5  # active in all cells
kinds = np.zeros(60)
kinds[rng.choice(60, 8, replace=False)] = 0.45


def counts(n_cells, kind=0.0):
    size = rng.lognormal(0.0, 0.35, size=(n_cells, 1))
    log_rate = (
        rng.normal(size=(n_cells, 3)) @ programmes + np.reshape(kind, (-1, 1)) * kinds
    )
    return rng.poisson(size * activity * np.exp(log_rate))


kind = np.repeat([-1.0, 1.0], 200)
stimulated, resting = counts(400, kind), counts(800)
names = np.where(kind > 0, "kind 1", "kind 2")

# %%
# Each step is fitted on the target and applied to both target and background.

model = make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), DiscriminativePCA(2))
scores = model.fit_transform(stimulated, background=resting)
plain = make_pipeline(
    FunctionTransformer(np.log1p), StandardScaler(), DiscriminativePCA(2)
).fit_transform(stimulated)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plot_scores(
    plain, names, ax=axes[0], title=f"PCA: error {clustering_error(plain, kind):.0%}"
)
plot_scores(
    scores,
    names,
    ax=axes[1],
    title=f"discriminative PCA: error {clustering_error(scores, kind):.0%}",
)

# %%
# If one table holds all rows, with a column of labels, use the label form: the rows with ``target_label`` are the
# target, and the rows of each other label are one background. It works wherever scikit-learn passes labels, for example
# in a grid search. ``score`` is the target's variance divided by that of the backgrounds, along the components and on
# held-out rows. Higher is better.

X = np.vstack([stimulated, resting])
y = np.repeat(["stimulated", "resting"], [400, 800])
search = GridSearchCV(
    DiscriminativePCA(1, target_label="stimulated"),
    {"shrinkage": [0.0, 0.01, 0.1, 0.3, 0.9, 1.0]},
    cv=StratifiedKFold(
        4, shuffle=True, random_state=0
    ),  # some rows of each label in every fold
).fit(np.log1p(X), y)
for shrinkage, score in zip(
    search.cv_results_["param_shrinkage"],
    search.cv_results_["mean_test_score"],
    strict=True,
):
    print(f"shrinkage {shrinkage:<5g} held-out ratio {score:.2f}")
