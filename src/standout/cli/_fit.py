"""``standout fit``: files in, a folder with the answer out."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import standout
from standout import make_pipeline, save
from standout._messages import CautionWarning, FindingWarning, Message, require_extra
from standout.cli._app import OPTIONS
from standout.cli._data import Datasets, open_datasets
from standout.cli._display import Display, capitalised, loading, printable, shortened
from standout.cli._folder import MARK, check_output_folder, folder_as_a_whole
from standout.cli._options import COMPARING, METHODS, PARAMETERS
from standout.estimators import fitted_test
from standout.io import csv_writer, write_csv
from standout.persistence import quick_saving
from standout.report import Findings, draw, examine, number, p_value, page, store, summary
from standout.sources import Batch

ESTIMATORS = {
    "dpca": "DiscriminativePCA",
    "pca": "DiscriminativePCA",
    "cpca": "ContrastivePCA",
    "kdpca": "KernelDiscriminativePCA",
    "kpca": "KernelDiscriminativePCA",
    "kcpca": "KernelContrastivePCA",
}
# Columns, or coordinates of a kernel, up to which permutations take no more than some seconds.
MOST_PERMUTED = 300
# Columns that are named for a component in the terminal.
MOST_FEATURES = 4


def fit_files(options: dict[str, Any], command: str) -> None:
    """Fit what the options ask for, and write the folder; the report says by which command it was made."""
    require_packages()
    display = Display(quiet=options["quiet"])
    final = check_output_folder(options["output"], options["overwrite"])
    model = make_estimator(options)
    with display.working():
        datasets = open_datasets(options, display)
        made = {"command": printable(command), "date": date.today().isoformat()}
        datasets = replace(datasets, asked={**datasets.asked, **made})
        findings = fit_and_write(model, datasets, final, options, display)
    show_result(findings, final, display)


def fit_and_write(
    model: Any,
    datasets: Datasets,
    final: Path,
    options: dict[str, Any],
    display: Display,
    further: Callable[[Path], None] = lambda folder: None,
) -> Findings:
    """Fit a model, and write the folder with all that was found and what else a function writes there."""
    said = fit_model(model, datasets, options, display)
    with folder_as_a_whole(final, overwrite=options["overwrite"]) as draft:
        with csv_writer(draft / "scores.csv", spreadsheet=options["spreadsheet"]) as writer:
            scores = ScoreFile(writer, datasets)
            findings = examine_model(model, datasets, options, display, notes=said, on_scores=scores)
        # What is left to do needs packages that are large, but not the data.
        datasets.parts.clear()
        display.stage("writing the report")
        _write_loadings(draft / "loadings.csv", findings, spreadsheet=options["spreadsheet"])
        # One file for new rows: what was done to the data goes with the model.
        with loading(), quick_saving():
            save(model if datasets.step is None else make_pipeline(datasets.step, model), draft / "model.skops")
        store(findings, draft)
        with loading():
            write_page(findings, draft)
        further(draft)
        display.done()
        found = {**summary(findings, OPTIONS), "options": _plain(options), "seconds": _rounded(display.seconds)}
        # Phrased before the folder is put in place: nothing that can fail comes after that.
        result_table(found)
        (draft / MARK).write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return findings


def require_packages() -> None:
    """Refuse at the start what could not be brought to an end."""
    for package, extra, purpose in (
        ("skops", "models", "saving the model"),
        ("bokeh", "report", "the report"),
        ("matplotlib", "plots", "the picture"),
    ):
        require_extra(package, extra, purpose)


# --- fitting ----------------------------------------------------------------------------------------------------------


def make_estimator(options: dict[str, Any]) -> Any:
    """Make the estimator that the options ask for."""
    method = options["method"]
    parameters = {one.name: options[one.name] for one in PARAMETERS if method in one.methods}
    if method != "dpca":
        # Other methods are tested after the fit.
        parameters.pop("test", None)
    if "kernel" in parameters and options["bandwidth"] is not None:
        parameters |= {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
    if isinstance(parameters.get("alpha"), tuple | list):
        # Of a short list, each view is looked at.
        parameters["n_representatives"] = min(4, len(parameters["alpha"]))
    return getattr(standout, ESTIMATORS[method])(**parameters)


def fit_model(model: Any, datasets: Datasets, options: dict[str, Any], display: Display) -> list[Message]:
    """Fit a model, and give what it warned of."""
    target, *backgrounds = datasets.parts[: _n_fitted(datasets, options)]
    steps = ["moments", *_searched(model, against=bool(backgrounds)), "solving"]
    display.stage(f"fitting {METHODS[options['method']]}: {', '.join(steps)}")
    with collected_warnings() as said, _with_bar(model, datasets, display):
        model.fit(target, background=backgrounds or None, **datasets.facts(1 + len(backgrounds)))
    return said


def examine_model(
    model: Any,
    datasets: Datasets,
    options: dict[str, Any],
    display: Display,
    *,
    notes: Iterable[Message] = (),
    with_path: bool = True,
    on_scores: Callable[[int, Batch, Any, Any], None] | None = None,
) -> Findings:
    """Look at what a model has found in the data, and compute the scores of all rows."""
    n_fitted = _n_fitted(datasets, options)
    target, *backgrounds = datasets.parts[:n_fitted]
    display.stage("scores, PCA for comparison, p-values, other choices")
    test: Any = False if options["test"] is None else None
    if _is_permuted(model, datasets, options):
        # A kernel or contrastive method: discriminative PCA tests itself. Rows that are read in parts are refused.
        test = fitted_test(
            model,
            getattr(target, "values", target),
            [getattr(part, "values", part) for part in backgrounds],
            n_components=model.n_components_,
            random_state=options["random_state"],
            **datasets.facts(n_fitted),
        )
    with display.making_room() if datasets.streamed and display.moves else nullcontext():
        findings = examine(
            model,
            target,
            backgrounds or None,
            features=datasets.columns,
            label_name=datasets.label_name,
            image_shape=options.get("image_shape"),
            title=None if options.get("title") is None else printable(options["title"]),
            target_name=datasets.names[0],
            background_names=datasets.names[1:n_fitted],
            asked=datasets.asked,
            notes=[*datasets.notes, *_remarks(options), *notes],
            test=test,
            with_path=with_path,
            on_scores=on_scores,
        )
    untested = findings.test is None and options["test"] == "auto" and _is_tested_apart(options)
    choices = (*findings.choices, _untested(datasets)) if untested else findings.choices
    code = f"{datasets.code}\n{findings.code}" if datasets.code else findings.code
    # How many rows were left out is known for certain only now that all have been read.
    return replace(findings, code=code, choices=choices, cautions=(*datasets.dropped(), *findings.cautions))


def _is_permuted(model: Any, datasets: Datasets, options: dict[str, Any]) -> bool:
    """Tell whether a method without a test of its own is tested: where asked to, or where that is quick."""
    if not _is_tested_apart(options) or options["test"] in (None, "analytic"):
        return False
    size = model.feature_map_.n_coordinates if options["method"] != "cpca" else model.n_features_in_
    return options["test"] == "permutation" or (size <= MOST_PERMUTED and not datasets.streamed)


def _untested(datasets: Datasets) -> Message:
    """Say why a method that is tested by permutation was not."""
    if datasets.streamed:
        problem, advice = "rows that are read in parts are not permuted", "Use {p.in_memory} if they fit into memory."
    else:
        problem, advice = "permutations take long here", "Ask for them with {p.test:permutation}."
    return Message("p-values: none, because " + problem, advice=advice, kind="test")


def _is_tested_apart(options: dict[str, Any]) -> bool:
    """Tell whether the method compares, but has no test of its own."""
    return options["method"] in COMPARING and options["method"] != "dpca"


def _n_fitted(datasets: Datasets, options: dict[str, Any]) -> int:
    """Count the datasets that go into the fit: PCA is fitted to the target alone."""
    return len(datasets.names) if options["method"] in COMPARING else 1


def _remarks(options: dict[str, Any]) -> list[Message]:
    if options["method"] in COMPARING or not (options["background"] or options["group_column"]):
        return []
    return [Message("PCA does not use the backgrounds", kind="unused backgrounds")]


@contextmanager
def _with_bar(model: Any, datasets: Datasets, display: Display) -> Iterator[None]:
    """Let the fit show progress bars of its own, on a terminal: for permutations, and for files that are streamed."""
    permutes = _permutes(model)
    if not display.moves or not (permutes or datasets.streamed):
        yield
        return
    with display.making_room():
        if not permutes:
            yield
            return
        model.set_params(verbose=True)
        yield
        model.set_params(verbose=False)


def _permutes(model: Any) -> bool:
    return getattr(model, "test", None) in ("auto", "permutation") or model.n_components == "auto"


def _searched(model: Any, *, against: bool) -> list[str]:
    """Name what the fit has to choose, and whether it tests the components."""
    found = []
    if against:
        found = ["weights"] if isinstance(model.background_weights, str) else []
        given = {name: getattr(model, name, None) for name in ("shrinkage", "epsilon", "alpha")}
        found += [name for name, value in given.items() if isinstance(value, str)]
    return [*found, *(["test of the components"] if _permutes(model) else [])]


@contextmanager
def collected_warnings() -> Iterator[list[Message]]:
    """Collect what users are warned of, each once; complete when the block ends.

    Warnings on what a fit has found are left out: the report says the same from its own figures.
    """
    messages: list[Message] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    told: dict[str, Message] = {}
    for warning in caught:
        given = warning.message
        if isinstance(given, CautionWarning) and not isinstance(given, FindingWarning):
            told.setdefault(str(given), given.message)
        elif type(given) is UserWarning:
            told.setdefault(str(given), Message("{text}", text=str(given).rstrip(".")))
    messages.extend(told.values())


# --- the files of the folder ------------------------------------------------------------------------------------------


class ScoreFile:
    """Writes the scores of all rows of the fitted datasets, batch by batch."""

    def __init__(self, writer: Any, datasets: Datasets) -> None:
        self._writer, self._names = writer, datasets.names
        self._ids_are_words, self._labelled = datasets.has("ids"), datasets.has("labels")

    def __call__(self, number: int, batch: Batch, scores: Any, held_out: Any) -> None:
        """Write the rows of a batch."""
        columns: dict[str, Any] = {"dataset": np.full(batch.n_rows, self._names[number], dtype=object)}
        columns |= score_columns(batch, scores, as_words=self._ids_are_words, labelled=self._labelled)
        if batch.weights is not None:
            columns["weight"] = np.asarray(batch.weights, np.float64)
        if held_out is not None:
            columns |= {f"held_out_{k + 1}": np.asarray(column, np.float64) for k, column in enumerate(held_out.T)}
        self._writer.append(columns)


def score_columns(batch: Batch, scores: Any, *, as_words: bool = False, labelled: bool = False) -> dict[str, Any]:
    """Give ids, labels and scores of a batch as columns; rows without names have their numbers as ids."""
    ids = np.arange(batch.start, batch.start + batch.n_rows) if batch.ids is None else batch.ids
    if as_words and ids.dtype != object:
        ids = ids.astype(str).astype(object)
    columns: dict[str, Any] = {"id": ids}
    if labelled:
        columns["label"] = np.full(batch.n_rows, "", dtype=object) if batch.labels is None else batch.labels
    # In double precision for every dataset: a file has one type for a column.
    return columns | {f"component_{k + 1}": np.asarray(column, np.float64) for k, column in enumerate(scores.T)}


def _write_loadings(path: Path, findings: Findings, *, spreadsheet: bool) -> None:
    """Write the filter, the pattern and the correlation with its standard error of each column, for each component."""
    columns: dict[str, Any] = {"feature": np.array(findings.features, dtype=object)}
    parts = {"filter": findings.components, "pattern": findings.patterns, "correlation": findings.correlations}
    parts["correlation_error"] = findings.correlation_errors
    for k in range(len(findings.eigenvalues)):
        for name, rows in parts.items():
            if rows is not None and k < len(rows):
                columns[f"{name}_{k + 1}"] = rows[k]
    write_csv(path, columns, spreadsheet=spreadsheet)


def write_page(findings: Findings, folder: Path) -> None:
    """Write the page and the picture."""
    (folder / "report.html").write_text(page(findings, OPTIONS), encoding="utf-8")
    draw(findings, folder / "figure.png")


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Give options as JSON has them; names of files can hold bytes that are no text."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [plain(part) for part in value]
        return printable(value) if isinstance(value, str) else value

    return {name: plain(value) for name, value in sorted(options.items())}


def _rounded(seconds: dict[str, float]) -> dict[str, float]:
    return {printable(stage): round(taken, 3) for stage, taken in seconds.items()}


# --- the result in the terminal ---------------------------------------------------------------------------------------


def show_result(findings: Findings, final: Path, display: Display) -> None:
    """Print what was found, how it was chosen, what to be careful about, and where the report is."""
    found = summary(findings, OPTIONS)
    display.say(found["headline"])
    display.say()
    head = ["component", ratio_heading(found), "p-value", "columns that follow it"]
    display.table(head, result_table(found))
    display.say()
    if found["grouping"] is not None:
        display.say(f"- {found['grouping']}")
    for sentence in found["choices"]:
        display.say(f"- {sentence}")
    show_warnings(found["warnings"], display)
    display.say(f"Report: {final / 'report.html'}")


def show_warnings(sentences: Iterable[str], display: Display) -> None:
    """Print what to be careful about."""
    for sentence in sentences:
        display.say(f"! {capitalised(sentence)}")


def leading_columns(component: dict[str, Any]) -> str:
    """Name the columns that follow a component most closely."""
    return ", ".join(shortened(feature["name"]) for feature in component["features"][:MOST_FEATURES]) or "-"


def ratio_heading(found: dict[str, Any]) -> str:
    """Name the strength of components: a ratio on rows that were held out or on those of the fit, or PCA's variance."""
    if found["components"][0]["ratio"] is None:
        return "variance"
    return "ratio" if found["held_out"] else "ratio in the fitted rows"


def strength(component: dict[str, Any]) -> str:
    """Show the ratio of a component with its standard error, or its variance; either may be infinite."""
    value = component["eigenvalue"] if component["ratio"] is None else component["ratio"]
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    error = component["ratio_error"]
    return number(value) if error is None else f"{number(value)} ± {number(error, 2)}"


def result_table(found: dict[str, Any]) -> list[list[str]]:
    """Give a line of words for each component."""
    return [_row(component) for component in found["components"]]


def _row(component: dict[str, Any]) -> list[str]:
    chance = component["p_value"]
    shown = "-" if chance is None else p_value(chance)
    return [str(component["component"]), strength(component), shown, leading_columns(component)]
