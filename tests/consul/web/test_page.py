"""GET of a real supervisor: one file, and headers that let a browser run its script and style alone.

The tests with a browser are in tests/system/programs/page.
"""

import base64
import hashlib
import re
from datetime import UTC, datetime
from importlib import resources

import pytest

from docs.page import status
from supervisor.reporting.telemetry.item_history import TRANSITIONS_MAX
from tests.consul.elections.scene import Scene
from tests.consul.web.reader import Reader
from tests.consul.web.test_pages import assert_documented
from tests.support.pages import HTTP

ABOUT = " ".join(HTTP.read_text().split())
PAGE = resources.files("supervisor.reporting.web").joinpath("page.html").read_text()


def test_the_page_of_the_package_is_served_and_a_browser_runs_nothing_else(scene: Scene) -> None:
    """Only the page's own script and style may run. The made-up status, which is that of the pictures and of
    the tests in a browser, has the shape of the real one.
    """
    reader = Reader(scene.leader("a"))
    for told in (reader.ask("/"), reader.ask_socket("/")):
        assert (told.status, told.body) == (200, PAGE)
        assert told.headers["content-type"] == "text/html; charset=utf-8"
    assert reader.ask("/", "HEAD").body == ""
    headers = reader.ask("/").headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": hash_of("script"),
        "style-src": hash_of("style"),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    for shape in (reader.status(), status(datetime.now(UTC))):
        assert_documented(shape)


def hash_of(tag: str) -> str:
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_no_other_place() -> None:
    """A browser would fetch nothing, and its policy would stop nothing."""
    assert not re.findall(r"https?://|@import|url\(", PAGE)
    assert not re.findall(r"<(?:script|style|link|img)[^>]* (?:src|href)=(?!\"data:,\")", PAGE)
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(| style=| on[a-z]+=", PAGE
    )


@pytest.mark.parametrize(
    ("constant", "words"),
    [
        ("POLL_MS = 1000", "The page asks each second"),
        ("POLL_HIDDEN_MS = 15000", "each 15 seconds while it is hidden"),
        ("ANSWER_MS = 3000", "no answer for 3 seconds"),
        ("FLEET_MS = 10000", "The page asks for [them](#the-fleet) every 10 seconds"),
        ("RECENT_S = 300", "an error that was over in the last five minutes"),
        ("MANY = 4", "each cause of four items or more"),
        ("EVENTS_SHOWN = 100", "opens the last 100 events"),
        ("OPEN_MAX = 6", "Up to six items are shown opened"),
    ],
)
def test_the_figures_in_the_docs_are_those_of_the_page(constant: str, words: str) -> None:
    assert f"const {constant};" in PAGE and words in ABOUT


def test_the_docs_have_the_number_of_transitions_that_are_kept() -> None:
    assert f"the last {TRANSITIONS_MAX} transitions of each item" in ABOUT
