"""The explorer's server: what it serves, to whom, and when it ends."""

import http.client
import json
import socket
import stat
import time
import webbrowser
from pathlib import Path

import pytest

import standout
from exploring import CONDITIONS, MICE, N_ROWS, asked, rows
from standout._messages import InvalidValueError
from standout.explorer import Engine, State, Table, serve
from standout.explorer._page import Page


@pytest.fixture
def table():
    made = Table.of(rows(), CONDITIONS)
    made.words["mouse"] = MICE.astype(object)
    return made


@pytest.fixture
def page(table):
    return Page(Engine(table), State("y", bytes(N_ROWS)))


@pytest.fixture
def served(table):
    made = serve(table, asked(table), {})
    yield made
    made.close()


def request(served, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    known = {"Host": served.hosts[0], "X-Standout-Token": served.token, "Origin": f"http://{served.hosts[0]}"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    every = {name: value for name, value in (known | given).items() if value is not None}
    connection.request("GET" if body is None else "POST", path, body, every)
    reply = connection.getresponse()
    read = reply.read()
    connection.close()
    return reply, read


def test_nothing_is_served_without_token_host_and_origin(served):
    ask = json.dumps({"do": "hello"})
    assert request(served, "/ask?page=a", ask)[0].status == 200
    refused = [
        *({"X_Standout_Token": token} for token in (None, "x", served.token[:-1])),
        *({"Host": host} for host in ("evil.example", f"evil.example:{served.port}", "")),
        *({"Origin": origin} for origin in ("http://evil.example", "null")),
    ]
    for headers in refused:
        for path, body in (("/", None), ("/ask?page=a", ask), ("/leave?page=a", ""), ("/report?page=a&number=0", None)):
            reply, read = request(served, path, body, **headers)
            assert reply.status == 403, (headers, path)
            assert b"token" in read
    # A message without an origin may be a form of another site, and is refused.
    assert request(served, "/ask?page=a", ask, Origin=None)[0].status == 403
    assert request(served, f"/?token={served.token}", None, X_Standout_Token=None, Origin=None)[0].status == 200
    assert request(served, "/nothing", None)[0].status == 404
    assert socket.gethostbyname("127.0.0.1") == served._server.server_address[0]


def test_bodies_are_read_after_the_token_and_to_a_limit(served):
    def raw(*lines):
        with socket.create_connection(("127.0.0.1", served.port), timeout=60) as plug:
            plug.sendall("\r\n".join([*lines, "", ""]).encode())
            return plug.recv(100)

    head = ["POST /ask?page=a HTTP/1.1", f"Host: {served.hosts[0]}", f"Origin: http://{served.hosts[0]}"]
    token = f"X-Standout-Token: {served.token}"
    # No byte of the body is sent: the server answers before it reads the body.
    assert b" 403 " in raw(*head, "Content-Length: 100000000")
    assert b" 413 " in raw(*head, token, "Content-Length: 100000000")
    assert b" 411 " in raw(*head, token, "Transfer-Encoding: chunked")
    assert b" 411 " in raw(*head, token, "Content-Length: -5")


def test_the_page_allows_its_own_script_only_and_has_no_data(served):
    reply, read = request(served, "/")
    policy = reply.headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert "frame-ancestors 'none'" in policy
    assert b"mouse" not in read
    assert b"http://" not in read.replace(b"http://www.w3.org/2000/svg", b"")
    assert reply.headers["Referrer-Policy"] == "no-referrer"


def test_messages_that_make_no_sense_get_a_sentence(served):
    for body in (
        "",
        "[]",
        "7",
        "{",
        "{}",
        '{"do": "__class__"}',
        '{"do": "reply"}',
        '{"do": "rows", "rows": [1]}',
        '{"do": "role"}',
        '{"do": "role", "values": [[]], "role": "king"}',
        '{"do": "column", "name": "x"}',
        '{"do": "set", "name": "roles", "value": ""}',
        '{"do": "set", "name": "value", "value": "1e999"}',
        '{"do": "lasso", "polygon": [[0, 0], [1, NaN], [1]], "role": "target"}',
        "[" * 50_000,
        '{"do": "preview", "value": -3}',
        '{"do": "view", "axes": ["a"]}',
        '{"do": "open", "text": "{}"}',
    ):
        reply, read = request(served, "/ask?page=a", body)
        assert reply.status == 200
        assert set(json.loads(read)) == {"problem"}, body
    assert "answer" in json.loads(request(served, "/ask?page=a", '{"do": "hello"}')[1])


def test_the_token_is_in_a_private_file_and_not_on_a_command_line(served, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    served.open_browser()
    assert served.token not in opened[0]
    file = Path(opened[0].removeprefix("file://"))
    assert served.token in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    served.close()
    assert not file.exists()


def test_it_ends_after_the_last_page(table, monkeypatch):
    monkeypatch.setattr("standout.explorer.GRACE", 0.2)
    served = serve(table, asked(table), {})
    for name in ("a", "b"):
        request(served, f"/ask?page={name}", '{"do": "hello"}')
    request(served, "/leave?page=a", "")
    time.sleep(0.8)
    assert request(served, "/ask?page=b", '{"do": "hello"}')[0].status == 200
    request(served, "/leave?page=b", "")
    served.wait()
    with pytest.raises(ConnectionError):
        request(served, "/")


def test_python_opens_the_page_and_notebooks_show_it_inline(monkeypatch):
    X = rows()
    with pytest.raises(InvalidValueError, match="port"):
        standout.explore(X, CONDITIONS, port=10**6, browser=False, wait=False)
    monkeypatch.setattr("standout.explorer._in_notebook", lambda: True)
    made = standout.explore(X, CONDITIONS, target="ill", wait=False)
    try:
        assert made.address.replace("&", "&amp;") in made._repr_html_()
        assert "frame-ancestors http://localhost:*" in request(made, "/")[0].headers["Content-Security-Policy"]
        assert json.loads(request(made, "/ask?page=a", '{"do": "hello"}')[1])["state"]["counts"] == [80, 160, 0]
    finally:
        made.close()


def test_without_its_packages_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("standout._messages.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'standout\[explore\]'"):
        standout.explore(rows())
