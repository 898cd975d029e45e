"""A header of Consul 1.11 and later marks a list that leaves keys out; here a server of the test adds it."""

import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import requests

from supervisor.adapters.consul.semaphore import SlotsReader
from tests.support.background import Server
from tests.support.supervisor import Supervisor, command

FILTERED = "X-Consul-Results-Filtered-By-ACLs"


class Filtering(Server):
    """A Consul that empties every list and denies every other request; a watch waits."""

    def __init__(self) -> None:
        super().__init__(_Handler, poll_s=0.01)
        self.over = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Filtering

    def do_GET(self) -> None:
        if "index=" in self.path and "index=0" not in self.path:
            self.server.over.wait(30.0)
        status, body = (404, b"") if "recurse" in self.path else (403, b"Permission denied")
        self.send_response(status)
        for name, value in (("X-Consul-Index", "7"), (FILTERED, "true"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *about: object) -> None:
        return


@pytest.fixture
def consul() -> Iterator[Filtering]:
    with Filtering() as server:
        yield server
        server.over.set()


def test_an_observer_reports_a_filtered_list_and_never_that_no_node_holds(
    consul: Filtering, tmp_path: Path
) -> None:
    told = tmp_path / "told"
    item = {"prefix": "p", "limit": 2, "contend": False, "on_change": [{"shell": f"touch {told}"}]}
    config = {"consul": {"address": consul.url}, "log": {"format": "json"}, "semaphores": {"s": item}}
    with closing(Supervisor(tmp_path / "node", config)) as node:
        node.start()
        assert "may not read" in node.wait_line("notice", item="s")["why"]
        node.wait_line("consul-denied", item="s")
        assert node.stop() == 0 and not told.exists()


@pytest.mark.long
def test_verify_cannot_answer_by_a_filtered_list(consul: Filtering) -> None:
    session = "11111111-2222-3333-4444-555555555555"
    environ = {"CONSUL_HTTP_ADDR": consul.url}
    done = command("verify", "--key", "p/.lock", "--session", session, environ=environ)
    assert done.returncode == 69 and 'key_prefix "p/" { policy = "list" }' in done.stderr


@pytest.mark.parametrize(("says", "filtered"), [("true", True), ("false", False), (None, False)])
def test_the_header_is_read_of_empty_and_other_lists(says: str | None, filtered: bool) -> None:
    for status, body in ((404, b""), (200, b"[]")):
        response = requests.Response()
        response.status_code, response._content = status, body
        response.headers.update({} if says is None else {FILTERED.lower(): says})
        view = SlotsReader("p").view(7, response)
        assert (view.filtered, view.hides) == (filtered, filtered)
