"""A hub on this machine: repositories that are made, pushed to and fetched from, over the loopback."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Hub:
    """Holds files by repository; speaks what huggingface_hub asks."""

    def __init__(self):
        self.files = {}  # repository -> name -> content
        self.private = {}
        self.fetched = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                path = self.path.partition("?")[0]
                if path == "/api/repos/create":
                    asked = json.loads(body)
                    repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
                    hub.files.setdefault(repo, {})
                    hub.private[repo] = asked.get("private") or asked.get("visibility") == "private"
                    self.answer({"url": f"{hub.endpoint}/{repo}"})
                elif path == "/api/validate-yaml":
                    self.answer({"errors": [], "warnings": []})
                elif "/preupload/" in path:
                    names = [file["path"] for file in json.loads(body)["files"]]
                    modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
                    self.answer({"files": modes})
                elif "/commit/" in path:
                    repo = path.removeprefix("/api/models/").partition("/commit/")[0]
                    for line in map(json.loads, body.splitlines()):
                        if line["key"] == "file":
                            hub.files[repo][line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                    sha = hub.commit(repo)
                    self.answer({"commitUrl": f"{hub.endpoint}/{repo}/commit/{sha}", "commitOid": sha})
                else:
                    self.send_error(404)

            def do_GET(self):
                path = self.path.partition("?")[0]
                for repo, files in hub.files.items():
                    sha = hub.commit(repo)
                    if path in (f"/api/models/{repo}", f"/api/models/{repo}/revision/main"):
                        named = [{"rfilename": name} for name in files]
                        return self.answer({"id": repo, "sha": sha, "siblings": named}, sha)
                    if path.startswith(f"/api/models/{repo}/tree/"):
                        entries = [{"type": "file", "path": n, "size": len(c), "oid": n} for n, c in files.items()]
                        return self.answer(entries, sha)
                    name = path.removeprefix(f"/{repo}/resolve/{sha}/")
                    if name in files:
                        hub.fetched.append(name)
                        return self.answer(files[name], sha)
                return self.send_error(404)

            do_HEAD = do_GET

            def answer(self, body, sha=""):
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(200)
                self.send_header("ETag", f'"{hashlib.sha1(body).hexdigest()}"')
                self.send_header("X-Repo-Commit", sha)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def commit(self, repo):
        return hashlib.sha1(repr(sorted(self.files[repo].items())).encode()).hexdigest()

    def go_away(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub to which everybody is logged in, and an empty cache."""
    constants = pytest.importorskip("huggingface_hub.constants")
    hf_api = pytest.importorskip("huggingface_hub.hf_api")
    hub = Hub()
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    for name, value in {
        "ENDPOINT": hub.endpoint,
        "HUGGINGFACE_CO_URL_TEMPLATE": template,
        "HF_HUB_CACHE": str(tmp_path / "cache"),
        "HF_HUB_OFFLINE": False,
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(hf_api.api, "endpoint", hub.endpoint)
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    yield hub
    hub.go_away()
