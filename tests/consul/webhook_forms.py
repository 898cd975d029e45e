"""The examples of webhooks, the forms that their receivers document, and a receiver that checks requests.

The rules are written after the public pages that ``page`` names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import yaml
from jsonschema.validators import Draft202012Validator

from tests.support.background import Server
from tests.support.consul import Agent
from tests.support.examples import CONFIGS

RFC_3339 = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})$"
TIME = {"type": "string", "pattern": RFC_3339}


def mapping(required: str, **properties: object) -> dict[str, Any]:
    """Return the rule of an object with these properties and no others."""
    return {
        "type": "object",
        "required": required.split(),
        "properties": properties,
        "additionalProperties": False,
    }


def text(chars_max: int, chars_min: int = 1) -> dict[str, Any]:
    """Return the rule of a text of so many characters."""
    return {"type": "string", "minLength": chars_min, "maxLength": chars_max}


@dataclass(frozen=True)
class Form:
    """How a receiver wants its requests.

    page: the public page that documents the form.
    path: the path of the URL.
    rule: the JSON schema of the body.
    status: the status of a request that is accepted.
    answer: the body of that response.
    """

    page: str
    path: str
    rule: Mapping[str, Any]
    status: int
    answer: bytes

    def faults(self, path: str, content_type: str, document: object) -> list[str]:
        """Return what is wrong with a POST."""
        found = [f"{error.json_path}: {error.message}" for error in self._validator.iter_errors(document)]
        found += [] if path == self.path else [f"path {path}"]
        return found + ([] if content_type == "application/json" else [f"Content-Type {content_type}"])

    @property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.rule)


_SECTION = mapping(
    "type text",
    type={"const": "section"},
    text=mapping("type text", type={"enum": ["plain_text", "mrkdwn"]}, text=text(3000)),
)
_PAYLOAD = mapping(
    "summary source severity",
    summary=text(1024),
    source=text(255),
    severity={"enum": ["critical", "error", "warning", "info"]},
    timestamp=TIME,
    component=text(255),
    group=text(255),
    **{"class": text(255)},
    custom_details={"type": "object"},
)
_EVENT = {
    **mapping(
        "routing_key event_action",
        routing_key=text(32, 32),
        event_action={"enum": ["trigger", "acknowledge", "resolve"]},
        dedup_key=text(255),
        payload=_PAYLOAD,
    ),
    "if": {"properties": {"event_action": {"const": "trigger"}}},
    "then": {"required": ["payload"]},
    "else": {"required": ["dedup_key"]},
}
SLACK = Form(
    "https://api.slack.com/messaging/webhooks",
    "/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    mapping("text", text=text(40_000), blocks={"type": "array", "maxItems": 50, "items": _SECTION}),
    200,
    b"ok",
)
PAGERDUTY = Form(
    "https://developer.pagerduty.com/docs/send-alert-event",
    "/v2/enqueue",
    _EVENT,
    202,
    b'{"status": "success", "message": "Event processed", "dedup_key": "x"}',
)
FORMS = {"slack": SLACK, "pagerduty": PAGERDUTY}


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
class Checks:
    """What a receiver has seen.

    received: the body of each request, decoded, in their order.
    faults: everything in which a request deviated from the form.
    refuses: how many requests from now on get the status 500.
    """

    received: list[Any] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    refuses: int = 0


class Receiver(Server):
    """A receiver of one form: it accepts a request of this form, and answers any other with 400."""

    def __init__(self, form: Form) -> None:
        super().__init__(_Handler, poll_s=0.01)
        self.form = form
        self.checks = Checks()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        form, checks = self.server.form, self.server.checks
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        faults = form.faults(self.path, self.headers["Content-Type"], document)
        checks.faults += faults
        status = 400 if faults else form.status
        if checks.refuses:
            checks.refuses -= 1
            status = 500
        checks.received.append(document)
        self.send_response(status)
        self.send_header("Content-Length", str(len(form.answer)))
        self.end_headers()
        self.wfile.write(form.answer)

    def log_message(self, *about: object) -> None:
        """Print nothing, because the output belongs to the test."""
