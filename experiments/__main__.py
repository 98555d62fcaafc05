"""Run the paper's experiments: ``python -m experiments [NAME ...|all]``; ``--help`` names the options."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections import Counter
from pathlib import Path
from typing import NoReturn

from experiments import EXPERIMENTS
from experiments._blocks import as_html, as_markdown
from experiments._figure import picture
from experiments._output import as_json, write
from experiments._progress import Progress, progress
from experiments._record import Experiment, Record, Status, Verdict
from experiments._report import TITLE, report
from experiments._run import run
from experiments._summary import missing, summary

BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line; the usage is a --help away."""
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
    if options.data is not None and not options.data.is_dir():
        parser.error(f"there is no folder {str(options.data)!r} to read data from")
    if options.summary is not None and not options.summary.parent.is_dir():
        parser.error(f"there is no folder {str(options.summary.parent)!r} to write the summary to")
    if importlib.util.find_spec("matplotlib") is None:
        parser.error("pictures need matplotlib; install it with: pip install matplotlib")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        return _run(chosen, options.data, options.output, range(options.seeds), options.summary)
    except BrokenPipeError:
        # Whoever was reading the lines has gone; Python would complain once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        parser.error(f"cannot write to {str(options.output)!r} ({error.strerror})")
    except KeyboardInterrupt:
        _say("interrupted; what was finished is kept, without a report")
        return 130


def _run(chosen: list[Experiment], data: Path | None, output: Path, seeds: range, short: Path | None) -> int:
    records: list[Record] = []
    pictures: dict[str, bytes] = {}
    with progress(sum(experiment.n_steps(len(seeds)) for experiment in chosen)) as shown:
        for experiment in chosen:
            shown.start(experiment.name, experiment.n_steps(len(seeds)))
            records.append(_run_one(experiment, data, output, seeds, pictures, shown))
    blocks = report(records)
    write(output / "reproduction.md", as_markdown(blocks))
    write(output / "reproduction.html", as_html(TITLE, blocks, pictures))
    print(f"Report: {output / 'reproduction.md'} and {output / 'reproduction.html'}")
    if short is not None:
        _write_summary(short, records)
    return _exit_code(records)


def _write_summary(path: Path, records: list[Record]) -> None:
    """Write it if it is about everything: a page quotes it, and should not lose what was not run today."""
    if lacking := missing(records, list(EXPERIMENTS)):
        _say(f"{path} is left as it was: not run on the paper's data are {', '.join(lacking)}")
        return
    write(path, summary(records))
    print(f"Summary: {path}")


def _run_one(
    experiment: Experiment, data: Path | None, output: Path, seeds: range, pictures: dict[str, bytes], shown: Progress
) -> Record:
    """Run one experiment, and write its record and picture before the next one begins."""
    outcome = run(experiment, data, seeds, shown.step)
    record = outcome.record
    if outcome.panels:
        file = f"{experiment.name}.png"
        pictures[file] = picture(f"{experiment.title} ({experiment.paper})", outcome.panels)
        write(output / file, pictures[file])
    write(output / f"{experiment.name}.json", as_json(record))
    if record.status == Status.DONE.value:
        counts = Counter(finding.verdict for finding in record.findings if not finding.beyond)
        verdicts = ", ".join(f"{counts[one.value]} {one.value}" for one in Verdict if counts[one.value])
        shown.done(f"{experiment.name}: {verdicts} ({record.seconds:.0f} s)")
    else:
        shown.done(f"{experiment.name}: not run, {record.status}")
        _say(f"{experiment.name}: {record.status}. {record.problem}.{_remedy(experiment, record)}")
    return record


def _remedy(experiment: Experiment, record: Record) -> str:
    if record.status != Status.MISSING.value:
        return ""
    return f" It needs {' and '.join(experiment.files)}: name their folder with --data or in STANDOUT_DATA."


def _exit_code(records: list[Record]) -> int:
    """Give 0 where all that has data was run, 2 where data are unusable or nothing could be run, 1 after a bug."""
    statuses = {record.status for record in records}
    if Status.FAILED.value in statuses:
        return 1
    return BAD_INPUT if Status.UNUSABLE.value in statuses or Status.DONE.value not in statuses else 0


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m experiments",
        description="Run the paper's experiments; write pictures, records, and a report with a verdict on every claim.",
        epilog="Run it from the root of the repository. --list names the experiments and the files they need.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="experiments to run, or all (default: all)")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the data (default: that in STANDOUT_DATA)")
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


if __name__ == "__main__":
    sys.exit(main())
