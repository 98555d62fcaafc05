"""From records to files: a report of what came out, what did not and why; JSON in full, and a summary of all."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import platform
from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments._blocks import Block, Bullets, Heading, Paragraph, Picture
from experiments._claims import ERROR_TOLERANCE, SCATTER_TOLERANCE, Finding
from experiments._record import SCATTER, MethodRun, Record, Status, Table, Verdict

# Digits of figures in the summary.
DIGITS = 6
# What a fit may choose by itself.
CHOSEN = ("α", "shrinkage", "epsilon")
TITLE = "Reproduction of the paper's tables and figures"
PAPER = (
    "The paper is J. Chen, G. Wang, G. B. Giannakis, Nonlinear Dimensionality Reduction for Discriminative Analytics "
    "of Multiple Datasets, IEEE Transactions on Signal Processing 67(3), 2019."
)


def report(records: Sequence[Record]) -> list[Block]:
    """Build the whole report."""
    blocks: list[Block] = [Heading(1, TITLE), Paragraph(PAPER), Paragraph(_method(records)), *_overview(records)]
    for record in records:
        blocks += _section(record)
    return blocks


def _method(records: Sequence[Record]) -> str:
    n_seeds = max(record.n_seeds for record in records)
    seeds = "one seed" if n_seeds == 1 else f"{n_seeds} seeds"
    return (
        f"Every figure is the mean ± standard deviation over {seeds} (no ± where all seeds agree). Parameters that the "
        "paper states are used as stated; where it is silent, the choice is written down. The clustering error is the "
        "share of rows that K-means, with as many clusters as there are groups, puts on the wrong side: with groups "
        "of equal size, 0.5 is chance. Verdicts are computed by the rule beside each claim; errors count as the same "
        f"within {ERROR_TOLERANCE}, scatter ratios within {SCATTER_TOLERANCE}. “Better” is said of the methods "
        "that the paper proposes, and never of those it compares them with. Lines that start with “+” are not the "
        "paper's claims: they say what another choice gives, mostly one of this library in place of the paper's "
        "formula."
    )


def _overview(records: Sequence[Record]) -> list[Block]:
    header = ("experiment", "in the paper", *Verdict, "other choices (+)")
    lines = [(f"{record.title} ({record.name})", record.paper, record.findings) for record in records]
    lines.append(("all", "", [finding for record in records for finding in record.findings]))
    rows = []
    for title, paper, findings in lines:
        counts = Counter(finding.verdict for finding in findings if not finding.beyond)
        beyond = [finding for finding in findings if finding.beyond]
        rows.append([title, paper, *(str(counts[verdict]) for verdict in Verdict), _verdicts(beyond)])
    blocks: list[Block] = [Heading(2, "In short"), Table("Claims of the paper, by verdict", header, rows)]
    absent = [
        f"{record.title} ({record.name}): {record.status}. {record.problem}."
        for record in records
        if record.status != Status.DONE
    ]
    if absent:
        blocks += [Heading(3, "What could not be run"), Bullets(absent)]
    failed = _failures(records)
    if failed:
        blocks.append(Table("What was not reproduced, and why", ("experiment", "claims", "as far as known"), failed))
    minutes = sum(record.seconds for record in records) / 60
    blocks.append(Paragraph(f"Made with {made_with()}, one thread, in {minutes:.1f} minutes."))
    return blocks


def made_with() -> str:
    """Name what figures depend on besides the data."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in ("standout", "numpy", "scipy", "scikit-learn")
    )
    return f"Python {platform.python_version()}, {versions} on {platform.system()} {platform.machine()}"


def _verdicts(findings: Sequence[Finding]) -> str:
    counts = Counter(finding.verdict for finding in findings)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "–"


def _failures(records: Sequence[Record]) -> list[list[str]]:
    """List what did not come out: one row for all claims of an experiment that share a reason."""
    groups: dict[tuple[str, str], list[str]] = {}
    for record in records:
        for finding in record.findings:
            if finding.verdict == Verdict.NOT_REPRODUCED and not finding.beyond:
                groups.setdefault((record.title, finding.reason), []).append(finding.text)
    return [[title, "; ".join(texts), reason] for (title, reason), texts in groups.items()]


def _section(record: Record) -> list[Block]:
    blocks: list[Block] = [Heading(2, f"{record.title} ({record.paper})"), Paragraph(record.data)]
    if record.read:
        blocks.append(Paragraph(f"Read from files. {'. '.join(record.read)}."))
    if record.status != Status.DONE:
        blocks.append(Paragraph(f"Not run, {record.status}: {record.problem}."))
    if record.smaller:
        blocks.append(Paragraph(f"The data are smaller than the paper's ({record.smaller}), so nothing is judged."))
    if record.runs:
        blocks.append(Picture(f"{record.name}.png", f"{record.title}: the first two components of each method"))
    blocks += [_claims(record), Heading(3, "Choices"), Bullets(record.choices)]
    if record.runs:
        blocks += [_methods(record), *record.tables]
        warned = _warnings(record)
        if warned:
            blocks += [Heading(3, "What the library warned of"), Bullets(warned)]
        blocks.append(Paragraph(f"This experiment took {record.seconds:.0f} s."))
    return blocks


def _warnings(record: Record) -> list[str]:
    """Return the first sentence of each warning once, with those whom it met; figures may differ from seed to seed."""
    met: dict[str, list[str]] = {}
    for run in record.runs:
        for text in run.warnings:
            met.setdefault(text.split(":")[0].split(". ")[0], []).append(_where(run))
    return [f"{text}. In: {'; '.join(dict.fromkeys(names))}." for text, names in met.items()]


def _claims(record: Record) -> Table:
    rows = [
        [
            ("+ " if finding.beyond else "") + finding.text,
            finding.printed,
            finding.ours,
            _verdict(finding),
            finding.rule,
            finding.reason,
        ]
        for finding in record.findings
    ]
    return Table("Claims", ("claim", "printed", "ours", "verdict", "rule", "reason"), _reasons_once(rows))


def _verdict(finding: Finding) -> str:
    if not finding.where:
        return finding.verdict
    return f"{finding.verdict} ({'only ' if finding.verdict == Verdict.NOT_REPRODUCED else ''}{finding.where})"


def _reasons_once(rows: list[list[str]]) -> list[list[str]]:
    """Write a reason where it first applies, and refer to it from there on."""
    seen: dict[str, str] = {}
    for row in rows:
        reason = row[-1]
        if reason in seen and reason:
            row[-1] = f"see “{seen[reason]}”"
        elif reason:
            seen[reason] = row[0].removeprefix("+ ")
    return rows


def _methods(record: Record) -> Table:
    times = {run.setting: run.median_seconds for run in record.runs if run.method == record.reference}
    several = len({run.setting for run in record.runs}) > 1
    header = (
        *(["setting"] if several else []),
        "method",
        "parameters",
        "where from",
        "clustering error",
        "scatter ratio",
        f"time / {record.reference}",
        "chosen",
    )
    rows = [
        [
            *([run.setting] if several else []),
            run.method,
            run.parameters,
            run.choice,
            run.in_words(),
            run.in_words(SCATTER, digits=2),
            _ratio(run.median_seconds, times.get(run.setting, math.nan)),
            _chosen(run),
        ]
        for run in record.runs
    ]
    caption = (
        "Methods, two components (scatter ratio of the true groups; times are medians over seeds of the fit alone, "
        "measured in one process on a machine that may be busy: indicative)"
    )
    return Table(caption, header, rows)


def _ratio(seconds: float, reference: float) -> str:
    return "–" if math.isnan(seconds) or math.isnan(reference) else f"{seconds / reference:.1f}"


def _chosen(run: MethodRun) -> str:
    """Say what the fits chose, at most a few values."""
    found = {name: list(dict.fromkeys(_short(value) for value in run.facts.get(name, []))) for name in CHOSEN}
    return "; ".join(f"{name} {', '.join(texts[:5])}" for name, texts in found.items() if texts)


def _short(value: object) -> str:
    if isinstance(value, list):
        return " and ".join(f"{one:.3g}" for one in value)
    return f"{value:.3g}"


def _where(run: MethodRun) -> str:
    return f"{run.method}, {run.setting}" if run.setting else run.method


# JSON


def as_json(record: Record) -> str:
    """Return a record as JSON; a number that is not finite becomes null."""
    return _dumped(_plain(dataclasses.asdict(record)))


def missing(records: Sequence[Record], names: Sequence[str]) -> list[str]:
    """Name the experiments that were not run on the paper's data: a summary of all would lack them."""
    done = {record.name for record in records if record.status is Status.DONE and not record.smaller}
    return [name for name in names if name not in done]


def summary(records: Sequence[Record]) -> str:
    """Return the verdict on every claim and the clustering error of every method as JSON, for docs/evidence.md."""
    return _dumped(
        {
            "made with": made_with(),
            "minutes": round(sum(record.seconds for record in records) / 60, 1),
            "seeds": max(record.n_seeds for record in records),
            "experiments": {record.name: _in_short(record) for record in records},
        }
    )


def _in_short(record: Record) -> dict[str, Any]:
    errors: dict[str, dict[str, list[float]]] = {}
    shrinkages: dict[str, list[float]] = {}
    for run in record.runs:
        # Mean and spread over the seeds, of two components.
        errors.setdefault(run.setting, {})[run.method] = [round(run.mean(), DIGITS), round(run.spread(), DIGITS)]
        chosen = [one for values in run.facts.get("shrinkage", []) for one in values]
        shrinkages.setdefault(run.method, []).extend(chosen)
    return {
        "title": record.title,
        "paper": record.paper,
        "claims": {
            finding.text: {"verdict": finding.verdict, "where": finding.where, "ours": finding.ours}
            for finding in record.findings
            if not finding.beyond
        },
        "error": errors,
        # The smallest and the largest shrinkage that each method chose by itself.
        "shrinkage": {
            method: [round(min(values), DIGITS), round(max(values), DIGITS)]
            for method, values in shrinkages.items()
            if values
        },
    }


def _dumped(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
