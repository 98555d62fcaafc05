"""The findings as words: numbers and names that people read, sentences, the page and the picture."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from math import isfinite
from shlex import quote
from typing import Any

import numpy as np

from standout._messages import require_extra

MINUS = "\N{MINUS SIGN}"
# Control characters, characters that set the direction of text, and surrogates (halves of characters).
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text with a few digits: 8.13, 1,240, 0.0021, 3.1e-7."""
    if value is None or not isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    sign, size = MINUS if value < 0 else "", abs(value)
    # Round before counting digits: 0.9996 becomes 1.00, not 1.000.
    mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
    if size >= 1e6 or size < 1e-4:
        return f"{sign}{mantissa}e{int(exponent)}".replace("e-", f"e{MINUS}")
    return f"{sign}{size:,.{max(digits - 1 - int(exponent), 0)}f}"


def brief(value: float | None) -> str:
    """Return the value of a parameter as text: two digits, without zeros at the end."""
    shown = number(value, 2)
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def decimals(value: float, count: int = 2) -> str:
    """Return a correlation or an effect size as text with two decimals."""
    shown = f"{value:.{count}f}"
    return shown.lstrip("-") if not shown.strip("-0.") else shown.replace("-", MINUS)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: 1 row, 2 rows."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def percent(share: float) -> str:
    """Return a share as text in percent: 12 %, 0.4 %."""
    value = 100.0 * share
    shown = f"{value:.1f}" if 0.05 <= value < 9.95 or 90.05 < value < 99.95 else f"{value:.0f}"
    return f"{shown.removesuffix('.0')} %"


def p_value(chance: float, sign: str = "") -> str:
    """Return a p-value as text: 0.031 or < 0.001. `sign` is put before a number that is shown: = 0.031."""
    return "< 0.001" if chance < 0.001 else f"{sign}{chance:.2g}"


def joined(names: Sequence[str]) -> str:
    """Join names: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def harmless(text: Any) -> str:
    """Replace invisible characters, and characters that set the direction of text, by their escape codes."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), str(text))


def shortened(name: Any, most: int = 40) -> str:
    """Shorten a long name in its middle, on one line; an empty name becomes "(empty name)"."""
    flat = harmless(" ".join(str(name).split()))
    if not flat:
        return "(empty name)"
    return flat if len(flat) <= most else f"{flat[: most - most // 3 - 1]}…{flat[-(most // 3) :]}"


def _marked(name: Any, most: int = 40) -> Any:
    """Return a shortened name as HTML. Its tooltip has the long name. Its text direction affects no other text."""
    from markupsafe import Markup, escape

    short = shortened(name, most)
    title = "" if short == str(name) else f' title="{escape(shortened(name, 400))}"'
    return Markup(f"<bdi{title}>{escape(short)}</bdi>")


def encoded(content: bytes) -> str:
    """Return bytes as text in base64."""
    return base64.b64encode(content).decode()


def static(file: str) -> str:
    """Read a template, styles or a script of the report. Files of other packages are named "package/file"."""
    package, _, name = file.rpartition("/")
    return (resources.files(f"standout.{package or 'report'}") / "static" / name).read_text(encoding="utf-8")


@cache
def environment(html: bool) -> Any:
    """Return the templates. If `html` is True, all inserted values are escaped."""
    require_extra("jinja2", "report", "a report")
    from jinja2 import Environment, FunctionLoader

    made = Environment(
        loader=FunctionLoader(static),
        autoescape=html,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else harmless(value),
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "ensure_ascii": False}
    made.filters.update(
        number=number, brief=brief, decimals=decimals, whole="{:,}".format, counted=counted, percent=percent,
        p_value=p_value, joined=joined, shortened=shortened, name=_marked if html else shortened, base64=encoded,
        quote=quote,
    )  # fmt: skip
    return made


def said(macro: str, found: Mapping[str, Any], *, lines: bool = False) -> str:
    """Return the text of a macro in ``sentences.j2``: on one line, or with its line breaks if `lines` is True."""
    text = str(getattr(environment(html=False).get_template("sentences.j2").module, macro)(found))
    return text.strip() if lines else " ".join(text.split())


def page(found: Mapping[str, Any]) -> str:
    """What did the fit find, on one page that explains itself?

    The page is one HTML file that works offline and loads nothing. Names from the data are shown as text and never run.

    Parameters
    ----------
    found : dict
        The result of `findings`, or the same dict read from JSON.

    Returns
    -------
    str
        HTML. Write it in UTF-8 to a file whose name ends in ``.html``.

    Examples
    --------
    >>> import numpy as np
    >>> from standout import DiscriminativePCA
    >>> from standout.report import page, report
    >>> rng = np.random.default_rng(0)
    >>> background = rng.normal(size=(300, 4)) * [10, 1, 1, 1]
    >>> target = rng.normal(size=(200, 4)) * [10, 1, 1, 3]
    >>> model = DiscriminativePCA().fit(target, background=background)
    >>> made = report(model, target, background=background, test=None)
    >>> page(made.findings).startswith("<!doctype html>")
    True
    """
    from markupsafe import Markup

    script = static("charts.js") + static("page.js")
    facts: dict[str, Any] = {"f": found, "css": Markup(static("page.css")), "script": Markup(script)}
    # Besides escaping, there is a security policy: the page can neither load anything nor run other scripts.
    facts["hash"] = hashlib.sha256(script.encode()).digest()
    return str(environment(html=True).get_template("page.html.j2").render(facts)).lstrip()


def sentences(found: Mapping[str, Any]) -> list[str]:
    """What did the fit find, in a few sentences: the headline, then the cautions, the most important first.

    Parameters
    ----------
    found : dict
        From `findings`.

    Returns
    -------
    list of str
        Plain text.
    """
    return [found["headline"], *(f"{caution['text']} {caution['advice']}".strip() for caution in found["cautions"])]


def figure(found: Mapping[str, Any]) -> bytes:
    """Return a PNG picture of the scores of the fit, beside the scores of PCA if there are any. Needs matplotlib.

    If the rows are images, another panel shows the correlation of each pixel with component 1.

    Parameters
    ----------
    found : dict
        From `findings`.

    Returns
    -------
    bytes
    """
    require_extra("matplotlib", "plots", "the picture")
    from matplotlib.figure import Figure

    from standout import plots

    views = {"scores": found["method"], **({"pca": "PCA"} if found["pca"] else {})}
    images, labels, marks = found["images"], found["labels"], None
    n_panels = len(views) + bool(images)
    drawing = Figure(figsize=(0.5 + 5.25 * n_panels, 5.2), layout="constrained", dpi=150)
    axes = drawing.subplots(1, n_panels, squeeze=False)[0]
    if images:
        axes[-1].imshow(np.reshape(images["patterns"][0], images["shape"]), cmap="RdBu_r", vmin=-1.0, vmax=1.0)
        axes[-1].set_title("Correlation of each pixel with component 1")
        axes[-1].set_axis_off()
    if labels is not None:
        given = found["drawn"]["points"][0]["labels"]
        marks = [labels["names"][place] for place in given] if labels["kind"] == "words" else given
    names = [shortened(part["name"], 30) for part in found["datasets"]]
    for ax, (view, title) in zip(axes, views.items(), strict=False):
        points = [np.array(part[view], dtype=np.float64).T for part in found["drawn"]["points"]]
        plots.scores(points[0], points[1:], labels=marks, names=names, ax=ax)
        one = found["components"][0] if view == "scores" else found["pca"]
        ratio = "" if one.get("ratio") is None else f": {number(one['ratio'])} times"
        ax.set_title(f"{title[0].upper()}{title[1:]}{ratio}")
    return png(drawing)


def png(drawing: Any, **settings: Any) -> bytes:
    """Return a figure of matplotlib as a PNG picture."""
    file = io.BytesIO()
    drawing.savefig(file, format="png", **settings)
    return file.getvalue()
