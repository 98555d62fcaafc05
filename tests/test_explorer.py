"""Explorations without a browser: states, answers, generated code, and sessions."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cli_runs import csv_text
from exploring import CONDITIONS, MICE, N_ROWS, asked, rows
from standout import DiscriminativePCA
from standout._messages import InvalidValueError
from standout.cli import main
from standout.explorer import Engine, State, Table, answered, begun, changed, inside, read_session, write_session
from standout.explorer._page import Page, command, python
from standout.explorer._table import Origin, Stacked
from standout.io import scan


@pytest.fixture
def table():
    made = Table.of(rows(), CONDITIONS)
    made.words["mouse"] = MICE.astype(object)
    return made


@pytest.fixture
def page(table):
    return Page(Engine(table), State("y", bytes(N_ROWS)))


@pytest.fixture
def compared(table):
    """A page on which the condition "ill" is the target, and all others are the background."""
    return Page(Engine(table), asked(table))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file of all conditions, and a file of each condition."""
    monkeypatch.chdir(tmp_path)
    words = {"name": np.array([f"row {k}" for k in range(N_ROWS)]), "condition": CONDITIONS, "mouse": MICE}
    for name, own in (("all", CONDITIONS != ""), ("ill", CONDITIONS == "ill"), ("well", CONDITIONS == "well")):
        some = {column: part[own] for column, part in words.items()}
        Path(f"{name}.csv").write_text(csv_text(rows()[own], [f"gene {k}" for k in range(6)], **some))


# --- the question -----------------------------------------------------------------------------------------------------


def test_target_background_and_neither_are_three_states(page):
    def counts(message):
        return page.reply(message)["state"]["counts"]

    assert counts({"do": "hello"}) == [0, 0, N_ROWS]
    assert counts({"do": "role", "values": ["ill"], "role": "target"}) == [80, 0, 160]
    assert counts({"do": "role", "values": ["well"], "role": "background"}) == [80, 100, 60]
    # Rows with the role "neither" are in no dataset.
    assert sum(len(part.numbers) for part in page.engine.answer(page.state).parts) == 180
    assert counts({"do": "role", "values": ["ill"], "role": "neither"}) == [0, 100, 140]
    assert counts({"do": "undo"}) == [80, 100, 60]
    assert counts({"do": "swap"}) == [100, 80, 60]
    assert counts({"do": "rest"}) == [100, 140, 0]
    assert counts({"do": "clear"}) == [0, 0, N_ROWS]
    assert counts({"do": "undo"}) == [100, 140, 0]
    assert counts({"do": "redo"}) == [0, 0, N_ROWS]


@pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")
@pytest.mark.parametrize("settings", [{}, {"subjects": "mouse"}, {"scale": "pooled"}, {"center": "background"}])
def test_the_answer_is_the_fit(table, settings):
    model = Engine(table).answer(asked(table, **settings)).model
    parts = [name == CONDITIONS for name in ("ill", "odd", "well")]
    groups = {"groups": MICE[parts[0]], "background_groups": [MICE[one] for one in parts[1:]]}
    parameters = {name: value for name, value in settings.items() if name != "subjects"}
    X, *others = (rows()[one] for one in parts)
    expected = DiscriminativePCA(**parameters).fit(X, background=others, **(groups if "subjects" in settings else {}))
    assert model.shrinkage_ == expected.shrinkage_
    np.testing.assert_allclose(model.ratio_, expected.ratio_, rtol=1e-9)
    np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("width", [6, 400], ids=["tall", "wide"])
@pytest.mark.parametrize("scale", [None, "pooled"])
def test_the_slider_gives_the_fit_at_its_value(width, scale):
    table = Table.of(rows(width), CONDITIONS)
    engine, state = Engine(table), asked(table, scale=scale)
    slid = engine.slid(state, 0.4)
    fitted = engine.answer(replace(state, value=0.4))
    np.testing.assert_allclose(slid.model.ratio_, fitted.model.ratio_, rtol=1e-6)
    places = np.arange(N_ROWS)
    np.testing.assert_allclose(engine.scores(slid, places), engine.scores(fitted, places), rtol=1e-4, atol=1e-5)


def test_scores_of_the_picture_have_the_ratio(table):
    engine = Engine(table)
    answer = engine.answer(asked(table))
    target, *others = (engine.scores(answer, part.numbers) for part in answer.parts)
    spread = np.mean([part.var(axis=0) for part in others], axis=0)
    np.testing.assert_allclose(target.var(axis=0) / spread, answer.model.ratio_, rtol=1e-9)


def test_no_number_is_shown_before_it_is_meaningful(page):
    def first(message):
        reply = page.reply(message)["answer"]
        return reply["components"][0][0], reply["reason"]

    assert first({"do": "hello"}) == (None, "Choose a target. Until then, the picture shows PCA of all rows.")
    ratio, reason = first({"do": "role", "values": ["ill"], "role": "target"})
    assert ratio is None
    assert "background" in reason
    assert page.reply({"do": "details"})["headline"] == reason
    ratio, reason = first({"do": "rest"})
    assert ratio > 10
    assert reason == ""
    # With more columns than the limit, there is no ratio while the slider moves, only after its release.
    wide = Table.of(np.random.default_rng(0).normal(size=(600, 300)), np.repeat(["ill", "well"], 300))
    moving = Page(Engine(wide), asked(wide)).reply({"do": "preview", "value": 0.5})
    assert moving["answer"]["components"][0] == [None] * 3


def test_columns_are_listed_by_correlation_or_by_means_and_filtered(compared):
    listed = compared.reply({"do": "hello"})["answer"]["columns"]["rows"]
    assert listed[0][0] == "x3"
    by_means = compared.reply({"do": "columns", "sort": "means"})["columns"]["rows"]
    assert by_means[0][0] == "x1"
    assert by_means[0][2] > 1
    assert by_means[0][3]
    found = compared.reply({"do": "columns", "search": "X4"})["columns"]
    assert [one[0] for one in found["rows"]] == ["x4"]
    spread = compared.reply({"do": "column", "name": "x1"})
    assert spread["sides"][0]["mean"] - spread["sides"][1]["mean"] == pytest.approx(2, abs=0.5)


def test_steps_of_one_slider_are_one_step_and_lassos_choose_rows(compared):
    for value in (0.1, 0.2, 0.3):
        reply = compared.reply({"do": "set", "name": "value", "value": value})
    assert reply["answer"]["slider"]["value"] == 0.3
    assert compared.reply({"do": "undo"})["answer"]["slider"]["auto"]
    scores = compared.engine.scores(compared.engine.answer(compared.state), np.arange(N_ROWS))
    polygon = [[0, -99], [99, -99], [99, 99], [0, 99]]
    reply = compared.reply({"do": "lasso", "polygon": polygon, "role": "target", "only": True})
    assert reply["state"]["counts"][0] == (scores[:, 0] > 0).sum()
    assert (np.flatnonzero(compared.state.codes == 1) == np.flatnonzero(scores[:, 0] > 0)).all()


def test_a_lasso_need_not_be_convex():
    polygon = [(0, 0), (3, 0), (3, 3), (1.5, 1), (0, 3)]
    points = np.array([[1.5, 0.5], [1.5, 2.0], [0.2, 2.0], [9, 9]])
    assert inside(points, polygon).tolist() == [True, False, True, False]


@pytest.mark.parametrize("method", ["cpca", "kdpca", "kcpca"])
def test_other_methods_answer(compared, method):
    reply = compared.reply({"do": "set", "name": "method", "value": method})
    assert reply["answer"]["components"][0][0] > 1
    assert len(reply["answer"]["slider"]["values"]) > 5
    assert max(abs(one[2]) for one in reply["answer"]["columns"]["rows"]) > 1
    assert json.dumps(compared.reply({"do": "details"}), allow_nan=False)


def test_a_test_makes_a_report_with_the_same_ratio(compared):
    reply = compared.reply({"do": "report"})
    assert reply["p_values"][0] <= 0.05
    assert compared.report(reply["report"]).startswith("<!doctype html>")
    assert compared.report(7) is None
    assert compared.reply({"do": "hello"})["answer"]["p_values"] == reply["p_values"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_words_of_a_frame_are_columns_to_choose_by(library):
    pd = pytest.importorskip("pandas")
    frames = pytest.importorskip(library)
    frame = pd.DataFrame(rows(), columns=list("abcdef")).assign(condition=CONDITIONS, mouse=MICE)
    frame = frame.assign(cage=np.arange(N_ROWS) // 60)
    if library != "pandas":
        frame = frames.from_pandas(frame) if library == "polars" else frames.Table.from_pandas(frame)
    # A numeric column that the user names is not data.
    table = Table.of(frame, "cage")
    assert list(table.words) == ["cage", "condition", "mouse"]
    with pytest.raises(InvalidValueError, match="'caeg'"):
        Table.of(frame, "caeg")
    assert table.columns == list("abcdef")
    assert begun(table, "dpca", ["ill"], by="condition").codes.tolist() == [1 if c == "ill" else 2 for c in CONDITIONS]
    with pytest.raises(InvalidValueError, match="'iil'"):
        begun(table, "dpca", ["iil"], by="condition")


def test_files_that_are_not_in_memory_answer_as_arrays_do(files):
    kept = scan("all.csv", exclude=["name", "mouse", "condition"], batch_rows=50)
    whole = Table.stacked([kept], words=kept.words(["condition"]))
    assert whole.source.rows is None
    state = asked(whole)
    table = Table.of(rows(), CONDITIONS)
    expected = Engine(table).answer(asked(table)).model
    np.testing.assert_allclose(Engine(whole).answer(state).model.ratio_, expected.ratio_, rtol=1e-9)
    with pytest.raises(InvalidValueError, match="lasso"):
        Page(Engine(whole), state).reply({"do": "lasso", "polygon": [[0, 0], [1, 0], [1, 1]], "role": "target"})
    both = Stacked([scan(f"{name}.csv", exclude=["name", "mouse", "condition"]) for name in ("ill", "well")])
    np.testing.assert_array_equal(both.take([0, 80]), rows()[[0, 80]])


# --- the same as code -------------------------------------------------------------------------------------------------


ILL = ["all.csv", "--condition-column", "condition", "--target", "ill"]


def run(code):
    names = {"given": rows()}
    exec(code.replace("X = ...  # all rows", "X = given"), names)
    return names["model"]


@pytest.mark.filterwarnings("ignore::standout._messages.CautionWarning")
@pytest.mark.parametrize(
    "words",
    [
        ILL,
        [*ILL, "--subject-column", "mouse", "--scale", "pooled"],
        ["ill.csv", "-b", "well.csv", "--shrinkage", "0.3"],
        [*ILL, "--log1p", "--background-condition", "odd"],
    ],
    ids=["conditions", "subjects and scale", "files", "logarithms"],
)
def test_python_and_command_line_repeat_the_answer(files, words, monkeypatch):
    if "--log1p" in words:
        text = Path("all.csv").read_text()
        Path("all.csv").write_text(text.replace("-", ""))
    kept = {}

    def caught(table, state, facts, **_):
        kept["engine"], kept["state"] = Engine(table, facts), state
        raise KeyboardInterrupt

    monkeypatch.setattr("standout.explorer.serve", caught)
    assert main(["explore", *words, "--no-browser"]) == 130
    engine, state = kept["engine"], kept["state"]
    expected = engine.answer(state).model.ratio_
    np.testing.assert_allclose(run(python(engine, state)).ratio_, expected, rtol=1e-9)
    line = shlex.split(command(engine, state))
    assert line[:2] == ["standout", "fit"]
    assert main([*line[1:], "--no-test", "-q"]) == 0
    found = json.loads(Path("OUT/summary.json").read_text())
    assert [one["ratio"] for one in found["components"]] == pytest.approx(expected.tolist(), rel=1e-6)


def test_words_that_all_differ_name_the_rows_and_are_not_chosen_by(files, monkeypatch):
    Path("all.csv").write_text(Path("all.csv").read_text().replace("name,", "code,", 1))
    kept = []
    monkeypatch.setattr("standout.explorer.serve", lambda table, state, *_, **__: kept.append((table, state)) or 1 / 0)
    assert main(["explore", "all.csv", "--no-browser"]) == 2
    (table, state), *_ = kept
    assert (list(table.words), state.by) == (["condition", "mouse"], "condition")
    assert table.source.ids[3] == "row 3"
    frame = {"code": [f"row {k}" for k in range(6)], "kind": ["a", "b"] * 3, "size": np.arange(6.0)}
    assert list(Table.of(pytest.importorskip("pandas").DataFrame(frame)).words) == ["kind"]


@pytest.mark.filterwarnings("ignore::standout._messages.FindingWarning")
def test_python_repeats_rows_that_were_chosen_one_by_one(table):
    engine, state = Engine(table), asked(table)
    picked = {"do": "rows", "rows": np.arange(N_ROWS) % 7 == 0, "role": "neither"}
    some = changed(state, picked, table)
    for each in (state, some):
        np.testing.assert_allclose(run(python(engine, each)).ratio_, engine.answer(each).model.ratio_, rtol=1e-9)
    assert command(engine, some) == ""
    table = replace(table, origin=Origin(("all.csv",)))
    assert command(Engine(table), some).startswith("standout explore all.csv --session session.json")


def test_names_from_the_data_cannot_change_the_code():
    hostile = "'] + exit('\n\")\n#"
    table = Table.of(rows(), np.where(CONDITIONS == "ill", hostile, "well"))
    table = replace(table, origin=Origin((hostile,)), words={hostile: table.words["y"]})
    engine, state = Engine(table), begun(table, "dpca", [hostile], by=hostile)
    compile(python(engine, state), "recipe", "exec")
    calls = []
    fake = type("standout", (), {"scan": lambda *a, **k: calls.append((a, k)), "DiscriminativePCA": DiscriminativePCA})
    with pytest.raises(Exception, match="."):
        exec(python(engine, state).replace("import standout", ""), {"standout": fake})
    assert calls[0] == ((hostile,), {"where": {hostile: [hostile]}})
    assert shlex.split(command(engine, state))[2:7] == [hostile, "--condition-column", hostile, "--target", hostile]


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_a_session_is_read_back_and_others_are_refused(table):
    state = asked(table, value=0.25, subjects="mouse")
    text = write_session(state, table)
    assert read_session(text, table) == state
    with pytest.raises(InvalidValueError, match="other data"):
        read_session(text, Table.of(rows(5), CONDITIONS))
    record = json.loads(text)
    forged = {
        "kind": ["x", None, {}],
        "roles": ["", "AAAA", 7, None, [], "eJzLSM3JyQcABiwCFQ=="],
        "by": ["nothing", 3, None, ["y"], {}],
        "method": ["__class__", None, 5, ["dpca"]],
        "value": ["1", -1, 1e400, [], True],
        "scale": ["x", 2, []],
        "center": [None, 1, "__doc__"],
        "subjects": ["nothing", 4, []],
        "n_components": [0, -1, 2.5, "many", [2], None, 10**30],
    }
    for name, values in forged.items():
        for value in values:
            message = json.dumps({"do": "open", "text": json.dumps({**record, name: value})})
            reply = answered(Page(Engine(table), state), message.encode())
            assert set(reply) == {"problem"}, (name, value)
            assert "Error" not in reply["problem"], (name, value)
    for junk in ("", "[]", "null", "{", "[" * 100_000, '{"kind": "standout exploration"}', "\x00"):
        with pytest.raises(InvalidValueError, match="not a session"):
            read_session(junk, table)
