"""Watching a run: what a browser is told while the ledger grows, and who is answered."""

import json
import threading
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest
from report_cases import a_header, made

from dualrs.errors import BadSetting
from dualrs.report.watch import HOST, Watched, server
from dualrs.storage import Ledger


@contextmanager
def serving(path, make_page=lambda: b"a page"):
    with server(path, make_page, 0) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        try:
            yield found.server_port
        finally:
            found.shutdown()
            thread.join()


def ask(port, path, method="GET", host=None):
    connection = HTTPConnection(HOST, port)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers


def begun(path, count=3):
    """A ledger that lists inputs, with no votes yet."""
    with Ledger.create_or_resume(path, a_header()) as ledger:
        ledger.add_inputs((f"toy/{i}", i, i % 4) for i in range(count))
    return path


def test_a_finished_run_is_told_and_shown(tmp_path):
    with serving(made(tmp_path / "a.ledger")) as port:
        status, body, headers = ask(port, "/")
        assert status == 200
        assert b"a.ledger" in body
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        told = json.loads(ask(port, "/standing")[1])
        assert (told["inputs"], told["done"]) == (12, 12)
        assert told["run"].startswith("certificates under rule fusion · toy </script> set")
        assert ask(port, "/page")[:2] == (200, b"a page")


def test_the_page_is_made_again_only_as_inputs_finish(tmp_path):
    path, made_so_often = made(tmp_path / "a.ledger"), []
    watched = Watched(path, lambda: b"%d" % (made_so_often.append(0) or len(made_so_often)))
    assert watched.page() == watched.page() == b"1"
    made(tmp_path / "longer.ledger", count=13).replace(path)
    assert watched.page() == watched.page() == b"2"


def test_before_the_first_input_is_finished_it_says_so(tmp_path):
    with serving(begun(tmp_path / "a.ledger"), lambda: pytest.fail("there is nothing to show")) as port:
        assert b"No input is finished yet" in ask(port, "/page")[1]
        told = json.loads(ask(port, "/standing")[1])
        assert (told["done"], told["votes_per_second"], told["seconds_left"]) == (0, 0.0, None)


def test_inputs_are_named_as_they_finish(tmp_path):
    path = begun(tmp_path / "a.ledger", count=12)
    watched = Watched(path, bytes)
    assert watched.standing()["latest"] == []
    made(path)
    latest = watched.standing()["latest"]
    assert len(latest) == 8
    assert all(line.startswith("toy/") for line in latest)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80"])
def test_other_names_of_this_machine_are_not_answered(tmp_path, host):
    with serving(begun(tmp_path / "a.ledger")) as port:
        assert ask(port, "/standing", host=host)[0] == 403


def test_nothing_else_is_served_and_nothing_is_taken(tmp_path):
    with serving(begun(tmp_path / "a.ledger")) as port:
        assert ask(port, "/../a.ledger")[0] == 404
        assert ask(port, "/", method="POST")[0] == 501


def test_a_ledger_that_cannot_be_read_is_said(tmp_path):
    path = begun(tmp_path / "a.ledger")
    with serving(path) as port:
        path.write_bytes(b"no ledger")
        status, body, _ = ask(port, "/page")
        assert status == 500
        assert b"a.ledger" in body


def test_a_port_that_is_taken_is_refused(tmp_path):
    path = begun(tmp_path / "a.ledger")
    with serving(path) as port, pytest.raises(BadSetting, match=f"port {port} .*give another --port"):
        server(path, bytes, port)
