"""The main job on data that need no download: ``python -m standout.demo`` (or ``make demo``).

Handwritten digits are hidden over pieces of photographs. PCA shows the photographs, discriminative PCA the digits.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from standout.datasets import ImageContrast, make_digits_over_photographs
from standout.estimators import DiscriminativePCA
from standout.metrics import clustering_error, scatter_ratio
from standout.plots import plot_scores


def main(arguments: list[str] | None = None) -> int:
    """Fit PCA and discriminative PCA, print a table, and draw both views into a PNG file."""
    parser = argparse.ArgumentParser(prog="python -m standout.demo", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("demo.png"), help="picture to write (%(default)s)")
    output = parser.parse_args(arguments).output
    if not output.parent.is_dir():
        print(f"standout: there is no folder {str(output.parent)!r} to write to. Make it first.", file=sys.stderr)
        return 2
    images = make_digits_over_photographs()
    views = {
        "PCA": DiscriminativePCA(2).fit(images.target),
        "discriminative PCA": DiscriminativePCA(2).fit(images.target, background=images.backgrounds),
    }
    scores = {name: model.transform(images.target) for name, model in views.items()}
    print(f"target:      {len(images.target)} images of digits 6 and 9 over photographs, 16 x 16 pixels")
    print(f"background:  {len(images.backgrounds[0])} other pieces of the same photographs\n")
    print(f"{'':<20}{'clustering error':>18}{'scatter ratio':>15}")
    for name, view in scores.items():
        error, ratio = clustering_error(view, images.labels), scatter_ratio(view, images.labels)
        print(f"{name:<20}{error:>18.3f}{ratio:>15.3f}")
    print("\nThe digit of an image was used for this table and for the colours only, never for a fit.")
    _draw(images, scores, output)
    print(f"Picture: {output}")
    return 0


def _draw(images: ImageContrast, scores: dict[str, Any], output: Path) -> None:
    """Draw a few target images and the two views, to a temporary name first."""
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
    temporary = output.with_name(f".{output.name}.part")
    figure.savefig(temporary, format="png", dpi=130)
    temporary.replace(output)


if __name__ == "__main__":
    sys.exit(main())
