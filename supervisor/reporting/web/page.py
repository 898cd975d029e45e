"""The page at ``/``: one file, and the headers that let a browser run only the file's own script.

The file is read once, at the start, so that the page and the answers of this process fit each other after an
upgrade on disk. The file is served unchanged: its script requests the status.
"""

import base64
import hashlib
import re
from importlib import resources

from supervisor.reporting.http_server import HttpAnswer

INLINE = re.compile(rb"<(script|style)>(.*?)</\1>", re.DOTALL)


def load_page() -> HttpAnswer:
    """Return the whole answer to ``GET /``. Raises OSError when the package lacks its file."""
    html = resources.files("supervisor.reporting.web").joinpath("page.html").read_bytes()
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", content_security_policy(html)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-store"),
    )
    return HttpAnswer(200, html, headers)


def content_security_policy(html: bytes) -> str:
    """Return the policy: the file's own script and style, by their hashes, and requests to this daemon.

    ``require-trusted-types-for`` makes the browser refuse to turn any text into markup.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hashes(html, b'script')}",
            f"style-src {_hashes(html, b'style')}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _hashes(html: bytes, tag: bytes) -> str:
    found = [text for name, text in INLINE.findall(html) if name == tag]
    assert found, f"the page has no inline {tag.decode()}"
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(text).digest()).decode()}'" for text in found)
