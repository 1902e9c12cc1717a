"""A run that is watched in a real browser: the standing is told, and the page comes anew when it is asked for."""

import threading

import pytest
from report_cases import a_header, made

from dualrs.report.watch import HOST, server
from dualrs.storage import Ledger

TOLD = "(document.querySelector('#standing')?.textContent ?? '')"
PAGE = "(document.querySelector('#page')?.contentDocument?.body?.textContent ?? '')"


@pytest.fixture
def watched(chromium, tmp_path):
    path, pages = tmp_path / "a.ledger", []
    with Ledger.create_or_resume(path, a_header()) as ledger:
        ledger.add_inputs((f"toy/{i}", i, i % 4) for i in range(12))

    def make_page():
        pages.append(b"<!doctype html><title>p</title><p>page %d</p>" % len(pages))
        return pages[-1]

    with server(path, make_page, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        chromium.errors.clear()
        chromium.call("Page.navigate", url=f"http://{HOST}:{serving.server_port}/")
        yield chromium, path
        chromium.call("Page.navigate", url="about:blank")
        serving.shutdown()
        thread.join()


def test_the_standing_follows_the_run(watched):
    browser, path = watched
    browser.wait(f"{TOLD}.startsWith('0 of 12 inputs done')")
    browser.wait(f"{PAGE}.includes('No input is finished yet')")
    made(path)
    browser.wait(f"{TOLD}.includes('The run is finished')")
    assert browser.evaluate("document.querySelector('#bar').value") == 12
    assert browser.evaluate("document.querySelectorAll('#latest li').length") == 8
    browser.click("#refresh")
    browser.wait(f"{PAGE}.includes('page 0')")
