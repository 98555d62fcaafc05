"""
Pipelines: logarithms, scaling and a search
===========================================

Counts need a logarithm, and perhaps a scale. Every step must treat the backgrounds as the target.
``standout.make_pipeline`` does this.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import FunctionTransformer

from standout import BackgroundSearchCV, DiscriminativePCA, make_pipeline, plots
from standout.metrics import clustering_error

rng = np.random.default_rng(0)
activity = rng.gamma(2.0, 20.0, size=60)
programmes = 0.5 * rng.normal(size=(3, 60))  # active in all cells
response = np.zeros(60)
response[rng.choice(60, 8, replace=False)] = 0.45


def counts(n_cells, kind=0.0):
    """Return counts of 60 genes in cells of different size."""
    size = rng.lognormal(0.0, 0.35, size=(n_cells, 1))
    rate = rng.normal(size=(n_cells, 3)) @ programmes
    return rng.poisson(
        size * activity * np.exp(rate + np.reshape(kind, (-1, 1)) * response)
    )


kind = np.repeat([-1.0, 1.0], 200)
stimulated, resting = counts(400, kind), counts(800)

# %%
# The steps are fitted to the target and applied to both.

model = make_pipeline(FunctionTransformer(np.log1p), DiscriminativePCA(2))
scores = model.fit(stimulated, background=resting).transform(stimulated)
plain = model.fit(stimulated).transform(stimulated)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
labels = np.where(kind > 0, "kind 1", "kind 2")
for ax, (name, view) in zip(
    axes, {"PCA": plain, "discriminative PCA": scores}.items(), strict=True
):
    error = clustering_error(view, kind)
    plots.scores(view, labels=labels, ax=ax, title=f"{name}: error {error:.0%}")

# %%
# A search compares scales and shrinkages on held-out rows of *all* datasets, without labels.

search = BackgroundSearchCV(
    make_pipeline(FunctionTransformer(np.log1p), DiscriminativePCA(1)),
    {
        "discriminativepca__scale": [None, "pooled"],
        "discriminativepca__shrinkage": [0.0, 0.1, 0.5],
    },
    random_state=0,
).fit(stimulated, background=resting)
for params, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(*params.values(), "mean log ratio", round(float(score), 2))
