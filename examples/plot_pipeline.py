"""
Pipelines: scaling, logarithms and a grid of parameters
=======================================================

Counts of cells, say: a logarithm first, then a scale, then discriminative PCA. Every step must treat the backgrounds
as it treats the target. ``standout.make_pipeline`` sees to that.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from standout import DiscriminativePCA, make_pipeline
from standout.metrics import clustering_error
from standout.plots import plot_scores

# %%
# Made-up counts of 60 genes in cells: some cells are larger (all counts grow), some genes are more active than
# others, and stimulated cells come in two kinds that differ in eight genes.

rng = np.random.default_rng(0)
activity = rng.gamma(2.0, 20.0, size=60)
programmes = rng.normal(size=(3, 60)) * 0.5  # what all cells do more or less of
kinds = np.zeros(60)
kinds[rng.choice(60, 8, replace=False)] = 0.45


def counts(n_cells, kind=0.0):
    size = rng.lognormal(0.0, 0.35, size=(n_cells, 1))
    log_rate = rng.normal(size=(n_cells, 3)) @ programmes + np.reshape(kind, (-1, 1)) * kinds
    return rng.poisson(size * activity * np.exp(log_rate))


kind = np.repeat([-1.0, 1.0], 200)
stimulated, resting = counts(400, kind), counts(800)
names = np.where(kind > 0, "kind 1", "kind 2")

# %%
# Each step is fitted on the target and applied to target and background alike.

model = make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), DiscriminativePCA(2))
scores = model.fit_transform(stimulated, background=resting)
plain = make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), DiscriminativePCA(2)).fit_transform(stimulated)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
plot_scores(plain, names, ax=axes[0], title=f"PCA: error {clustering_error(plain, kind):.0%}")
plot_scores(scores, names, ax=axes[1], title=f"discriminative PCA: error {clustering_error(scores, kind):.0%}")

# %%
# Where one table holds all rows and a column says which is which, use the label form: the rows with
# ``target_label`` are the target, and those of each other label are one background. It works wherever scikit-learn
# hands labels on, in a grid search for example. ``score`` is the target's variance by that of the backgrounds along
# the components: higher is better, on rows held out.

X = np.vstack([stimulated, resting])
y = np.repeat(["stimulated", "resting"], [400, 800])
search = GridSearchCV(
    DiscriminativePCA(1, target_label="stimulated"),
    {"shrinkage": [0.0, 0.01, 0.1, 0.3, 0.9, 1.0]},
    cv=StratifiedKFold(4, shuffle=True, random_state=0),  # some rows of each label in every fold
).fit(np.log1p(X), y)
for shrinkage, score in zip(search.cv_results_["param_shrinkage"], search.cv_results_["mean_test_score"], strict=True):
    print(f"shrinkage {shrinkage:<5g} ratio on rows held out {score:.2f}")
