"""One word, one meaning: a number is the same in the terminal, on the page, in summary.json and in the tables."""

import csv
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from standout.cli import main
from standout.report import number

# Pooled over folds, variances are about the mean of all other rows; here about that of the scores.
CLOSE = 0.03


class Cells(HTMLParser):
    """The rows of the chart of strengths, of the table of columns, and the key numbers, as text."""

    def __init__(self, html):
        super().__init__()
        self.rows = []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        role = dict(attributes).get("role")
        if tag in ("tr", "li") or role == "row":
            self.rows.append([])

    def handle_data(self, data):
        if self.rows and data.strip():
            self.rows[-1].append(data.strip())


def data(kind):
    rng = np.random.default_rng(5)
    n, d = (300, 8) if kind != "wide" else (60, 200)
    shared = rng.normal(size=(6, d))
    target, background = (rng.normal(size=(m, 6)) * 3 @ shared + rng.normal(size=(m, d)) for m in (n, n - 10))
    target[:, 0] += rng.choice([-3.0, 3.0], size=n)
    return target, background


METHODS = {
    "tall": [],
    "wide": [],
    "plain ratio": ["--shrinkage", "none"],
    "contrastive": ["--method", "cpca"],
    "kernel": ["--method", "kdpca", "--kernel", "poly", "--degree", "2"],
}


@pytest.fixture(scope="module", params=METHODS)
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    for name, rows in zip(("target", "background"), data(request.param), strict=True):
        names = ",".join(f"c{k}" for k in range(rows.shape[1]))
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",", header=names, comments="")
    return request.param, folder


def test_every_number_has_one_value_wherever_it_is_shown(run, capsys):
    kind, folder = run
    files = [str(folder / "target.csv"), "-b", str(folder / "background.csv"), "-o", str(folder / "out")]
    assert main(["fit", *files, *METHODS[kind]]) == 0
    terminal = capsys.readouterr().out
    found = json.loads((folder / "out" / "summary.json").read_text())
    html = (folder / "out" / "report.html").read_text()
    rows = Cells(html).rows
    first = found["components"][0]
    ratio, error = first["ratio"], first["ratio_error"]
    shown, shown_error = number(ratio), number(error, 2)
    # The headline, in the terminal and on the page.
    assert f"{shown} times (± {shown_error})" in found["headline"]
    assert f"{shown} times (± {shown_error})" in re.sub(r"<[^>]*>", "", html)
    assert f"{shown} times (± {shown_error})" in " ".join(terminal.split())
    # The tables: in the terminal, the chart of strengths, the key numbers.
    for component in found["components"]:
        cells = f"{number(component['ratio'])} ± {number(component['ratio_error'], 2)}"
        assert re.search(rf"^{component['component']} +{re.escape(cells)} ", terminal, re.MULTILINE)
        chart = next(row for row in rows if row[0] == f"component {component['component']}" and cells in row)
        if component["p_value"] is not None:
            p_value = chart[chart.index(cells) + 1].removeprefix("< ")
            assert float(p_value) == pytest.approx(component["p_value"], rel=0.06, abs=1e-3)
    assert [shown, f"ratio, component 1 (± {shown_error})"] in rows
    assert [number(found["pca_ratio"]), "ratio, PCA, in the fitted rows"] in rows
    # What was maximised has another name.
    fitted = "fitted difference" if kind == "contrastive" else "fitted ratio"
    assert next(row for row in rows if fitted in row)
    assert any(row[:2] == ["component 1", number(first["eigenvalue"])] for row in rows)
    # The scores: their variances have this ratio.
    scores = list(csv.DictReader((folder / "out" / "scores.csv").read_text().splitlines()))
    for column, expected in (("held_out_1", ratio), ("component_1", None)):
        own, other = (
            np.var([float(row[column]) for row in scores if row["dataset"] == name])
            for name in ("target", "background")
        )
        if expected is None:
            expected = first["target_variance"] / first["background_variance"][0]
        assert own / other == pytest.approx(expected, rel=CLOSE)
    # Columns: the same correlation, pattern and filter in the table of the page, summary.json and loadings.csv.
    loadings = {
        row["feature"]: row for row in csv.DictReader((folder / "out" / "loadings.csv").read_text().splitlines())
    }
    for feature in first["features"][:5]:
        for name in ("correlation", "pattern", "filter"):
            if feature[name] is not None:
                assert float(loadings[feature["name"]][f"{name}_1"]) == pytest.approx(feature[name])
        table = next(row for row in rows if row[0] == feature["name"] and len(row) >= 1 + len(found["components"]))
        assert number(feature["correlation"]) in table
