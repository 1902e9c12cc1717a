"""A headless Chromium, driven through its debugging pipe: no driver, no socket, no package."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds for one answer; a busy machine is slow to start it


def find():
    """The path of a Chromium on this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def move(browser, slider, value):
    """Move a slider, as a hand would."""
    browser.evaluate(
        f"(() => {{ const e = document.getElementById({json.dumps(slider)}); e.value = {value};"
        "e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def choose(browser, select, value):
    """Choose an option."""
    browser.evaluate(
        f"(() => {{ const e = document.getElementById({json.dumps(select)}); e.value = {json.dumps(value)};"
        "e.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )


class Browser:
    """One page in one browser. ``errors`` collects what the console complains about and what was asked of a network."""

    def __init__(self, program, folder):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        command = [
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
        ]
        command += ["--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}"]
        # Chromium reads commands from descriptor 3 and answers on 4.
        shell = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command], pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self.errors = []
        self._rest, self._number, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._write)
        os.close(self._read)

    def call(self, method, **parameters):
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def open(self, path):
        """Open a page from disk and wait until it is drawn."""
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete'")

    def evaluate(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression):
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.05)

    def resize(self, width, height=900):
        """Show the page at a width."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """Take the light or the dark scheme."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, selector):
        """Click in the middle of an element, as a hand would."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        """Press a named key: Escape, ArrowRight, Tab, Enter."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, path, *, whole=True):
        """Save what is seen, or the whole page, as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            assert ready, "Chromium does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "Chromium ended"
            self._rest += part
        message, self._rest = self._rest.split(b"\0", 1)
        event = json.loads(message)
        self._note(event.get("method"), event.get("params", {}))
        return event

    def _note(self, method, found):
        if method == "Runtime.exceptionThrown":
            self.errors.append(found["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.errors.append(str([a.get("value") for a in found["args"]]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.errors.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not found["request"]["url"].startswith(("file:", "data:")):
            self.errors.append(f"asked for {found['request']['url']}")
