"""Lines of JSON that each begin with a checksum, so that damage is found."""

import json
import zlib
from contextlib import suppress
from typing import Any

_encode = json.JSONEncoder(separators=(",", ":")).encode


def line_of(content: dict[str, Any]) -> bytes:
    """Return the line that has this content, with its line feed."""
    text = _encode(content).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def content_of(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line. None: the line is not as it was written."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    with suppress(ValueError, RecursionError):
        content = json.loads(text)
        return content if isinstance(content, dict) else None
    return None
