"""The value of ``<key>/.tenure``: a tenure record as JSON.

    {"session": "...", "state": "acting", "lock_delay": "45s", "lose_time": "9s", "target": "db1", ...}

Fields of later versions are ignored. Any client of Consul may have written the value, and a hook receives
parts of it, so each field has a rule. Pure functions of bytes.
"""

import json
import re
from typing import Any

from supervisor.config.formats.durations import parse_duration
from supervisor.config.formats.slot_record import SESSION
from supervisor.core.claim.record import UNREADABLE, State, TenureRecord
from supervisor.core.lease import OUTAGE_LOCKOUT_MAX_S, PRUNE_DELAY_MAX_S
from supervisor.core.settings import Place

# Without controls, and what turns the direction of a line or ends it; half of a surrogate pair has no bytes.
_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]{0,255}")


def encoded(record: TenureRecord) -> bytes:
    content = {
        "session": record.session,
        "state": record.state,
        "lock_delay": f"{record.lock_delay_s:.3f}s",
        "lose_time": f"{record.lose_time_s:.3f}s",
        "target": record.target or "",
        "node": record.node or "",
        "host": record.place.host,
        "machine": record.place.machine,
        "boot": record.place.boot,
        "journal": record.place.journal,
        "token": record.token,
        "margin": f"{record.margin_s:.3f}s",
        "serial": record.serial,
        "waited": f"{record.waited_s:.3f}s",
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def decoded(value: bytes, index: int) -> TenureRecord:
    """Return the record, or UNREADABLE for a value in which a field breaks its rule.

    index: that at which the record was made, which is the fencing token of a tenure that began with it.
    """
    try:
        fields = json.loads(value)
        session, token, serial = fields["session"], fields.get("token", 0), fields.get("serial", 0)
        is_number = type(token) is type(serial) is int and token >= 0 and serial >= 0
        if not SESSION.fullmatch(session) or not is_number:
            return UNREADABLE
        lock_delay_s = min(parse_duration(fields["lock_delay"]), OUTAGE_LOCKOUT_MAX_S)
        return TenureRecord(
            session=session,
            state=State(fields["state"]),
            lock_delay_s=lock_delay_s,
            lose_time_s=min(parse_duration(fields["lose_time"]), PRUNE_DELAY_MAX_S),
            target=name_in(fields["target"]) or None,
            node=name_in(fields["node"]) or None,
            place=_place(fields),
            token=token or index,
            margin_s=min(parse_duration(fields.get("margin", "0s")), lock_delay_s),
            serial=serial,
            waited_s=min(parse_duration(fields.get("waited", "0s")), lock_delay_s),
        )
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return UNREADABLE


def _place(fields: Any) -> Place:
    machine, host, boot = (name_in(fields[each]) for each in ("machine", "host", "boot"))
    return Place(machine, host, boot, name_in(fields.get("journal", "")))


def name_in(given: Any) -> str:
    """Return the name of a machine or node. Raises ValueError or TypeError for what is none."""
    if not _NAME.fullmatch(given):
        raise ValueError("a name with control characters, or a long one")
    return str(given)
