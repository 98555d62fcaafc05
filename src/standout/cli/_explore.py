"""``standout explore`` and ``standout.explore``: a page on which the question is chosen by hand."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from shlex import quote, split
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from standout._checks import as_backgrounds, as_rows, column_names
from standout._messages import InvalidValueError, require_extra
from standout.cli._app import command_line, fit
from standout.cli._data import Datasets, dataset_variables, groups_of, open_datasets
from standout.cli._demo import demo_datasets
from standout.cli._display import Display, printable
from standout.cli._fit import fit_and_write, require_packages
from standout.cli._folder import check_output_folder
from standout.cli._options import PARAMETERS, option_name
from standout.datasets import make_digits_over_photographs
from standout.explorer import Engine, Explored, Groups, History, Question, open_session, python, serve
from standout.io import Table
from standout.report import check_image_shape

if TYPE_CHECKING:
    from standout.explorer import Exploration

# What the page takes in place of the defaults of standout fit, which look at many values.
QUICK = {"shrinkage": "auto", "epsilon": "scaled"}
DEMO_CODE = """from standout.datasets import make_digits_over_photographs
from standout.sources import InMemory
images = make_digits_over_photographs()
target, background = InMemory(images.target), InMemory(images.backgrounds[0])"""
# Options of the page, which are no part of the question.
OF_THE_PAGE = ("session", "save", "port", "browser", "quiet")


def explore_files(options: dict[str, Any], given: Collection[str]) -> None:
    """Open the files, and the page; `given` names the options that were on the command line."""
    _require_packages()
    display = Display(quiet=options["quiet"])
    options |= {name: rule for name, rule in QUICK.items() if name not in given}
    if options["standardize"] == "background" and not (options["background"] or options["target"]):
        raise click.UsageError(
            "--standardize background needs a background. Give --background FILE, or --target GROUP."
        )
    with display.working():
        datasets = _opened(options, display)
        data = _explored(datasets, options["image_shape"])
        asked = _Asked(options, given, datasets)
        display.stage("summing up")
        engine, steps, session = _begun(data, asked)
    if options["save"] is not None:
        history = session or History(data.groups, steps)
        display.say(f"Report: {asked.saver(engine)(history, options['save'])}")
        return
    exploration = _served(engine, steps, session, asked, options["port"])
    display.say(f"Explore: {exploration.address}")
    display.say("Ctrl-C ends it.")
    if options["browser"]:
        webbrowser.open(exploration.address)
    exploration.wait()


def explore_data(
    X: Any,
    y: Any,
    background: Any,
    *,
    target: Any,
    features: Sequence[str] | None,
    ids: Sequence[Any] | None,
    labels: Sequence[Any] | None,
    method: str,
    image_shape: tuple[int, int] | None,
    session: str | Path | None,
    port: int,
    browser: bool,
    wait: bool | None,
    parameters: dict[str, Any],
) -> Exploration:
    """Open a page on rows in memory; see `standout.explore`."""
    _require_packages()
    rows = as_rows(X, "the data", min_rows=2, finite=True)
    others = [
        as_rows(part, f"background {k}", min_rows=2, finite=True)
        for k, part in enumerate(as_backgrounds(background, X), 1)
    ]
    columns = list(
        features or column_names(X) or getattr(X, "columns", None) or [f"x{k}" for k in range(rows.shape[1])]
    )
    names = ["target", *(["background"] if len(others) == 1 else [f"background {k + 1}" for k in range(len(others))])]
    tables = [Table(part, [str(name) for name in columns]) for part in (rows, *others)]
    tables[0] = replace(tables[0], ids=_as_words(ids), labels=_as_words(labels))
    datasets = Datasets(tables, names, tables[0].columns, {})
    data = _explored(datasets, image_shape)
    chosen: list[str] = []
    if y is not None:
        if others:
            raise InvalidValueError(
                "is for rows without backgrounds", parameter="y", advice="Leave {p.background} out."
            )
        data = replace(data, groups=Groups.of(list(y)))
        chosen = [] if target is None else [str(name) for name in np.atleast_1d(target)]
    elif others:
        chosen = ["target"]
    options = _defaults(method, parameters)
    options |= {"session": None if session is None else str(session), "image_shape": image_shape, "demo": False}
    asked = _Asked(options, (), datasets)
    exploration = _served(*_begun(data, asked, chosen, parameters), asked, port)
    print(f"Explore: {exploration.address}")
    if browser:
        webbrowser.open(exploration.address)
    if wait or (wait is None and not (hasattr(sys, "ps1") or "IPython" in sys.modules)):
        exploration.wait()
    return exploration


def _as_words(given: Sequence[Any] | None) -> Any:
    return None if given is None else np.asarray([str(word) for word in given], dtype=object)


def _require_packages() -> None:
    require_extra("tornado", "explore", "the page")
    require_packages()


def _defaults(method: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Give the options of a fit without any."""
    options: dict[str, Any] = dict(fit.make_context("fit", ["TARGET", "--output", "OUT"]).params)
    return {**options, **QUICK, "method": method, **{name: parameters[name] for name in parameters if name in options}}


# --- data -------------------------------------------------------------------------------------------------------------


def _opened(options: dict[str, Any], display: Display) -> Datasets:
    """Open files as ``standout fit`` does, each group as a dataset of its own."""
    if options["demo"]:
        display.stage("laying digits over photographs")
        images = make_digits_over_photographs()
        options["image_shape"] = images.image_shape
        return replace(demo_datasets(images), code=DEMO_CODE)
    wanted = dict(options)
    if options["group_column"] is not None:
        target = list(options["target"])
        if not target:
            present = groups_of(options)
            wanted["target"] = present[:1]
        elif len(target) > 1 and options["standardize"] != "background":
            # The groups of the target are datasets of their own, so that each can be chosen.
            wanted["target"] = target[:1]
            wanted["background_group"] = (
                (*target[1:], *options["background_group"]) if options["background_group"] else ()
            )
    return open_datasets(wanted, display)


def _explored(datasets: Datasets, image_shape: tuple[int, int] | None) -> Explored:
    known: dict[str, Any] = {}
    if image_shape is not None:
        known["image_shape"] = check_image_shape(image_shape, len(datasets.columns))
    if datasets.code:
        known["code"] = _code(datasets)
    if datasets.streamed:
        known["variables"] = dict(zip(datasets.names, dataset_variables(len(datasets.names)), strict=True))
    return Explored.of(datasets.parts, datasets.names, datasets.columns, **known)


def _code(datasets: Datasets) -> str:
    """Write in Python how all rows are put under one another."""
    if datasets.streamed:
        return datasets.code
    variables = dataset_variables(len(datasets.names))
    rows = (
        "part.rows()"
        if all(isinstance(part.values, np.ndarray) for part in datasets.parts)
        else "part.rows().toarray()"
    )
    return "\n".join(
        [
            datasets.code,
            f"parts = [{rows} for part in ({', '.join(variables)},)]",
            "X = np.concatenate(parts)",
            f"groups = np.repeat({datasets.names!r}, [len(part) for part in parts])",
        ]
    )


# --- the question of the options, and what is made of one -------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Asked:
    """What the options ask for.

    Attributes
    ----------
    options : dict
    given : collection of str
        Names of the options that were on the command line.
    datasets : Datasets
    """

    options: dict[str, Any]
    given: Collection[str]
    datasets: Datasets

    def steps(
        self, names: Sequence[str], chosen: Sequence[str] | None, parameters: dict[str, Any]
    ) -> list[dict[str, Any]]:
        """Give the steps that the options stand for; `names` are those of the groups."""
        options = self.options
        if chosen is None:
            chosen = [name for name in options["target"] if name in names]
            if not chosen and (options["target"] or options["background"] or options["demo"]):
                chosen = list(names[:1])
        steps: list[dict[str, Any]] = [{"do": "method", "method": options["method"]}]
        if chosen:
            steps.append({"do": "choose", "side": "target", "groups": list(chosen)})
            others = [name for name in names if name not in chosen]
            steps.append({"do": "choose", "side": "background", "groups": others} if others else {"do": "rest"})
        values = {one.name: options[one.name] for one in PARAMETERS if one.name not in ("test", "random_state")}
        defaults = {one.name: one.default for one in PARAMETERS}
        values = {name: value for name, value in values.items() if value != defaults[name]} | parameters
        if options["bandwidth"] is not None:
            values |= {"kernel": "gaussian", "kernel_params": {"bandwidth": options["bandwidth"]}}
        return [*steps, *({"do": "set", "name": name, "value": value} for name, value in values.items())]

    def command(self, history: History) -> str:
        """Give the command line that repeats an exploration: a fit where the sides are groups, else the session."""
        question = history.state.question
        if not self.given:
            return ""
        words = self._fitting(question)
        if words is None:
            typed = [name for name in self.given if name not in OF_THE_PAGE]
            words = ["explore", *self._words(typed), "--session", "session.json", "--save", "OUT"]
            return f"{_joined(words)}  # after saving the session"
        return _joined(["fit", *words, "--output", "OUT"])

    def _fitting(self, question: Question) -> list[str] | None:
        """Give the words of ``standout fit`` for a question; None if it has no such words."""
        sides = (question.target, *question.backgrounds)
        if self.options["demo"] or question.left_out is not None or any(side.rows is not None for side in sides):
            return None
        names = self.datasets.names
        others = [name for name in names if name not in question.target.groups]
        groups = [side.groups or tuple(others) for side in sides]
        if not question.backgrounds or any(len(some) != 1 for some in groups[1:]):
            return None
        chosen = ("data", "background", "target", "background_group", "method", *(one.name for one in PARAMETERS))
        typed = [name for name in self.given if name not in (*OF_THE_PAGE, *chosen)]
        if self.options["group_column"] is None:
            if len(groups[0]) != 1:
                return None
            paths = dict(zip(names, [self.options["data"], *self.options["background"]], strict=True))
            words = [paths[groups[0][0]], *(word for (name,) in groups[1:] for word in ("--background", paths[name]))]
        else:
            words = [self.options["data"], *(word for name in groups[0] for word in ("--target", name))]
            words += [word for (name,) in groups[1:] for word in ("--background-group", name)]
        settings = question.settings
        rules = {name: settings.get(name, default) for name, default in QUICK.items()}
        if question.method == "dpca":
            settings |= {"shrinkage": rules["shrinkage"]}
        if question.method == "kdpca":
            settings |= {"epsilon": rules["epsilon"]}
        known = {one.name for one in PARAMETERS}
        if set(settings) - known - {"kernel_params"}:
            return None
        words += self._words(typed)
        words += ["--method", question.method]
        for name, value in settings.items():
            words += (
                ["--bandwidth", str(dict(value)["bandwidth"])]
                if name == "kernel_params"
                else [option_name(name), _value(value)]
            )
        return words

    def _words(self, names: Collection[str]) -> list[str]:
        """Write options as they were given."""
        words: list[str] = []
        for name in sorted(names, key=lambda name: name != "data"):
            value = self.options[name]
            if name == "data":
                words.append(value)
            elif name == "in_memory":
                words.append("--in-memory" if value else "--stream")
            elif value is True:
                words.append(option_name(name))
            elif name == "where":
                words += [word for column, wanted in value for word in ("--where", f"{column}={wanted}")]
            elif name == "image_shape":
                words += ["--image-shape", "x".join(map(str, value))]
            elif isinstance(value, tuple):
                words += [word for one in value for word in (option_name(name), str(one))]
            else:
                words += [option_name(name), _value(value)]
        return words

    def saver(self, engine: Engine) -> Callable[[History, str], Path]:
        """Give the function that writes the result of an exploration, as ``standout fit`` does."""

        def save(history: History, folder: str) -> Path:
            question = history.state.question
            try:
                final = check_output_folder(folder, overwrite=False)
                model = engine.estimator(question)
                if question.method == "dpca" and question.compared:
                    model.set_params(test="auto")
                options = {**self.options, "method": question.method, "output": folder, "test": "auto"}
                options |= {"overwrite": False, "spreadsheet": False, "title": None}
                fit_and_write(model, self._parts(engine, history), final, options, Display(quiet=True))
            except click.ClickException as error:
                raise InvalidValueError("{text}", text=error.format_message().rstrip(".")) from None
            return final / "report.html"

        return save

    def _parts(self, engine: Engine, history: History) -> Datasets:
        """Give the sides of the question as datasets of a fit."""
        data, opened, question = engine.data, self.datasets, history.state.question
        names = [question.target.name, *(side.name for side in question.compared)]
        asked = {**opened.asked, "rows": "chosen on the page of standout explore", "date": date.today().isoformat()}
        if command := self.command(history):
            # Of absolute paths only the last part: a report may be sent to others.
            asked["command"] = printable(command_line(split(command.partition("  # ")[0])[1:]))
        code = python(history, data.code, data.variables, sides=True)
        made = replace(opened, names=names, columns=data.columns, asked=asked, code=code)
        if data.in_memory:
            tables: list[Any] = [_table(data, rows.mask) for rows in question.rows(data.groups)]
            return replace(made, parts=tables, scans=[])
        # Only whether there are ids and labels is asked of the scans.
        return replace(made, parts=list(engine.datasets(question)), scans=opened.scans[: len(names)])


def _table(data: Explored, mask: Any) -> Table:
    ids, labels = (None if words is None or not any(words[mask]) else words[mask] for words in (data.ids, data.labels))
    return Table(data.values[mask], data.columns, ids, labels)


def _begun(
    data: Explored, asked: _Asked, chosen: Sequence[str] | None = None, parameters: dict[str, Any] | None = None
) -> tuple[Engine, list[dict[str, Any]], History | None]:
    """Answer the first question: what cannot be answered is said before a page is opened."""
    engine, session = Engine(data), None
    if asked.options["session"] is not None:
        session = open_session(Path(asked.options["session"]).expanduser(), data.groups, data.columns)
    steps = asked.steps(data.groups.names, chosen, parameters or {})
    engine.answer((session or History(data.groups, steps)).state.question, held_out=False)
    return engine, steps, session


def _served(
    engine: Engine, steps: list[dict[str, Any]], session: History | None, asked: _Asked, port: int
) -> Exploration:
    return serve(engine, steps, save=asked.saver(engine), command=asked.command, session=session, port=port)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "none" if value is None else str(value)


def _joined(words: Sequence[str]) -> str:
    return " ".join(map(quote, ["standout", *words]))
