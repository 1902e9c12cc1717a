"""Watch: the page of a run that still goes on, served to this machine alone.

Enters: a ledger that another process writes, and how its page is made. Leaves: answers to a browser. The ledger is only
read, and whoever watches cannot change anything.
"""

import json
import time
from collections import deque
from collections.abc import Callable
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from string import Template
from threading import Lock
from typing import Any

from dualrs.errors import BadSetting, DualrsError
from dualrs.storage.ledger import Ledger
from dualrs.storage.status import last_written, standing, votes_left

HOST = "127.0.0.1"
_SPAN = 60.0  # seconds over which the speed is measured
_LATEST = 8  # inputs that are named as they finish
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-src 'self'"
)

MakePage = Callable[[], bytes]


class Watched:
    """What is known of a run from one question to the next: its speed, what finished last, and its page."""

    def __init__(self, path: Path, make_page: MakePage) -> None:
        self._path, self._make_page = path, make_page
        self._seen: deque[tuple[float, int]] = deque()  # when it was written, and how many votes it had
        self._finished: set[str] | None = None
        self._latest: deque[str] = deque(maxlen=_LATEST)
        self._page: tuple[int, bytes] = (-1, b"")
        self._one_at_a_time = Lock()

    def standing(self) -> dict[str, Any]:
        """How far the run is, in plain values; seconds that are not known are None."""
        with self._one_at_a_time, Ledger.open(self._path) as ledger:
            header, now, written = ledger.header, standing(ledger), last_written(self._path)
            self._note_finished(ledger)
        self._seen.append((written, now.votes))
        while written - self._seen[0][0] > _SPAN and len(self._seen) > 2:
            self._seen.popleft()
        (since, before), left = self._seen[0], None
        rate = (now.votes - before) / (written - since) if written > since else 0.0
        if rate and now.done:
            left = votes_left(header, now) / rate
        return {
            "run": f"{header.contents} · {header.dataset} · {header.amount}",
            "inputs": now.inputs,
            "done": now.done,
            "votes": now.votes,
            "votes_per_second": rate,
            "seconds_left": left,
            "seconds_since_written": max(time.time() - written, 0.0),
            "latest": list(self._latest),
        }

    def page(self) -> bytes:
        """The page of the inputs that are finished, made anew if there are more of them than last time."""
        with self._one_at_a_time:
            with Ledger.open(self._path) as ledger:
                done = standing(ledger).done
            if not done:
                return _document("<p>No input is finished yet.</p>")
            if self._page[0] != done:
                self._page = done, self._make_page()
            return self._page[1]

    def _note_finished(self, ledger: Ledger) -> None:
        finished = ledger.concluded()
        known = finished if self._finished is None else self._finished
        certificates = ledger.certificates() if finished - known else {}
        self._latest.extend(f"{name}: {certificates[name].certificate.said}" for name in sorted(finished - known))
        self._finished = set(finished)


def _document(body: str) -> bytes:
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>dualrs</title>{body}</html>'.encode()


def server(path: Path, make_page: MakePage, port: int) -> ThreadingHTTPServer:
    """A server of the page of a run on a port of this machine; 0 is one that is free. It serves once it is told to."""
    watched = Watched(path, make_page)
    shell = Template(resources.files(__package__).joinpath("watch.html").read_text("utf-8")).substitute(
        name=escape(path.name)
    )

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            # A page of another site could reach this machine under a name of its own; it is not answered.
            if self.headers.get("Host") not in {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}:  # type: ignore[attr-defined]
                return self.send_error(HTTPStatus.FORBIDDEN)
            try:
                match self.path:
                    case "/":
                        return self._send(shell.encode(), "text/html; charset=utf-8", _POLICY)
                    case "/standing":
                        return self._send(json.dumps(watched.standing()).encode(), "application/json")
                    case "/page":
                        return self._send(watched.page(), "text/html; charset=utf-8")
            except DualrsError as error:
                return self._send(_document(f"<p>{escape(str(error))}</p>"), "text/html; charset=utf-8", status=500)
            return self.send_error(HTTPStatus.NOT_FOUND)

        def _send(self, body: bytes, kind: str, policy: str = "", status: int = HTTPStatus.OK) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            if policy:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Leave the terminal alone."""

    try:
        return ThreadingHTTPServer((HOST, port), Answer)
    except OSError as error:
        raise BadSetting(
            f"port {port} of this machine cannot be used: {error.strerror}; give another --port"
        ) from error
