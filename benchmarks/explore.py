"""How long an exploration takes from a lasso, or a step of a slider, to its new answer, on the side of the server.

``python benchmarks/explore.py`` on an idle machine with two cores; ``--quick`` for tiny shapes. Every lasso is another
one, of about a tenth of the rows, and is compared with all other rows: no sum is known from before.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import standout
from standout.explorer import Engine, Explored, Groups
from standout.explorer._page import Page, Setting

# Rows, columns, and the most milliseconds from a lasso to its answer.
SHAPES = ((100_000, 100, 100.0), (1_000_000, 50, 400.0))
SLIDER_STEP = 30.0


def draw(n_rows: int, n_columns: int) -> Explored:
    """Draw rows with five clusters along two of ten factors."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(n_rows, 10))
    centres = 4.0 * rng.normal(size=(5, 2))
    codes = rng.integers(0, 5, n_rows)
    factors[:, :2] += centres[codes]
    values = rng.normal(size=(n_rows, n_columns)) + factors @ rng.normal(size=(10, n_columns))
    columns = [f"x{column}" for column in range(n_columns)]
    return Explored(columns, Groups(tuple("abcde"), codes), values)


def polygon(scores: Any, rng: np.random.Generator) -> list[list[float]]:
    """Draw a lasso of 40 corners around about a tenth of the points."""
    centre = scores[rng.integers(len(scores))]
    spread = scores.std(axis=0)
    far = np.sqrt(np.sum(((scores - centre) / spread) ** 2, axis=1))
    radius = np.quantile(far, 0.1)
    angles = np.linspace(0.0, 2 * np.pi, 40, endpoint=False)
    return (centre + radius * spread * np.stack([np.cos(angles), np.sin(angles)], axis=1)).tolist()


def until(page: Page, message: dict[str, Any], wanted: Callable[[dict[str, Any]], bool]) -> tuple[float, float]:
    """Give the seconds, and those of the processor, until a wanted reply; all others are waited for as well."""
    found, start, start_cpu = None, perf_counter(), process_time()
    for reply in page.replies(message):
        if reply["kind"] == "problem":
            raise RuntimeError(reply["text"])
        if found is None and wanted(reply):
            found = perf_counter() - start, process_time() - start_cpu
    assert found is not None
    return found


def first_answer(reply: dict[str, Any]) -> bool:
    """Tell whether a reply is the answer, with or without its held-out ratio."""
    return bool(reply["kind"] == "answer")


def sure_answer(reply: dict[str, Any]) -> bool:
    """Tell whether a reply is the answer with its held-out ratio."""
    return bool(reply["kind"] == "answer" and reply["sure"])


def moved(reply: dict[str, Any]) -> bool:
    """Tell whether a reply moves the picture."""
    return bool(reply["kind"] == "points")


def measure(n_rows: int, n_columns: int, limit: float, repeats: int) -> int:
    """Print the medians of one shape; give the number of bounds that are missed."""
    data = draw(n_rows, n_columns)
    page = Page(Setting(Engine(data), [], lambda history, folder: Path(folder)))
    list(page.replies({"do": "hello"}))
    rng = np.random.default_rng(1)
    lassos, sure, previews, sliders = [], [], [], []
    for number in range(repeats):
        state = page.history.state
        drawn = page._engine.scores(state.pictured)
        for kind, found in (("preview", previews), ("step", lassos)):
            step = {"do": "lasso", "side": "target", "how": "set", "polygon": polygon(drawn, rng)}
            found.append(until(page, {"do": kind, "step": step}, first_answer))
        step = {
            "do": "lasso",
            "side": "target",
            "how": "set",
            "polygon": polygon(page._engine.scores(page.history.state.pictured), rng),
        }
        sure.append(until(page, {"do": "step", "step": step}, sure_answer))
        step = {"do": "set", "name": "shrinkage", "value": round(0.01 + 0.9 * number / repeats, 4)}
        sliders.append(until(page, {"do": "preview", "step": step}, moved))
    missed = 0
    rows = (
        ("lasso to its answer", lassos, limit),
        ("lasso that is being drawn", previews, limit),
        ("lasso to its held-out ratio", sure, None),
        ("step of a slider, with the picture", sliders, SLIDER_STEP),
    )
    for words, times, most in rows:
        wall, cpu = (1000 * float(np.median(column)) for column in zip(*times, strict=True))
        verdict = "" if most is None else "met" if wall <= most else "MISSED"
        missed += verdict == "MISSED"
        allowed = "" if most is None else f"{most:.0f}"
        print(f"{n_rows:>9,} x {n_columns:<4} {words:<36} {wall:>8.1f} {cpu:>8.1f} {allowed:>8} {verdict}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny shapes: does the script work?")
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"standout {standout.__version__}, NumPy {np.__version__}, {cores} cores; medians in milliseconds")
    print(f"{'rows x columns':<16} {'':<36} {'wall':>8} {'cpu':>8} {'allowed':>8}")
    missed = 0
    # As the server does: sums are taken by several threads, and the problems are small.
    threadpool_limits(1, user_api="blas")
    for n_rows, n_columns, limit in SHAPES:
        size = (n_rows // 100, n_columns // 5) if options.quick else (n_rows, n_columns)
        missed += measure(*size, limit, 3 if options.quick else options.repeats)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
