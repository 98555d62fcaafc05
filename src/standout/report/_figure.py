"""The report's views as one picture, for a slide or a paper."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from standout._messages import require_extra
from standout._writing import whole_file
from standout.report._findings import Findings, Points, plane, require_findings
from standout.report._format import percent, shortened
from standout.report._scatter import (
    RING,
    Style,
    background_style,
    bounds_of,
    group_styles,
    ordinary_planes,
    scale_limits,
    target_style,
)

DPI = 150


def draw(findings: Findings, path: str | os.PathLike[str]) -> None:
    """What does the view look like, as a picture?

    Draws the target in PCA's view and in the view of the fit, with the backgrounds as a faint layer, as a PNG file.

    Parameters
    ----------
    findings : Findings
    path : path-like
        The file to write.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import draw, examine
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> findings = examine(model, images.target, images.backgrounds, labels=images.labels, with_path=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     picture = Path(folder) / "view.png"
    ...     draw(findings, picture)
    ...     picture.stat().st_size > 10_000
    True
    """
    require_findings(findings)
    require_extra("matplotlib", "plots", "the picture")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained", dpi=DPI)
    axes = figure.subplots(1, 2)
    errors = findings.pca_clustering_error, findings.clustering_error
    for ax, title, kind, error in zip(axes, ("PCA", findings.method), ("pca", "view"), errors, strict=True):
        _draw_view(ax, findings, kind)
        ax.set_title(title if error is None else f"{title}: {percent(error)} grouped wrongly")
    _draw_legend(figure, axes[1])
    # Arranged here: `savefig` would also draw everything for that.
    arrangement: Any = figure.get_layout_engine()
    arrangement.execute(figure)
    figure.set_layout_engine("none")
    with whole_file(Path(path)) as draft:
        figure.savefig(draft, format="png", dpi=DPI)


def _draw_view(ax: Any, findings: Findings, kind: str) -> None:
    planes = [plane(part.pca_scores if kind == "pca" else part.scores) for part in findings.datasets]
    for index, (part, view) in enumerate(zip(findings.backgrounds, planes[1:], strict=True)):
        style = background_style(index)
        _scatter(ax, view, style, part.name, size=10, alpha=0.3)
    _draw_target(ax, findings, findings.target, planes[0])
    for part, view in zip(findings.datasets, planes, strict=True):
        if part.outlying is not None and part.outlying.any():
            far = view[part.outlying > 0]
            ax.scatter(far[:, 0], far[:, 1], s=60, facecolors="none", edgecolors=RING, lw=1.0)
    x_low, x_high, y_low, y_high = bounds_of(ordinary_planes(findings, kind))
    ax.set_xlim(x_low, x_high)
    ax.set_ylim(y_low, y_high)
    what = "PCA" if kind == "pca" else "component"
    columns = findings.target.pca_scores.shape[1] if kind == "pca" else findings.n_shown_components
    ax.set_xlabel(f"{what} 1")
    ax.set_ylabel(f"{what} 2" if columns > 1 else "(spread at random)")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_target(ax: Any, findings: Findings, target: Points, view: Any) -> None:
    if target.values is not None:
        low, high = scale_limits(target.values)
        drawn = ax.scatter(view[:, 0], view[:, 1], c=target.values, cmap="cividis", vmin=low, vmax=high, s=18, lw=0)
        ax.figure.colorbar(drawn, ax=ax, label="label")
    elif target.groups is None:
        _scatter(ax, view, target_style(), target.name)
    else:
        for group, style in enumerate(group_styles(findings)):
            _scatter(ax, view[target.groups == group], style, findings.label_names[group])


def _scatter(ax: Any, view: Any, style: Style, label: str, size: float = 18, alpha: float = 0.75) -> None:
    # A label that starts with an underscore would be left out of the legend.
    shown = f"\u200b{shortened(label, 30)}"
    ax.scatter(
        view[:, 0],
        view[:, 1],
        s=size,
        alpha=alpha,
        lw=0,
        color=style.on_white,
        marker=style.shape.matplotlib,
        label=shown,
    )


def _draw_legend(figure: Any, ax: Any) -> None:
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False)
    for entry in legend.get_texts():
        # A dollar sign in a name does not start a formula.
        entry.set_parse_math(False)
        entry.set_text(entry.get_text().removeprefix("\u200b"))
