"""The page: one HTML text that needs nothing else, not even a network."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

from standout._validation import require_extra
from standout.report._charts import distribution, strength_chart
from standout.report._features import MOST_SHOWN, feature_bars, feature_table
from standout.report._findings import Findings
from standout.report._glossary import glossary
from standout.report._html import data_block, sentence, text, tip
from standout.report._numbers import key_numbers
from standout.report._scatter import document, legend, n_views
from standout.report._sentences import Explained, background_words, headline_parts, question, sampling, title
from standout.report._slider import slider, views
from standout.report._wording import counted, plain, shortened


def page(findings: Findings, names: Names = PYTHON) -> str:
    """What did the fit find, on one page that explains itself?

    The page is one self-contained HTML text: it works offline, on a phone, printed, and in dark and light; nothing is
    fetched from anywhere. Points can be hovered over and selected in two linked views, and a slider moves along the
    method's parameter. Names from the data are shown as text, whatever they contain.

    Parameters
    ----------
    findings : Findings
        From `examine`, or `restore`.

    Returns
    -------
    str
        Write it to a file whose name ends in ``.html``, in UTF-8.

    Examples
    --------
    >>> from standout import DiscriminativePCA
    >>> from standout.datasets import make_digits_over_photographs
    >>> from standout.report import examine, page
    >>> images = make_digits_over_photographs()
    >>> model = DiscriminativePCA(2).fit(images.target, background=images.backgrounds)
    >>> html = page(examine(model, images.target, images.backgrounds, labels=images.labels))
    >>> html.startswith("<!doctype html>")
    True
    >>> len(html.encode()) < 3_000_000
    True
    """
    require_extra("bokeh", "report", "the report")
    scripts = [_bokeh_script(), _static("page.js")]
    data = {**document(findings), "views": views(findings)}
    return "".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta name="generator" content="standout {text(findings.version)}">',
            f"<title>{text(plain(title(findings)))}</title><style>{_static('page.css')}</style></head><body>",
            _body(findings),
            data_block("data", data),
            *(f"<script>{script}</script>" for script in scripts),
            "</body></html>\n",
        ]
    )


def _body(findings: Findings) -> str:
    return "".join(
        [
            '<a class="skip" href="#view">Skip to the view</a>',
            '<header class="top"><span class="brand">standout</span>',
            '<button type="button" id="theme" hidden>Dark</button></header><main>',
            _opening(findings),
            key_numbers(findings),
            _cautions(findings),
            _view(findings),
            _strength(findings),
            _columns(findings),
            _distributions(findings),
            _choices(findings),
            _code(findings),
            f'<section id="words"><h2>What the words mean</h2>{glossary(findings)}</section>',
            f"</main><footer>Made by standout {text(findings.version)}. This page is one file and fetches nothing: ",
            "keep it, send it, print it.</footer>",
            '<div id="bubble" role="tooltip" hidden></div><div id="point" role="tooltip" hidden></div>',
        ]
    )


def _opening(findings: Findings) -> str:
    return (
        f'<section class="opening"><p class="kicker">{text(findings.method)}</p><h1>{sentence(title(findings))}</h1>'
        f'<p class="headline">{_marked(headline_parts(findings))}</p>'
        f'<p class="asked">{sentence(question(findings))}</p></section>'
    )


def _marked(parts: list[str | Explained]) -> str:
    return "".join(sentence(part) if isinstance(part, str) else tip(part.shown, part.meaning) for part in parts)


def _cautions(findings: Findings) -> str:
    if not findings.warnings:
        return ""
    items = "".join(f"<li>{sentence(words)}</li>" for words in findings.warnings)
    return (
        f'<aside class="cautions" aria-label="To be careful about"><h2>To be careful about</h2><ul>{items}</ul></aside>'
    )


def _view(findings: Findings) -> str:
    sampled = sampling(findings)
    note = f'<p class="note" id="sampled">{sentence(sampled)}</p>' if sampled else ""
    against = f" Grey points are {text(background_words(findings))}." if findings.backgrounds else ""
    groups = " Click a label to select its rows." if findings.label_names else ""
    it = "it" if len(findings.backgrounds) == 1 else "them"
    hide = f" Click {text(background_words(findings))} in the legend to hide {it}." if findings.backgrounds else ""
    views = [
        _figure("plot-view", "What stands out" if findings.backgrounds else "What varies most", findings.method),
        _figure("plot-pca", "What varies most", "PCA of the same rows"),
    ][: n_views(findings)]
    both = " in both views" if len(views) > 1 else ""
    how = (
        f'<span class="by-mouse">Point at one to see its name. Drag across points, or click one, to select rows{both}.'
        f'</span><span class="by-touch">Tap one to select it{both}; its name is shown below.</span>{groups}{hide}'
    )
    return (
        f'<section id="view"><h2>The view</h2><p>Each point is a row.{against} <span class="how">{how}</span></p>'
        f"{note}{legend(findings)}"
        f'<div class="plots{"" if both else " single"}">{"".join(views)}</div>'
        "<noscript><p>The plots need JavaScript. All numbers below do not.</p></noscript>"
        '<p class="selected" id="selected" aria-live="polite" hidden><span></span> '
        '<button type="button" id="copy-names">Copy names</button> '
        '<button type="button" id="clear">Clear</button></p>'
        f"{slider(findings)}</section>"
    )


def _figure(place: str, heading: str, words: str) -> str:
    return (
        f"<figure><figcaption><b>{text(heading)}</b> {text(words)}</figcaption>"
        f'<div class="plot" id="{place}" role="img" aria-label="Scatter plot: {text(words)}"></div></figure>'
    )


def _strength(findings: Findings) -> str:
    if findings.is_ratio:
        words = (
            f"How many times as much as {background_words(findings)} does the target vary? 1 would mean no difference, "
            "but the largest of many ratios is above 1 by chance alone."
        )
    elif findings.backgrounds:
        words = (
            f"By how much does the variance of the target exceed α times that of {background_words(findings)}? "
            "There is no test for these differences."
        )
    else:
        words = "The variance of the target along each component."
    heading = "How much does it stand out?" if findings.backgrounds else "How much does it vary?"
    return f'<section id="strength"><h2>{heading}</h2><p>{text(words)}</p>{strength_chart(findings)}</section>'


def _columns(findings: Findings) -> str:
    if findings.correlations is None:
        return ""
    if findings.components is not None:
        words = (
            "The pattern says how closely a column follows the component (a correlation); the filter says how much "
            "weight it has in computing the score. Go by the pattern for what a component means."
        )
    else:
        words = "A kernel method has no weights per column. The bars say how closely each column follows a score."
    more = findings.n_shown_components - MOST_SHOWN
    rest = (
        f" Of {counted(len(findings.eigenvalues), 'component')}, the first {MOST_SHOWN} are shown." if more > 0 else ""
    )
    return (
        f'<section id="features"><h2>Which columns make the difference?</h2><p>{text(words)}{text(rest)}</p>'
        f"{feature_bars(findings)}{feature_table(findings)}</section>"
    )


def _distributions(findings: Findings) -> str:
    d = findings.n_shown_components
    rest = len(findings.eigenvalues) - d
    shown = f" The first {d} of {counted(d + rest, 'component')} are shown." if rest > 0 else ""
    against = (
        f"the target (filled) and of {background_words(findings)} (lines)" if findings.backgrounds else "the target"
    )
    charts = "".join(distribution(findings, k) for k in range(d))
    coloured = " Coloured lines are the labels." if 2 <= len(findings.label_names) <= 7 else ""
    return (
        f'<section id="distributions"><h2>How are the scores spread?</h2><p>All rows of {text(against)}, drawn to the '
        f'same height.{coloured}{text(shown)}</p><div class="distributions">{charts}</div></section>'
    )


def _choices(findings: Findings) -> str:
    asked = "".join(
        f"<div><dt>{text(shortened(str(key), 60))}</dt><dd>{text(shortened(str(value), 400))}</dd></div>"
        for key, value in findings.asked.items()
    )
    items = "".join(f"<li>{sentence(words)}</li>" for words in findings.choices)
    return (
        '<section id="choices"><h2>What was asked, and how it was chosen</h2>'
        f'<dl class="facts">{asked}</dl><ul>{items}</ul></section>'
    )


def _code(findings: Findings) -> str:
    return (
        '<section id="code"><h2>The same in Python</h2><div class="code"><button type="button" id="copy-code" hidden>'
        f"Copy</button><pre><code>{text(findings.code)}</code></pre></div></section>"
    )


def _policy(scripts: list[str]) -> str:
    """Forbid all requests, and all scripts but those of this page, known by their hashes.

    Should a name from the data ever get past the escaping, it still could not run or load anything.
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{known}'" for known in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
        "form-action 'none'"
    )


def _bokeh_script() -> str:
    """Read Bokeh's own script, the core of it only: sliders and tables of the page are plain HTML."""
    import bokeh

    found: Any = resources.files(bokeh) / "server" / "static" / "js" / "bokeh.min.js"
    script: str = found.read_text(encoding="utf-8")
    return script


def _static(file: str) -> str:
    return (resources.files("standout.report") / "static" / file).read_text(encoding="utf-8")
