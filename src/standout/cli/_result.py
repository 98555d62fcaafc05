"""What a fit found -> the files of its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from standout import save
from standout._arrays import Array
from standout._messages import require_extra
from standout.cli._data import Datasets
from standout.cli._display import Display
from standout.cli._folder import MARK
from standout.cli._text import printable
from standout.io import Table, write_csv
from standout.report import Findings, draw, page, store, summary


def require_packages() -> None:
    """Refuse to begin what could not be brought to an end."""
    for package, extra, purpose in (
        ("skops", "models", "saving the model"),
        ("bokeh", "report", "the report"),
        ("matplotlib", "plots", "the picture"),
    ):
        require_extra(package, extra, purpose)


def write_result(
    folder: Path,
    model: Any,
    datasets: Datasets,
    scores: list[Array],
    findings: Findings,
    options: dict[str, Any],
    display: Display,
) -> None:
    """Write scores, loadings, the model, the report and the summary."""
    display.stage("writing scores and loadings")
    _write_scores(folder / "scores.csv", datasets, scores)
    _write_loadings(folder / "loadings.csv", findings)
    # One file for new rows: what was done to the data goes with the model.
    model.preprocessing_ = json.dumps(datasets.prepared.preprocessing.to_dict())
    save(model, folder / "model.skops")
    display.stage("writing the report")
    store(findings, folder)
    write_page(findings, folder)
    display.done()
    found = {**summary(findings), "options": _plain(options), "seconds": _rounded(display.seconds)}
    (folder / MARK).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_page(findings: Findings, folder: Path) -> None:
    """Write the page and the picture."""
    (folder / "report.html").write_text(page(findings), encoding="utf-8")
    draw(findings, folder / "figure.png")


def score_columns(table: Table, scores: Any) -> dict[str, Any]:
    """Give ids and scores of one dataset as columns; rows without names are called by their numbers."""
    ids = np.arange(len(scores)) if table.ids is None else table.ids
    return {"id": ids, **{f"component_{k + 1}": column for k, column in enumerate(scores.T)}}


def _write_scores(path: Path, datasets: Datasets, scores: list[Array]) -> None:
    """Write the scores of all rows of the datasets that were fitted: PCA has those of the target only."""
    tables = datasets.tables[: len(scores)]
    counts = [len(part) for part in scores]
    parts = [score_columns(table, part) for table, part in zip(tables, scores, strict=True)]
    if any(part["id"].dtype == object for part in parts):
        for part in parts:
            part["id"] = part["id"].astype(str).astype(object)
    columns: dict[str, Any] = {"dataset": np.repeat(np.array(datasets.names[: len(scores)], dtype=object), counts)}
    for name in list(parts[0]):
        columns[name] = np.concatenate([part.pop(name) for part in parts])
        if name == "id" and any(table.labels is not None for table in tables):
            columns["label"] = np.concatenate([_labels(table, n) for table, n in zip(tables, counts, strict=True)])
    write_csv(path, columns)


def _labels(table: Table, count: int) -> Any:
    return np.full(count, "", dtype=object) if table.labels is None else table.labels


def _write_loadings(path: Path, findings: Findings) -> None:
    """Write what each column has to do with each component."""
    columns: dict[str, Any] = {"feature": np.array(findings.features, dtype=object)}
    parts = {"filter": findings.components, "pattern": findings.patterns, "correlation": findings.correlations}
    for k in range(len(findings.eigenvalues)):
        for name, rows in parts.items():
            if rows is not None and k < len(rows):
                columns[f"{name}_{k + 1}"] = rows[k]
    write_csv(path, columns)


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Give options as JSON knows them; names of files can hold what is no text."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [plain(part) for part in value]
        return printable(value) if isinstance(value, str) else value

    return {name: plain(value) for name, value in sorted(options.items())}


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {printable(stage): round(taken, 3) for stage, taken in seconds.items()}
