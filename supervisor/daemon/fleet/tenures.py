"""The tenures of one election as Consul keeps them: a document of JSON, the newest tenure first.

    {"version": 1, "count": 61, "tenures": [{"token": 17, "node": "n1", "session": "…", "from": "…", …}, …]}

Pure functions. Many nodes write the document, each by check-and-set, so a function makes the next document of
the present one and of what this node has to tell. Fields of later versions survive. What is no such document
is never written over. No value of a key goes into it, because a value may be a secret.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from supervisor.config.formats.json_values import DEPTH_MAX, is_deeper
from supervisor.core.actions import Reason
from supervisor.core.outcomes import KeyView

VERSION = 1  # of the document; fields may be added, and none changes its meaning or is removed
TENURES_MAX = 50
BYTES_MAX = 64 * 1024
TEXT_CHARS_MAX = 200
INDEX_MAX = 2**63
SILENT = "ended without a word"
FIELDS = ("token", "node", "session", "from", "to", "why", "by", "note", "guard")
_TEXTS = ("node", "session", "from")  # each tenure has them
ACTED = "acted"  # of a tenure to tell: whether anything of it has begun
GONE = "gone"  # of a tenure to tell: which session held the key before, and when this node missed it first

Tenure = dict[str, Any]


class ForeignHistory(Exception):
    """What is not to be written over, because it is damaged or of another program. The text says why."""


def document_of(key: KeyView) -> dict[str, Any]:
    """Return the document in this key, which is an empty one if there is no key. Raises ForeignHistory."""
    if not key.present:
        return {"version": VERSION, "count": 0, "tenures": []}
    if key.foreign_flags or key.is_marked:
        raise ForeignHistory("its flags are not 0, so it is another program's")
    try:
        found: Any = json.loads(key.value.decode()) if len(key.value) <= BYTES_MAX else None
        is_ours = found["version"] == VERSION and _is_index(found["count"])
        is_ours = is_ours and not is_deeper(found, DEPTH_MAX)
        if is_ours and len(found["tenures"]) <= TENURES_MAX and all(map(_is_tenure, found["tenures"])):
            return dict(found)
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError):
        pass
    raise ForeignHistory("its value is no history of tenures, or a damaged one")


def _is_tenure(found: Any) -> bool:
    texts = all(isinstance(found[name], str) for name in _TEXTS)
    others = (found.get(name) for name in FIELDS if name not in (*_TEXTS, "token"))
    return texts and _is_index(found["token"]) and all(isinstance(each, str | None) for each in others)


def _is_index(found: Any) -> bool:
    return type(found) is int and 0 <= found < INDEX_MAX


def with_tenures(document: Mapping[str, Any], told: Iterable[Mapping[str, Any]], missed: int = 0) -> bytes:
    """Return the document with these tenures, the oldest first. An older one without an end gets one.

    Raises ForeignHistory for a document that has no room for any tenure.

    missed: how many further tenures there were, of which nothing else is known any more.
    """
    tenures: list[Tenure] = [dict(each) for each in document["tenures"]]
    count = document["count"] + missed
    for tenure in told:
        known = next((each for each in tenures if each["session"] == tenure["session"]), None)
        if known is not None:
            _complete(known, tenure)
        else:
            count += _insert(tenures, tenure)
    del tenures[TENURES_MAX:]
    while len(value := _encoded({**document, "count": count, "tenures": tenures})) > BYTES_MAX:
        if not tenures[1:]:
            raise ForeignHistory("what else is in its value leaves no room for a tenure")
        tenures.pop()
    return value


def _complete(known: Tenure, told: Mapping[str, Any]) -> None:
    """Add what a node tells of its own tenure, which counts for more than what its successor saw.

    But a later process that finds a crash tells nothing of the end that its successor did not know.
    """
    stays = ("from", "to", "why") if told["why"] == Reason.CRASHED and known.get("to") else ("from",)
    known.update({name: each for name, each in _cut(told).items() if each is not None and name not in stays})


def _insert(tenures: list[Tenure], told: Mapping[str, Any]) -> int:
    """Insert a tenure above the older ones, and return 1; return 0 if there is no room for one so old.

    A token tells what is older. A smaller one is newer only where Consul's indexes began anew, because its
    data was lost; a clock alone proves nothing, because it may be ahead.
    """
    anew = all(2 * told["token"] < each["token"] and each["from"] < told["from"] for each in tenures)
    is_older = (anew or each["token"] < told["token"] for each in tenures)
    place = next((at for at, older in enumerate(is_older) if older), len(tenures))
    if place >= TENURES_MAX:
        return 0
    for former in tenures[place:]:
        if former.get("to") is None:
            session, gone_at = told.get(GONE) or ("", "")
            seen_at = gone_at if session == former["session"] else told["from"]
            former.update({"to": max(seen_at, former["from"]), "why": SILENT})
    tenures.insert(place, _cut(told))
    return 1


def _cut(told: Mapping[str, Any]) -> Tenure:
    fields = {name: told.get(name) for name in FIELDS}
    return {name: each[:TEXT_CHARS_MAX] if isinstance(each, str) else each for name, each in fields.items()}


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
