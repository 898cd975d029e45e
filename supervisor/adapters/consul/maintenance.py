"""Consul's HTTP API for the maintenance mode of a node: the agent's own checks.

``consul maint -enable`` registers a critical check, whose notes are the operator's reason. The agent answers
from its own memory, without its servers. It leaves out the checks that the token may not read.
"""

import requests

from supervisor.adapters.consul.calls import Call, get
from supervisor.adapters.consul.responses import is_filtered, json_of, text
from supervisor.core.outcomes import Denied, InMaintenance, Outcome
from supervisor.core.requests import ReadMaintenance

CHECK = "_node_maintenance"
REASON_CHARS_MAX = 200
HIDDEN = "Consul leaves out checks that the token may not read, so the maintenance mode is not known"


def read(request: ReadMaintenance) -> Call:
    return get("agent/checks", {"filter": f'CheckID == "{CHECK}"'})


def shown(request: ReadMaintenance, response: requests.Response) -> Outcome:
    checks = json_of(response, dict)
    if CHECK not in checks:
        return Denied(HIDDEN) if is_filtered(response) else InMaintenance()
    reason = " ".join(text(checks[CHECK], "Notes", "").split())[:REASON_CHARS_MAX] or "no reason is given"
    why = f"this node is in Consul's maintenance mode: {reason}; `consul maint -disable` ends that"
    return InMaintenance(why, reason)
