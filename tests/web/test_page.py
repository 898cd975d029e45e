"""GET / of a real supervisor: one file, and headers by which a browser runs that and nothing else.

What a browser makes of it: tests/programs/page.
"""

import base64
import hashlib
import re
from importlib import resources

from tests.elections.scene import Scene
from tests.web.reader import Reader

PAGE = resources.files("supervisor.web").joinpath("page.html").read_text()


def test_the_page_is_served_as_it_stands_in_the_package(scene: Scene) -> None:
    reader = Reader(scene.leader("a"))
    for told in (reader.ask("/"), reader.ask_socket("/")):
        assert (told.status, told.body) == (200, PAGE)
        assert told.headers["content-type"] == "text/html; charset=utf-8"
    assert reader.ask("/", "HEAD").body == ""


def test_a_browser_may_run_the_page_s_own_script_and_style_and_nothing_else(scene: Scene) -> None:
    headers = Reader(scene.leader("a")).ask("/").headers
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


def hash_of(tag: str) -> str:
    (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_page_names_no_other_place() -> None:
    """Nothing that a browser would fetch, and nothing that its policy would stop."""
    assert not re.findall(r"https?://|@import|url\(", PAGE)
    assert not re.findall(r"<(?:script|style|link|img)[^>]* (?:src|href)=(?!\"data:,\")", PAGE)
    assert not re.findall(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(| style=| on[a-z]+=", PAGE
    )
