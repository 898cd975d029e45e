"""The language server that editors use for YAML, spoken to as an editor does: LSP over stdio.

Only a small part of the protocol is here: opening a file, and what an editor shows at a place in it. The
server may fetch nothing, so its knowledge comes from the file's own modeline.
"""

import json
import os
import re
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from tests.support.supervisor import PATIENCE_S, ROOT

PROGRAM = ROOT / ".cache" / "language-server" / "node_modules" / ".bin" / "yaml-language-server"
SETTINGS = {
    "yaml": {
        "validate": True,
        "hover": True,
        "completion": True,
        "schemaStore": {"enable": False},
        "kubernetesCRDStore": {"enable": False},
    }
}
READ_BYTES = 65536

Message = dict[str, Any]


class LanguageServer:
    """One server process; it ends with the ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._asked = 0
        self._diagnostics: dict[str, list[Message]] = {}

    def __enter__(self) -> Self:
        assert PROGRAM.exists(), f"{PROGRAM} is not there; tests/setup/get_language_server.sh brings it"
        with (self._folder / "language-server.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", str(PROGRAM), "--stdio"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self._ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": CAPABILITIES})
        self._send({"method": "initialized", "params": {}})
        self._send({"method": "workspace/didChangeConfiguration", "params": {"settings": SETTINGS}})
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        with self._process as process:  # closes its pipes
            process.kill()

    # --- what an editor shows ------------------------------------------------------------------------

    def open(self, path: Path, text: str | None = None) -> list[Message]:
        """Open the file, once, with this text or its own, and return its diagnostics."""
        content = path.read_text() if text is None else text
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": content}
        assert path.as_uri() not in self._diagnostics, f"{path} is open"
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        deadline = time.monotonic() + PATIENCE_S
        while path.as_uri() not in self._diagnostics:
            self._receive(deadline)
        return self._diagnostics[path.as_uri()]

    def completions(self, path: Path, line: int, column: int) -> dict[str, Message]:
        """Return the offers at this place (counted from 0), by label."""
        answer = self._ask("textDocument/completion", _place(path, line, column)) or {"items": []}
        items = answer["items"] if isinstance(answer, dict) else answer
        return {item["label"]: item for item in items}

    def hover(self, path: Path, line: int, column: int) -> str:
        """Return the text that is shown when the pointer rests there; blank for nothing.

        The server sends Markdown, in which a backslash stands before punctuation.
        """
        answer = self._ask("textDocument/hover", _place(path, line, column))
        return re.sub(r"\\([^\w\s])", r"\1", str(answer["contents"]["value"])) if answer else ""

    # --- the protocol --------------------------------------------------------------------------------

    def _ask(self, method: str, params: Message) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        deadline = time.monotonic() + PATIENCE_S
        while (answer := self._receive(deadline)).get("id") != self._asked or "method" in answer:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _send(self, message: Message) -> None:
        assert self._process is not None and self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self, deadline: float) -> Message:
        """Return the next message; requests and notifications of the server are handled here."""
        head = self._read_to(b"\r\n\r\n", deadline)
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        while len(self._unread) < length:
            self._read_more(deadline)
        body, self._unread = self._unread[:length], self._unread[length:]
        message: Message = json.loads(body)
        if message.get("method") == "textDocument/publishDiagnostics":
            self._diagnostics[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "result": _answer(message)})
        return message

    def _read_to(self, end: bytes, deadline: float) -> bytes:
        while end not in self._unread:
            self._read_more(deadline)
        found, _, self._unread = self._unread.partition(end)
        return found

    def _read_more(self, deadline: float) -> None:
        assert self._process is not None and self._process.stdout is not None
        left_s = max(0.0, deadline - time.monotonic())
        assert select.select([self._process.stdout], [], [], left_s)[0], "the language server says nothing"
        read = os.read(self._process.stdout.fileno(), READ_BYTES)
        assert read, f"the language server has ended: see {self._folder}"
        self._unread += read


CAPABILITIES = {
    "workspace": {"configuration": True},
    "textDocument": {
        "completion": {"completionItem": {"snippetSupport": True}},
        "hover": {"contentFormat": ["markdown"]},
        "publishDiagnostics": {},
    },
}


def _answer(request: Message) -> Any:
    if request["method"] == "workspace/configuration":
        return [SETTINGS.get(item.get("section", ""), {}) for item in request["params"]["items"]]
    return None  # registrations of capabilities


def _place(path: Path, line: int, column: int) -> Message:
    return {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": column}}
