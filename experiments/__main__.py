"""Run the paper's experiments: ``python -m experiments [NAME ...|all]``; ``--help`` names the options."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from experiments import EXPERIMENTS
from experiments._blocks import as_html, as_markdown
from experiments._figure import picture
from experiments._record import Experiment, Record, Status, Verdict
from experiments._report import TITLE, as_json, missing, report, summary
from experiments._run import run

BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, without the usage."""
        _say(f"{message}. See python -m experiments --help")
        sys.exit(BAD_INPUT)


def main(arguments: list[str] | None = None) -> int:
    """Run the experiments that are named, write what they found, and say how it went."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        _list()
        return 0
    chosen = _chosen(parser, options.names)
    if options.seeds < 1:
        parser.error(f"--seeds is {options.seeds}, but at least one is needed")
    if options.data is not None and not options.data.is_dir() and not options.download:
        parser.error(f"there is no folder {str(options.data)!r} to read data from")
    if options.summary is not None and not options.summary.parent.is_dir():
        parser.error(f"there is no folder {str(options.summary.parent)!r} to write the summary to")
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("pictures need matplotlib; install it with: pip install matplotlib")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        return _run(chosen, options)
    except BrokenPipeError:
        # The reader of the lines has gone. Python would complain once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        parser.error(f"cannot write to {str(options.output)!r} ({error.strerror})")
    except KeyboardInterrupt:
        _say("interrupted; what was finished is kept, without a report")
        return 130


def _run(chosen: list[Experiment], options: argparse.Namespace) -> int:
    """Run experiments one by one, and write the record and the picture of each before the next one begins."""
    output, seeds = options.output, range(options.seeds)
    records: list[Record] = []
    pictures: dict[str, bytes] = {}
    with _progress(sum(experiment.n_steps(len(seeds)) for experiment in chosen)) as shown:
        for experiment in chosen:
            shown.start(experiment.name, experiment.n_steps(len(seeds)))
            outcome = run(experiment, options.data, seeds, shown.step, download=options.download)
            records.append(outcome.record)
            if outcome.panels:
                file = f"{experiment.name}.png"
                pictures[file] = picture(f"{experiment.title} ({experiment.paper})", outcome.panels)
                _write(output / file, pictures[file])
            _write(output / f"{experiment.name}.json", as_json(outcome.record))
            shown.done(_in_one_line(outcome.record))
            if outcome.record.status is not Status.DONE:
                _say(f"{experiment.name}: {outcome.record.status}. {outcome.record.problem}.")
    blocks = report(records)
    _write(output / "reproduction.md", as_markdown(blocks))
    _write(output / "reproduction.html", as_html(TITLE, blocks, pictures))
    print(f"Report: {output / 'reproduction.md'} and {output / 'reproduction.html'}")
    if options.summary is not None:
        _write_summary(options.summary, records)
    return _exit_code(records)


def _in_one_line(record: Record) -> str:
    if record.status is not Status.DONE:
        return f"{record.name}: not run, {record.status}"
    counts = Counter(finding.verdict for finding in record.findings if not finding.beyond)
    verdicts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict])
    return f"{record.name}: {verdicts} ({record.seconds:.0f} s)"


def _write_summary(path: Path, records: list[Record]) -> None:
    """Write the summary only if it is complete: a page quotes it."""
    if lacking := missing(records, list(EXPERIMENTS)):
        _say(f"{path} is left as it was: not run on the paper's data are {', '.join(lacking)}")
        return
    _write(path, summary(records))
    print(f"Summary: {path}")


def _write(path: Path, content: bytes | str) -> None:
    """Write a file under another name first, so that it is complete when it appears."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    temporary.replace(path)


def _exit_code(records: list[Record]) -> int:
    """Return 0 if all that has data was run, 2 if data are unusable or nothing could be run, 1 after a bug."""
    statuses = {record.status for record in records}
    if Status.FAILED in statuses:
        return 1
    return BAD_INPUT if Status.UNUSABLE in statuses or Status.DONE not in statuses else 0


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m experiments",
        description="Run the paper's experiments; write pictures, records, and a report with a verdict on every claim.",
        epilog="Run it from the root of the repository. --list names the experiments and the files they need.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run, or all (default: all)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data (default: that in STANDOUT_DATA)")
    parser.add_argument(
        "--download", action="store_true", help="download missing data into DIR, or else into the user's cache folder"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="OUT",
        default=Path("reproduction"),
        help="folder to write to (%(default)s)",
    )
    parser.add_argument("--seeds", type=int, metavar="N", default=5, help="runs with different seeds (%(default)s)")
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE",
        help="also write verdicts and errors to FILE, if all experiments were run on the paper's data",
    )
    parser.add_argument("--list", action="store_true", help="name the experiments and stop")
    return parser


def _chosen(parser: _Parser, names: list[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)} and all")
    if not names or "all" in names:
        return list(EXPERIMENTS.values())
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def _list() -> None:
    for experiment in EXPERIMENTS.values():
        files = ", ".join(experiment.files) or "no files"
        print(f"{experiment.name:<16} {experiment.paper:<24} {experiment.title} ({files})")


def _say(line: str) -> None:
    print("experiments: " + " ".join(line.split()), file=sys.stderr)


class _Lines:
    """Progress where there is no terminal: a line when an experiment is done."""

    def start(self, name: str, n_steps: int) -> None:
        """Begin an experiment of so many steps."""

    def step(self, what: str) -> None:
        """Say what the next step is."""

    def done(self, line: str) -> None:
        """End an experiment."""
        print(line, flush=True)


class _Bar(_Lines):
    """Progress on a terminal: a bar over all steps of all experiments."""

    def __init__(self, bar: Any, n_steps: int) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=n_steps)
        self._finished = 0
        self._current = 0

    def start(self, name: str, n_steps: int) -> None:
        """Begin an experiment of so many steps."""
        self._current = n_steps
        self._bar.update(self._task, description=name, completed=self._finished)

    def step(self, what: str) -> None:
        """Say what the next step is."""
        self._bar.update(self._task, description=what, advance=1)

    def done(self, line: str) -> None:
        """End an experiment, whether or not all of its steps were taken."""
        self._finished += self._current
        self._bar.update(self._task, completed=self._finished)
        self._bar.console.print(line, highlight=False, markup=False)


@contextmanager
def _progress(n_steps: int) -> Iterator[_Lines]:
    """Show progress in the way that suits the place where it is shown."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield _Lines()
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        yield _Bar(bar, n_steps)


if __name__ == "__main__":
    sys.exit(main())
