"""The examples of webhooks, and a server that receives their requests."""

import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.support.background import Server
from tests.support.consul import Agent
from tests.support.examples import CONFIGS

HARMLESS = {"start": "true", "stop": "true", "unmount": "false", "power-off": "true"}
"""What each command of an example becomes here, by its name."""


def example(name: str, root: str, agent: Agent, key: str, **changes: object) -> dict[str, Any]:
    """Return an example whose webhooks go to the server at ``root``, and whose commands are harmless."""
    content: dict[str, Any] = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    (item,) = content["elections"].values()
    for hook in (hook for hooks in item.values() if isinstance(hooks, list) for hook in hooks):
        if "webhook" not in hook:
            hook.pop("exec", None)
            hook["shell"] = HARMLESS[hook["name"]]
        elif not hook["webhook"].startswith("${"):
            hook["webhook"] = root + urlsplit(hook["webhook"]).path.removeprefix("/")
    if "run" in item:
        item["run"] = {"exec": ["sleep", "1000"]}
    item.update(key=key, **changes)
    return {"consul": {"address": agent.url}, "log": {"format": "json"}, **content}


@dataclass
class Received:
    """What a receiver has got.

    bodies: the body of each request, decoded, in their order.
    paths: the path of each request.
    refuses: how many requests from now on get the status 500.
    """

    bodies: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    refuses: int = 0


class Receiver(Server):
    """A receiver that accepts each POST of JSON."""

    def __init__(self) -> None:
        super().__init__(_Handler, poll_s=0.01)
        self.received = Received()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        received = self.server.received
        assert self.headers["Content-Type"] == "application/json"
        received.paths.append(self.path)
        status = 500 if received.refuses else 202
        received.refuses = max(0, received.refuses - 1)
        received.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *about: object) -> None:
        """Print nothing, because the output belongs to the test."""
