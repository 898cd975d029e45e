"""``history``: who led an election and why that changed, as the daemons have told Consul."""

import argparse
import json
from collections.abc import Sequence
from datetime import datetime

from supervisor.adapters.consul.fleet_requests import history_key
from supervisor.adapters.consul.query import key_now
from supervisor.commands.cli.consul_commands import fleet_of, load_item
from supervisor.commands.cli.display.grid import Column, grid
from supervisor.commands.cli.display.table import duration
from supervisor.commands.cli.display.text import escape
from supervisor.commands.cli.exit_codes import DONE, NEGATIVE, USAGE
from supervisor.commands.cli.terminal import columns, fail, run_async
from supervisor.daemon.fleet.tenures import FIELDS, ForeignHistory, Tenure, document_of

JSON_VERSION = 1  # of the shape; an added field does not change it
NONE = "-"
_COLUMNS = (
    Column("TOKEN", rank=2),
    Column("NODE", 8),
    Column("FROM"),
    Column("TO", rank=1),
    Column("LASTED", rank=3),
    Column("WHY", 12),
    Column("BY", 8, rank=4),
)


def history(options: argparse.Namespace) -> int:
    name, (config, item) = options.name, load_item(options.config, options.name, "election")
    if item.kind != "election":
        return fail(USAGE, f"cannot tell the history of {name}: it is kept of elections, not of semaphores")
    fleet = fleet_of(config, options.config, f"tell the history of {name}", "none is kept")
    key = history_key(fleet.prefix, name)
    try:
        document = document_of(run_async(key_now(config.consul, key)))
    except ForeignHistory as error:
        return fail(NEGATIVE, f"cannot tell the history of {name}: {key}: {error}")
    tenures = document["tenures"][: options.limit]
    if options.json:
        shown = [{field: each.get(field) for field in FIELDS} for each in tenures]
        about = {"name": name, "key": key, "count": document["count"]}
        print(json.dumps({"version": JSON_VERSION, **about, "tenures": shown}, indent=2))
    elif tenures:
        print("\n".join(grid(_COLUMNS, _rows(tenures), columns())))
    return DONE if tenures else fail(NEGATIVE, f"no tenure of {name} is known: {key} does not exist")


def _rows(tenures: Sequence[Tenure]) -> list[list[str]]:
    """Return a row for each tenure. The next node's guard, if there was one, says how it ended as well."""
    guards = [None, *(each.get("guard") for each in tenures)]
    return [
        [
            str(each["token"]),
            escape(each["node"]),
            escape(each["from"]),
            escape(each.get("to") or NONE),
            _lasted(each),
            escape(", ".join(filter(None, (each.get("why"), guard))) or NONE),
            escape(": ".join(filter(None, (each.get("by"), each.get("note")))) or NONE),
        ]
        for each, guard in zip(tenures, guards, strict=False)
    ]


def _lasted(tenure: Tenure) -> str:
    try:
        ends = [datetime.fromisoformat(tenure[name]) for name in ("from", "to")]
        return duration((ends[1] - ends[0]).total_seconds())
    except (TypeError, ValueError):  # no end yet, or another program's text
        return NONE
