"""A real Chromium for one test, driven over its DevTools protocol.

Commands go through a pipe (``--remote-debugging-pipe``: JSON that ends in a zero byte), so no port, no driver
and no library is necessary. The browser has an empty profile of its own and never outlives its test: the end
of the ``with`` block kills it, and so does PDEATHSIG when the test process is killed.
"""

import base64
import itertools
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Self

import psutil

from tests.support.supervisor import kill_all, until

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # root has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
ANSWER_S = 30.0
READ_BYTES = 1 << 20
KEYS = {  # name -> code, number and text of a key press
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
}


class Browser:
    """One page in one browser.

    Its methods raise AssertionError when the page's script throws or an answer does not come.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._process: subprocess.Popen[bytes] | None = None
        self._session = ""
        self.events: list[dict[str, Any]] = []  # all events of the browser, oldest first

    def __enter__(self) -> Self:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        profile = f"--user-data-dir={self._folder / 'profile'}"
        argv = (CHROMIUM, *FLAGS, profile, "about:blank")
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'  # the descriptors that Chromium expects
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*("setpriv", "--pdeathsig", "KILL", "bash", "-c", script, "-"), *argv],
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"], "HOME": str(self._folder), "TZ": "UTC"},
                start_new_session=True,
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._attach()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        family = [*main.children(recursive=True), main]  # all of them write into the profile
        kill_all(family)
        _, left = psutil.wait_procs(family, ANSWER_S)
        assert not left, f"Chromium did not end: {left}"
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def _attach(self) -> None:
        pages = self.call("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(f"{domain}.enable")

    # --- the protocol ----------------------------------------------------------------------------

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        number = next(self._numbers)
        message: dict[str, object] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        give_up_at = time.monotonic() + ANSWER_S
        while (said := self._hear(method, give_up_at)).get("id") != number:
            self.events.append(said)
        assert "error" not in said, f"{method}: {said['error']}"
        result: dict[str, Any] = said["result"]
        return result

    def _hear(self, method: str, give_up_at: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, give_up_at - time.monotonic()))
            read = os.read(self._from, READ_BYTES) if ready else b""
            log = (self._folder / "chromium.log").read_text(errors="replace")[-2000:]
            assert read, f"Chromium did not answer {method}:\n{log}"
            self._buffer += read
        text, _, self._buffer = self._buffer.partition(b"\0")
        said: dict[str, Any] = json.loads(text)
        return said

    def told(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # reads every event that came before its answer
        return [event["params"] for event in self.events if event["method"] == method]

    # --- the page --------------------------------------------------------------------------------

    def reset(self) -> None:
        """Load an empty page, without preferences of a reader and without former events."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.setBypassCSP", enabled=False)
        self.call("Emulation.setEmulatedMedia", features=[])
        self.resize(1200, 800)
        self.events.clear()

    def open(self, url: str) -> None:
        """Load this URL, and return when the document is loaded."""
        failed = self.call("Page.navigate", url=url).get("errorText")
        assert not failed, f"{url}: {failed}"
        until(lambda: self.run("document.readyState === 'complete' && location.href !== 'about:blank'"), url)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str, within_s: float = ANSWER_S) -> Any:
        """Return the expression's first true value."""
        return until(lambda: self.run(script), f"{script}\n{self.text()}", within_s)

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def press(self, key: str) -> None:
        code, number, text = KEYS[key]
        said = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **said)
        self.call("Input.dispatchKeyEvent", type="keyUp", **said)

    def resize(self, width: int, height: int, *, phone: bool = False, scale: float = 1) -> None:
        """Set the size of the visible page, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, **features: str) -> None:
        """Set the preferences of the reader: ``color_scheme="dark"``, ``reduced_motion="reduce"``."""
        wanted = [
            {"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", features=wanted)

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
