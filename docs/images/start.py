"""Make the picture of the README and of *Start*: ``python docs/images/start.py``."""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from standout import DiscriminativePCA, plots

HERE = Path(__file__).parent
patients, healthy = (
    pd.read_csv(HERE.parent / "data" / f"{name}.csv", index_col="id")
    for name in ("patients", "healthy")
)
labels = "subtype " + patients.pop("subtype")
pca = DiscriminativePCA(2).fit(patients)
dpca = DiscriminativePCA(2).fit(patients, background=healthy)
held_out = dpca.held_out_scores(patients, background=healthy)
views = {
    "PCA of the patients": [pca.transform(patients), pca.transform(healthy)],
    "Discriminative PCA, given healthy people": held_out,
}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.9), layout="constrained")
for ax, (title, scores) in zip(axes, views.items(), strict=True):
    plots.scores(
        scores[0],
        scores[1:],
        labels=labels,
        names=["patients", "healthy people"],
        ax=ax,
        title=title,
    )
fig.savefig(HERE / "start.png", dpi=130)
