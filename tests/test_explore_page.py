"""The server and the command of an exploration, without a browser: who is let in, and what is repeated."""

import asyncio
import http.client
import json
import re
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

from exploring import PATIENTS
from standout import DiscriminativePCA, explore, load
from standout.cli import main
from standout.explorer import Engine, Explored, Groups
from standout.explorer._page import Page, Setting

pytest.importorskip("tornado", reason="tornado is not installed")
RNG = np.random.default_rng(2)
X = RNG.normal(size=(240, 6)) * np.array([4.0, 1, 1, 1, 1, 1])
X[:80, 5] *= 5
WORDS = ["ill"] * 80 + ["old"] * 80 + ["well"] * 80


@pytest.fixture(scope="module")
def exploration():
    with pytest.MonkeyPatch.context() as patch:
        # It does not end between two tests.
        patch.setattr("standout.explorer._server.GRACE", 3600.0)
        page = explore(X, WORDS, target="ill", features=list("abcdef"), browser=False, wait=False)
        yield page
        page.close()


def answer_to(exploration, path=None, host=None):
    """Ask for a page, and give the status and the text."""
    parts = urlsplit(exploration.address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    connection.request("GET", path or f"{parts.path}?{parts.query}", headers={"Host": host or parts.netloc})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply, text


def talked(exploration, messages, *, origin=None, until=None, token=None):
    """Talk to the server as a page does, and give the replies up to one of a kind."""
    from tornado.httpclient import HTTPRequest
    from tornado.websocket import websocket_connect

    parts = urlsplit(exploration.address)
    query = parts.query if token is None else f"token={token}"

    async def talk():
        headers = {"Origin": origin or f"http://{parts.netloc}"}
        socket = await websocket_connect(HTTPRequest(f"ws://{parts.netloc}/socket?{query}", headers=headers))
        for message in messages:
            await socket.write_message(json.dumps(message))
        replies, ended = [], False
        # Once enough was said, wait until the server has closed the socket, too.
        while (text := await asyncio.wait_for(socket.read_message(), 20)) is not None:
            if not ended:
                replies.append(json.loads(text))
            if not ended and until is not None and until(replies[-1]):
                ended = True
                socket.close()
        socket.close()
        return replies

    return asyncio.run(talk())


def is_done(what):
    return lambda reply: reply == {"kind": "done", "do": what}


# --- who is let in ----------------------------------------------------------------------------------------------------


def test_the_page_is_given_to_those_who_know_its_address(exploration):
    reply, text = answer_to(exploration)
    assert reply.status == 200
    assert text.startswith("<!doctype html>")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy, "nothing is loaded from anywhere"


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/report/1", "/socket", "/socket?token=wrong"])
def test_without_the_token_nothing_is_given(exploration, path):
    reply, text = answer_to(exploration, path)
    assert reply.status == 403
    assert "<" not in text


def test_a_name_that_was_made_to_point_here_is_refused(exploration):
    assert answer_to(exploration, host=f"evil.example:{exploration.port}")[0].status == 403
    assert answer_to(exploration, host=f"localhost:{exploration.port}")[0].status == 200


def test_pages_of_other_origins_are_refused(exploration):
    from tornado.httpclient import HTTPClientError

    for origin in (
        "http://evil.example",
        f"https://127.0.0.1:{exploration.port}",
        f"http://127.0.0.1:{exploration.port + 1}",
    ):
        with pytest.raises(HTTPClientError, match="403"):
            talked(exploration, [], origin=origin)
    with pytest.raises(HTTPClientError, match="403"):
        talked(exploration, [], token="wrong")


def test_there_is_no_report_before_one_is_saved(exploration):
    query = urlsplit(exploration.address).query
    assert answer_to(exploration, f"/report/1?{query}")[0].status == 404
    assert answer_to(exploration, f"/report/../../etc/passwd?{query}")[0].status == 404


# --- the conversation -------------------------------------------------------------------------------------------------


def test_the_answer_comes_first_and_the_held_out_ratio_follows(exploration):
    replies = talked(exploration, [{"do": "hello"}], until=is_done("hello"))
    kinds = [reply["kind"] for reply in replies]
    assert kinds[:4] == ["page", "answer", "state", "points"]
    fitted = DiscriminativePCA(2).fit(X[:80], background=[X[80:160], X[160:]])
    last = [reply for reply in replies if reply["kind"] == "answer"][-1]
    assert last["sure"]
    assert last["components"][0]["shown"].startswith(f"{fitted.held_out_ratio_[0]:.3g}")
    assert last["components"][0]["columns"][0]["name"] == "f"


def test_the_words_are_those_of_the_report(tmp_path, monkeypatch):
    for words in (PATIENTS, [*PATIENTS, "--side", "background"], [*PATIENTS, "--method", "pca"]):
        page = opened(words, tmp_path, monkeypatch)
        answer = [reply for reply in page.replies({"do": "hello"}) if reply["kind"] == "answer"][-1]
        folder = f"kept-{len(words)}-{words[-1]}"
        page.save(folder)
        summary = json.loads((tmp_path / folder / "summary.json").read_text())
        plain = {name: re.sub("[\u2068\u2069]", "", answer[name]) for name in ("title", "headline")}
        assert plain["title"] == summary["title"]
        # The report adds its verdict, which may come first.
        assert plain["headline"].partition(". ")[0].rstrip(".")[1:] in summary["headline"]


def test_stale_previews_are_dropped(exploration):
    steps = [{"do": "set", "name": "shrinkage", "value": value} for value in np.linspace(0, 1, 60).round(3).tolist()]
    messages = [{"do": "preview", "step": step} for step in steps] + [{"do": "step", "step": steps[-1]}]
    replies = talked(exploration, messages, until=is_done("step"))
    previews = [reply for reply in replies if reply.get("preview")]
    assert len(previews) < 30
    last = [reply for reply in replies if reply["kind"] == "answer"][-1]
    assert last["found"]["shrinkage"] == [1.0, 1.0]


def test_wrong_messages_are_answered_in_words_or_end_the_conversation(exploration):
    wrong = [
        {"do": "step", "step": {"do": "dance"}},
        {"do": "step", "step": {"do": "lasso", "side": "target", "how": "set", "polygon": [[0, 0], [1, 1]]}},
        {
            "do": "step",
            "step": {"do": "lasso", "side": "target", "how": "set", "polygon": [[90, 90], [91, 90], [91, 91]]},
        },
        {"do": "row", "row": 1000},
        {"do": "open", "file": "/no/such/file"},
        {"do": "sing"},
    ]
    for message in wrong:
        replies = talked(exploration, [message], until=is_done(message["do"]))
        assert [reply["kind"] for reply in replies] == ["page", "problem", "done"], message
        assert replies[1]["text"]
    assert [reply["kind"] for reply in talked(exploration, [["no", "message"]])] == ["page"]


def test_a_test_can_be_cancelled(exploration):
    replies = talked(
        exploration,
        [{"do": "verdict"}, {"do": "cancel"}],
        until=lambda reply: reply["kind"] in ("cancelled", "problem") or reply.get("verdict"),
    )
    assert replies[-1]["kind"] == "cancelled"
    replies = talked(exploration, [{"do": "verdict"}], until=lambda reply: reply.get("verdict"))
    assert replies[-1]["verdict"]["text"].startswith("This is more than chance explains")


def test_many_pages_at_a_time_are_answered_each_by_its_own(exploration):
    found = {}

    def ask(name):
        step = {"do": "choose", "side": "target", "groups": [name]}
        found[name] = talked(exploration, [{"do": "step", "step": step}], until=is_done("step"))

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("ill", "old", "well") for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, replies in found.items():
        state = next(reply for reply in replies if reply["kind"] == "state")
        assert state["sides"][0] == {"name": name, "count": 80}


def test_names_from_the_data_stay_text():
    hostile = ["<img src=x onerror=alert(1)>", "</script>", "a\u202eb"]
    data = Explored(hostile, Groups.of(WORDS[:3] + WORDS[-3:]), X[[0, 1, 2, 237, 238, 239], :3])
    page = Page(Setting(Engine(data), [], lambda question, folder: None))
    replies = list(page.replies({"do": "hello"}))
    names = [bar["name"] for bar in replies[0]["components"][0]["columns"]]
    assert set(names) == set(hostile), "the script of the page sets them as text"
    assert "\u202e" not in replies[0]["headline"]


def test_a_port_that_is_taken_is_refused(exploration):
    with pytest.raises(ValueError, match=f"port={exploration.port} cannot be used"):
        explore(X, WORDS, port=exploration.port, browser=False, wait=False)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"image_shape": (2, 2)}, "4 pixels, but there are 6 columns"),
        ({"target": "dead"}, "no group 'dead'"),
        ({"background": X, "y": WORDS}, "without backgrounds"),
        ({"magic": 1}, "no step"),
        ({"session": "/no/such/session.json"}, "no file"),
    ],
)
def test_wrong_calls_are_refused_before_a_page_is_opened(parameters, words):
    with pytest.raises((ValueError, OSError), match=words):
        explore(
            X,
            parameters.pop("y", None if "background" in parameters else WORDS),
            browser=False,
            wait=False,
            **parameters,
        )


# --- the command ------------------------------------------------------------------------------------------------------


def told(capsys):
    return capsys.readouterr().err


def test_the_command_without_data_says_what_to_give(capsys):
    assert main(["explore"]) == 2
    assert "nothing to explore" in told(capsys)
    assert main(["explore", "a.csv", "--demo"]) == 2
    assert main(["explore", "a.csv", "--standardize", "background"]) == 2
    assert "needs a background" in told(capsys)


def opened(words, tmp_path, monkeypatch):
    """Run the command up to the page, and give the page."""
    made = {}

    def serve(engine, first, **known):
        made["page"] = Page(Setting(engine, first, known["save"], known["command"], known["session"]))
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("standout.cli._explore.serve", serve)
    assert main(["explore", *words]) == 130
    return made["page"]


def state_of(page):
    return next(reply for reply in page.replies({"do": "hello"}) if reply["kind"] == "state")


CASES = {
    "files": PATIENTS,
    "prepared": [*PATIENTS, "--standardize", "background", "--drop", "protein_01"],
    "other method": [*PATIENTS, "--method", "cpca", "--alpha", "3"],
    "both ends": [*PATIENTS, "--side", "both", "--robust", "rows"],
    "groups": [PATIENTS[0], "--group-column", "subtype", "--target", "A", "--id-column", "id"],
    "open": [PATIENTS[0], "--group-column", "subtype", "--id-column", "id"],
}


@pytest.mark.parametrize("name", CASES)
def test_the_code_and_the_command_on_the_page_repeat_the_answer(name, tmp_path, monkeypatch):
    page = opened(CASES[name], tmp_path, monkeypatch)
    if name == "open":
        list(page.replies({"do": "step", "step": {"do": "choose", "side": "target", "groups": ["A"]}}))
        assert state_of(page)["command"].startswith("standout fit")
        list(page.replies({"do": "step", "step": {"do": "leave", "rows": [2]}}))
    state = state_of(page)
    answer = page._engine.answer(page.history.state.question)
    known = {}
    exec(state["python"], known)
    np.testing.assert_allclose(known["model"].eigenvalues_, answer.model.eigenvalues_, rtol=1e-10)
    words = state["command"].split(" ")
    assert words[:2] == ["standout", "explore" if name == "open" else "fit"]
    if name == "open":
        assert next(page.replies({"do": "keep", "file": "session.json"}))["kind"] == "kept"
        words = words[: words.index("#") - 1]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert main([*words[1:], "--quiet"]) == 0
    model = load(tmp_path / "OUT/model.skops")
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    np.testing.assert_allclose(last.eigenvalues_, answer.model.eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(last.held_out_ratio_, answer.ratios, rtol=1e-10)


def test_what_is_saved_on_the_page_is_a_result_of_fit(tmp_path, monkeypatch):
    page = opened(PATIENTS, tmp_path, monkeypatch)
    list(page.replies({"do": "step", "step": {"do": "leave", "rows": [3, 5]}}))
    report = page.save("kept")
    assert report.is_file()
    scores = (tmp_path / "kept/scores.csv").read_text().splitlines()
    assert not any(line.split(",")[1] in ("P004", "P006") for line in scores)
    with pytest.raises(ValueError, match="already exists"):
        page.save("kept")
    # The code of the report repeats it, too.
    known, summary = {}, json.loads((tmp_path / "kept/summary.json").read_text())
    exec(summary["code"], known)
    assert "standout explore patients.csv" in summary["asked"]["command"]
    answer = page._engine.answer(page.history.state.question)
    np.testing.assert_allclose(known["model"].eigenvalues_, answer.model.eigenvalues_, rtol=1e-10)
    assert main(["info", "kept"]) == 0


def test_a_page_of_very_many_columns_lists_some_and_counts_all():
    """The kernel's γ is one by the number of columns, unless it was set."""
    rows = RNG.normal(size=(12, 2100))
    data = Explored.of([rows[:6], rows[6:]], ["ill", "well"], [f"gene {k}" for k in range(2100)])
    state = state_of(Page(Setting(Engine(data), [], lambda history, folder: None)))
    assert (len(state["columns"]), state["n_columns"]) == (2000, 2100)


def test_a_file_and_the_demo_exclude_each_other(capsys):
    assert main(["explore", PATIENTS[0], "--demo"]) == 2
    assert "exclude each other" in told(capsys)
    assert main(["explore"]) == 2
    assert "nothing to explore" in told(capsys)


def test_files_that_are_read_in_parts_are_compared_by_groups(tmp_path, monkeypatch):
    page = opened([*PATIENTS[:3], "--drop", "id", "--drop", "subtype", "--stream"], tmp_path, monkeypatch)
    state = state_of(page)
    assert not state["in_memory"]
    known = {}
    exec(state["python"], known)
    answer = page._engine.answer(page.history.state.question)
    np.testing.assert_allclose(known["model"].eigenvalues_, answer.model.eigenvalues_, rtol=1e-10)
    step = {"do": "lasso", "side": "target", "how": "set", "polygon": [[0, 0], [1, 1], [0, 1]]}
    assert "larger than memory" in next(page.replies({"do": "step", "step": step}))["text"]
    page.save("kept")
    assert (tmp_path / "kept/report.html").is_file()
