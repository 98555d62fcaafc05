"""The result of a screen: a table with one row per label, its text and its picture."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import false_discovery_control

from standout.screen._null import Null

if TYPE_CHECKING:
    import pandas as pd

STANDS_OUT, NO_EVIDENCE, TOO_FEW = "stands out", "no evidence", "too few rows to say"
COLOURS = {STANDS_OUT: "#D55E00", NO_EVIDENCE: "#56B4E9", TOO_FEW: "#999999"}
MOST_SHOWN = 30
COLUMNS = (
    *("rows", "ratio", "ratio_error", "spread", "shift", "statistic", "p_value", "q_value"),
    *("shift_columns", "spread_columns", "agreement", "detectable", "verdict", "note"),
)


@dataclass(frozen=True)
class Screen:
    """A table of labels, the most significant first, and how it was made.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per label. `rows`: their number. `ratio`, `ratio_error`: second moment about the controls' mean along
        the direction in which it is largest, on held-out rows, in units of the controls' variance. `spread`: the same
        for the variance about the label's mean. `shift`: squared distance of the means, without bias. `statistic`: the
        larger of shift and spread in null standard deviations. `p_value`, `q_value` (Benjamini-Hochberg).
        `shift_columns`, `spread_columns`: leading columns with signs. `agreement`: share of groups whose shift points
        the same way as that of the label's other groups. `detectable`: smallest shift that is found with a power of
        80 % at this number of rows. `verdict`, `note`.
    control : object
        The label of the controls.
    n_controls : int
        Number of control rows.
    units : {"rows", "subjects", "within"}
        What null draws exchange: rows, whole groups, or rows about the control mean of their group.
    level, effect : float
        The limit of the q-value, and the shift that decides between "no evidence" and "too few rows to say".
    """

    table: pd.DataFrame = field(repr=False)
    control: Any
    n_controls: int
    units: str
    level: float
    effect: float

    def to_csv(self, path: Any) -> None:
        """Write the table as a CSV file."""
        self.table.to_csv(path)

    def summary(self) -> str:
        """Return the numbers of labels by verdict, as a sentence."""
        counts = Counter(self.table["verdict"])
        parts = ", ".join(f"{counts[verdict]} {verdict!r}" for verdict in COLOURS if counts[verdict])
        controls = f"{self.n_controls:,} control rows"
        return f"{len(self.table):,} labels against {controls}: {parts}."

    def __str__(self) -> str:
        columns = ["rows", "ratio", "shift", "spread", "q_value", "verdict", "shift_columns"]
        return f"{self.summary()}\n{_rounded(self.table[columns].head(MOST_SHOWN)).to_string()}"

    def _repr_html_(self) -> str:
        html = _rounded(self.table.head(MOST_SHOWN)).to_html(escape=True, border=0)
        more = f"<p>The first {MOST_SHOWN} labels are shown.</p>" if len(self.table) > MOST_SHOWN else ""
        return f"<p>{escape(self.summary())}</p>{html}{more}"


def _rounded(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with numbers as short texts."""
    return table.map(lambda value: f"{value:.3g}" if isinstance(value, float) else value)


def judged(found: list[dict[str, Any]], null: Null, noise: float, level: float, effect: float) -> pd.DataFrame:
    """Return the table with q-values, detectable shifts and verdicts, the most significant label first."""
    import pandas as pd

    table = pd.DataFrame(found).set_index("label")
    tested = table["p_value"].notna()
    if tested.any():
        table.loc[tested, "q_value"] = false_discovery_control(table.loc[tested, "p_value"])
    hits = table["q_value"] < level
    # The p-value at which one more label would stand out.
    limit = level * min(hits.sum() + 1, len(table)) / len(table)
    sizes = zip(table["size"], table["scale"], strict=True)
    table["detectable"] = [null.detectable(size, scale, noise, limit) if size else np.inf for size, scale in sizes]
    table["verdict"] = np.where(hits, STANDS_OUT, np.where(table["detectable"] <= effect, NO_EVIDENCE, TOO_FEW))
    order = ["p_value", "statistic", "rows"]
    return table.sort_values(order, ascending=[True, False, False], kind="stable")[list(COLUMNS)]


def plot_screen(table: Any, ax: Any = None, *, most: int = MOST_SHOWN) -> Any:
    """Which labels stand out, and by how much?

    Parameters
    ----------
    table : Screen or pandas.DataFrame
        The result of `standout.screen`, or its table.
    ax : matplotlib Axes, default=None
        Where to draw; None makes new ones.
    most : int, default=30
        Number of labels, the most significant first.

    Returns
    -------
    matplotlib Axes
    """
    from standout.plots import _axes

    shown = getattr(table, "table", table).head(most).iloc[::-1]
    ax = _axes(ax)
    for verdict, colour in COLOURS.items():
        chosen = np.flatnonzero((shown["verdict"] == verdict).to_numpy())
        if len(chosen):
            part = shown.iloc[chosen]
            style = {"fmt": "o", "color": colour, "markersize": 4, "label": verdict}
            ax.errorbar(part["ratio"], chosen, xerr=part["ratio_error"], **style)
    ax.axvline(1, color="0.7", linewidth=1, zorder=0)
    ax.set_yticks(range(len(shown)), [str(name) for name in shown.index])
    ax.set_xscale("log")
    ax.set_xlabel("ratio to the controls")
    ax.legend(loc="lower right")
    return ax
