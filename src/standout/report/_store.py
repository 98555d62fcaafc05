"""Findings in a folder, from which the report can be made again without the data: numbers and text, never code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from standout._arrays import Array
from standout._messages import InvalidValueError, Message, MissingFileError
from standout._records import Kind, RecordError, check_record, fields_of, flattened, restored
from standout._writing import whole_file
from standout.report._findings import Findings, Points, Stray, ViewPath, require_findings
from standout.selection import ComponentTest

WORDS, NUMBERS = "report.json", "report.npz"
FORM = 2
ADVICE = "Make it again with standout.report.store."


def store(findings: Findings, folder: str | os.PathLike[str]) -> None:
    """How can the report be made again later, without the data?

    Writes two files: ``report.json`` with text, ``report.npz`` with numbers. They hold the names, labels and scores of
    the rows that the report shows, and no other data.

    Parameters
    ----------
    findings : Findings
    folder : path-like
        It is made if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import examine, restore, store
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(examine(model, images.target, images.backgrounds, with_path=False), folder)
    ...     restore(folder).method
    'discriminative PCA'
    """
    require_findings(findings)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Array] = {}
    text = {"form": FORM, "findings": flattened(findings, arrays, KINDS, "findings")}
    with whole_file(place / NUMBERS) as numbers, whole_file(place / WORDS) as words:
        with numbers.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        words.write_text(json.dumps(text, indent=1), encoding="utf-8")


def restore(folder: str | os.PathLike[str]) -> Findings:
    """What did the fit find whose report is stored here?

    Parameters
    ----------
    folder : path-like
        As given to `store`.

    Returns
    -------
    Findings

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import examine, restore, store
    >>> rng = np.random.default_rng(0)
    >>> target, background = rng.normal(size=(100, 3)) * [1, 1, 3], rng.normal(size=(100, 3))
    >>> model = DiscriminativePCA(1).fit(target, background=background)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store(examine(model, target, background), folder)
    ...     restore(folder).eigenvalues.round(1)
    array([8.7])
    """
    place = Path(folder)
    for file in (WORDS, NUMBERS):
        if not (place / file).is_file():
            raise MissingFileError("there is no {file} in {place}", file=file, place=place, advice=ADVICE)
    try:
        text = json.loads((place / WORDS).read_text(encoding="utf-8"))
        with (place / NUMBERS).open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    # A damaged archive or a forged header can make its reader raise anything.
    except Exception as error:
        raise _damaged(place, f"it cannot be read ({error or type(error).__name__})") from error
    form = text.get("form") if isinstance(text, dict) else None
    if form not in (1, FORM):
        raise _damaged(WORDS, "this version of standout does not know its form")
    try:
        tree = _renewed(text["findings"], arrays) if form == 1 else text["findings"]
        findings: Findings = restored(tree, arrays, KINDS)
        _check(findings)
    except RecordError as error:
        raise _damaged(place, str(error)) from error
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise _damaged(place, f"something is missing ({error})") from error
    return findings


def _damaged(place: str | Path, fault: str) -> InvalidValueError:
    return InvalidValueError("{place} cannot be used: {fault}", place=place, fault=fault, advice=ADVICE)


# --- messages --------------------------------------------------------------------------------------------------------


def _parts(message: Message) -> dict[str, Any]:
    """Give the parts of a message as numbers, text, and lists of these."""

    def plain(part: Any) -> Any:
        if isinstance(part, list | tuple):
            return [plain(each) for each in part]
        if isinstance(part, np.generic):
            return part.item()
        return part if part is None or isinstance(part, bool | int | float | str) else str(part)

    return {name: plain(part) for name, part in message.parts().items()}


KINDS = {
    **{record.__name__: Kind(fields_of, record) for record in (Findings, Points, Stray, ViewPath, ComponentTest)},
    "Message": Kind(_parts, Message),
}

# A form of a number that a message may ask for, such as ".0%": a longer one could fill the memory.
FORMAT = re.compile(r"[,.0-9a-z%-]{0,6}")


def _check_message(message: Message) -> None:
    """Refuse a template that asks for anything but its facts, the names of parameters, and values."""
    for template in (message.problem, message.advice):
        _demand(isinstance(template, str), "a message is no text")
        for _, name, form, conversion in Formatter().parse(template):
            if name is None:
                continue
            known = name in {*message.facts, "value", "limit"} or re.fullmatch(r"[pv]\.[A-Za-z][A-Za-z0-9_]*", name)
            _demand(bool(known) and conversion is None, f"a message asks for {name!r}")
            _demand(bool(FORMAT.fullmatch(form or "")) or name.startswith("p."), "a message has a strange form")
    message.phrased()


# --- what does not follow from types and shapes ----------------------------------------------------------------------


def _check(findings: Findings) -> None:
    """Refuse findings whose parts do not fit together."""
    _demand(isinstance(findings, Findings), "there are no findings")
    datasets = findings.datasets
    _demand(isinstance(datasets, tuple) and len(datasets) > 0, "there is no dataset")
    n_shown = sum(np.size(points.rows) for points in datasets)
    lengths = check_record(findings, {"B": len(datasets) - 1, "A": n_shown})
    _demand(1 <= lengths["S"] <= lengths["C"], "the number of components is wrong")
    _demand(lengths["k"] >= 1, "there is no eigenvalue")
    _demand(lengths["E"] == lengths["T"] + 1, "bins and their edges do not fit together")
    _demand(bool(np.all(np.diff(findings.bin_edges, axis=1) > 0.0)), "edges of bins do not ascend")
    for points in datasets:
        _demand(0 < len(points.rows) <= points.n_rows, "'n_rows' is not the number of rows")
        _demand(points.pca_scores.shape[1] in (1, 2), "PCA's view has neither one nor two axes")
        _demand(_are_below(points.rows, points.n_rows), "a row is beyond the last one")
        _demand(points.groups is None or _are_below(points.groups, lengths["L"]), "a row has an unknown label")
    _demand(findings.n_other_labels >= 0 and (lengths["L"] > 0 or not findings.n_other_labels), "labels do not fit")
    for stray in findings.strays or ():
        _demand(isinstance(stray, Stray) and 0 <= stray.dataset < len(datasets), "a row is of an unknown dataset")
    if findings.path is not None:
        _check_path(findings.path)
    if findings.test is not None:
        _check_test(findings.test)
    for message in (*findings.choices, *findings.cautions):
        _check_message(message)


def _check_path(path: ViewPath) -> None:
    _demand(path.parameter in ("shrinkage", "alpha", "epsilon"), "the parameter of the path is unknown")
    _demand(path.scores.shape[2] in (1, 2), "a view has neither one nor two axes")
    _demand(0 <= path.chosen < len(path.values), "'chosen' is no step of the path")


def _check_test(test: ComponentTest) -> None:
    _demand(test.method in ("analytic", "permutation"), "the method of the test is unknown")
    shapes = {np.shape(numbers) for numbers in (test.ratios, test.p_values, test.edges)}
    _demand(len(shapes) == 1 and len(test.ratios) > 0, "the numbers of the test do not fit together")
    _demand(0 <= test.n_significant <= len(test.ratios), "'n_significant' is not a number of components")
    _demand(len(test.n_made) in (0, len(test.ratios)), "'n_made' is not one number for each component")


def _are_below(numbers: Array, limit: int) -> bool:
    return bool(np.all((numbers >= 0) & (numbers < limit)))


def _demand(holds: bool, fault: str) -> None:
    if not holds:
        raise RecordError(fault)


# --- reports of earlier versions -------------------------------------------------------------------------------------


def _renewed(old: Mapping[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    """Give findings of form 1 as those of form 2, and add what they lack to the arrays.

    In form 1 records have no names, messages are sentences, and no rows were held out.
    """

    def record(name: str, parts: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if parts is None else {"record": name, "fields": dict(parts)}

    def message(sentence: str) -> dict[str, Any] | None:
        # What marked names then would mark them twice now.
        shown = re.sub("[\N{FIRST STRONG ISOLATE}\N{POP DIRECTIONAL ISOLATE}]", "", sentence).removesuffix(".")
        return record("Message", {"problem": shown.replace("{", "{{").replace("}", "}}"), "kind": _kind_of(shown)})

    new = dict(old)
    new["asked"] = {"mapping": new["asked"]}
    new["datasets"] = [record("Points", points) for points in new["datasets"]]
    new["path"], new["test"] = record("ViewPath", new["path"]), record("ComponentTest", new["test"])
    new["choices"] = [message(sentence) for sentence in new["choices"]]
    new["cautions"] = [message(sentence) for sentence in new.pop("warnings")]
    others = [name for name in new["label_names"][-1:] if name.startswith("other labels (")]
    new["n_other_labels"] = 1 if others else 0
    found = {name: restored(new[name], arrays, {}) for name in ("target_variance", "background_variance", "weights")}
    for points, variances in zip(new["datasets"], np.vstack(list(found.values())[:2]), strict=True):
        name = f"{points['fields']['rows']['array']}.variances"
        arrays[name] = variances[: arrays[points["fields"]["scores"]["array"]].shape[1]]
        points["fields"]["variances"] = {"array": name}
    new |= {"ratios": None, "ratio_errors": None, "pca_ratio": None, "drawn_held_out": False}
    if len(found["weights"]):
        with np.errstate(divide="ignore", invalid="ignore"):
            arrays["ratios"] = found["target_variance"] / (found["weights"] @ found["background_variance"])
        new["ratios"] = {"array": "ratios"}
    return {"record": "Findings", "fields": new}


def _kind_of(choice: str) -> str:
    return "parameter" if choice.startswith(("Shrinkage", "ε", "α")) else "other"
