"""A notebook, run in a kernel of Jupyter: what models, reports and explorations show below a cell."""

import html
import re
from urllib.request import urlopen

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

DATA = """
import numpy as np, standout
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(2, 200, 5)) * [3, 1, 1, 1, 1]
X[:, 2] *= 4
model = standout.DiscriminativePCA(2).fit(X, background=Y)
model
"""
CELLS = [DATA, "standout.report(model, X, background=Y, test=None)", "page = standout.explore(X, background=Y)\npage"]


@pytest.fixture
def client():
    """Return a running kernel after three cells. The server of the exploration answers as long as the kernel runs."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    with client.setup_kernel():
        for place, cell in enumerate(notebook.cells):
            client.execute_cell(cell, place)
        yield client


def shown(client, place):
    return client.nb.cells[place].outputs[-1]["data"]["text/html"]


def test_a_notebook_shows_the_model_the_report_and_the_exploration(client):
    assert "standout-fit" in shown(client, 0)
    frame = shown(client, 1)
    page = html.unescape(re.fullmatch(r'<iframe [^>]*sandbox="allow-scripts" srcdoc="(.*)"></iframe>', frame, re.S)[1])
    assert page.startswith("<!doctype html>")
    # The report inside the frame must be small.
    assert "column 2" in page
    assert len(frame) < 0.7e6
    address = html.unescape(re.search(r'<iframe src="([^"]*)"', shown(client, 2))[1])
    with urlopen(address) as answer:
        policy, text = answer.headers["Content-Security-Policy"], answer.read().decode()
    assert "standout" in text
    # A notebook on this machine may frame the page, other sites may not.
    assert re.search(r"frame-ancestors [^;]*http://localhost:\*", policy)
    assert "frame-ancestors *" not in policy
    assert f'<a href="{html.escape(address)}" target="_blank">' in shown(client, 2)
