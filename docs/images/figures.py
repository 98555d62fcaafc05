"""Make the small pictures of the guide: ``python docs/images/figures.py [NAME ...]``.

Widths and letters are chosen for a phone: a picture of five inches is still readable at 390 pixels.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from standout import DiscriminativePCA, plots
from standout.datasets import make_digits_over_photographs

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
WIDTH = 5.0


def outliers() -> plt.Figure:
    """The data of *Difficult data*, fitted with and without robust weights."""
    rng = np.random.default_rng(0)
    scale = np.array([9, 5, 3, 1, 1, 1, 1, 1])
    background = rng.normal(size=(200, 8)) * scale
    target = rng.normal(size=(200, 8)) * scale
    target[:, 5] *= 2.5
    target[:2] = 60 * rng.normal(size=8)
    fig, axes = plt.subplots(2, 1, figsize=(WIDTH, 3.6), sharex=True, layout="constrained")
    for ax, robust in zip(axes, (None, "rows"), strict=True):
        model = DiscriminativePCA(1, robust=robust).fit(target, background=background)
        ax.bar(
            range(8),
            np.abs(model.correlations_[0]),
            color=[GREY] * 5 + [ORANGE] + [GREY] * 2,
        )
        shown = "None" if robust is None else f'"{robust}"'
        ax.set(
            title=f"robust={shown}: ratio {model.ratio_[0]:.1f}",
            ylabel="|correlation|",
            ylim=(0, 1),
        )
    axes[1].set(xlabel="column (the signal is in column 5)", xticks=range(8))
    return fig


def shrinkage() -> plt.Figure:
    """The path of digits over photographs."""
    images = make_digits_over_photographs(n_background=600)
    model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    fig, ax = plt.subplots(figsize=(WIDTH, 2.9), layout="constrained")
    plots.path(model, ax=ax)
    ax.set(ylabel="held-out ratio")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")
    return fig


def patterns() -> plt.Figure:
    """Why are components read by their correlations? Column 2 only cancels the nuisance that column 1 has, too."""
    rng = np.random.default_rng(0)
    nuisance, other = 5 * rng.normal(size=(2, 2000, 1))
    signal = rng.normal(size=(2000, 1))
    mixed, plain = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 0, 0])
    target = nuisance * mixed + 2 * signal * plain + rng.normal(size=(2000, 4))
    background = other * mixed + rng.normal(size=(2000, 4))
    model = DiscriminativePCA(1).fit(target, background=background)
    bars = {"filter": model.components_[0], "correlation": model.correlations_[0]}
    names = ["signal + nuisance", "nuisance only", "noise", "noise "]
    fig, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.3), sharey=True, layout="constrained")
    for ax, (name, values) in zip(axes, bars.items(), strict=True):
        ax.barh(names, values * np.sign(values[0]), color=[BLUE, ORANGE, GREY, GREY])
        ax.axvline(0, color="black", lw=0.8)
        ax.set_title(name)
    axes[0].invert_yaxis()
    return fig


if __name__ == "__main__":
    plt.rcParams.update(
        {"font.size": 11, "axes.spines.top": False, "axes.spines.right": False}
    )
    for make in (outliers, shrinkage, patterns):
        if len(sys.argv) == 1 or make.__name__ in sys.argv:
            make().savefig(HERE / f"{make.__name__}.png", dpi=160)
