"""The picture of the README: digits hidden over photographs, as PCA and as discriminative PCA show them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from standout._messages import require_extra
from standout._writing import whole_file
from standout.datasets import ImageContrast, make_digits_over_photographs
from standout.estimators import DiscriminativePCA
from standout.metrics import clustering_error
from standout.plots import plot_scores

__all__ = ["draw_digits"]


def draw_digits(path: str | os.PathLike[str], images: ImageContrast | None = None) -> None:
    """What does discriminative PCA see that PCA does not, in one picture?

    Draws some of the images, PCA's view of them, and that of discriminative PCA, given other pieces of the same
    photographs as background. Digits give the colours only.

    Parameters
    ----------
    path : path-like
        The PNG file to write.
    images : ImageContrast, default=None
        None means those of `standout.datasets.make_digits_over_photographs`, as in the README.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from standout.demo import draw_digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_digits(Path(folder) / "digits.png")
    ...     [file.name for file in Path(folder).iterdir()]
    ['digits.png']
    """
    require_extra("matplotlib", "plots", "the picture")
    images = make_digits_over_photographs() if images is None else images
    views = {
        "PCA": DiscriminativePCA(2).fit(images.target),
        "discriminative PCA": DiscriminativePCA(2).fit(images.target, background=images.backgrounds),
    }
    figure = _drawn(images, {name: model.transform(images.target) for name, model in views.items()})
    with whole_file(Path(path)) as draft:
        figure.savefig(draft, format="png", dpi=130)


def _drawn(images: ImageContrast, scores: dict[str, Any]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[0.8, 1, 1])
    some = np.linspace(0, len(images.target) - 1, 16).astype(int)
    tiles = images.target[some].reshape(4, 4, *images.image_shape)
    framed = np.pad(tiles, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
    axes[0].imshow(np.block([list(row) for row in framed]), cmap="gray")
    axes[0].set_axis_off()
    axes[0].set_title("some of the target")
    for ax, (name, view) in zip(axes[1:], scores.items(), strict=True):
        error = clustering_error(view, images.labels)
        plot_scores(view, [f"digit {label}" for label in images.labels], ax=ax, title=f"{name}: error {error:.1%}")
    return figure
