"""``/v1/txn``: the body as operations, the outcome as an answer."""

import base64
import string
from binascii import Error as Base64Error
from typing import Any

from supervisor.devagent import txn
from supervisor.devagent.api.bodies import Fields, kind_of
from supervisor.devagent.api.call import VALUE_BYTES_MAX, Answered, Call, text, too_large
from supervisor.devagent.gotext import load_json
from supervisor.devagent.kv import Entry
from supervisor.devagent.messages import Answer
from supervisor.devagent.shapes import entry_shape
from supervisor.devagent.txn import OPERATIONS_MAX, Operation, Outcome

LEADER_HEADERS = (("X-Consul-Knownleader", "true"), ("X-Consul-Lastcontact", "0"))
READ_ONLY = {"Index": 0, "LastContact": 0, "KnownLeader": True, "ConsistencyLevel": ""}
NOT_HERE = ("node", "service", "check", "intention")  # Consul has operations on these as well
BASE64 = frozenset(string.ascii_letters + string.digits + "+/")
FIELDS = {"verb", "key", "value", "flags", "index", "session", "namespace"}


def transaction(call: Call) -> Answer:
    """One transaction; 409 when it was refused."""
    body = call.request.body
    if len(body) > VALUE_BYTES_MAX:
        return too_large(body, "txn_max_req_len")
    try:
        operations = _operations(load_json(body))
    except ValueError as error:
        return text(400, f"Failed to parse body: {error}")
    if len(operations) > OPERATIONS_MAX:
        words = f"Transaction contains too many operations ({len(operations)} > {OPERATIONS_MAX})"
        return text(413, words)
    writes = txn.is_write(operations)
    if not writes:
        call.check_options()
    call.to_server(stale=not writes and "stale" in call.parameters)
    return _answer(call, txn.run(call.store, operations, call.now), writes)


def _answer(call: Call, outcome: Outcome, writes: bool) -> Answer:
    errors = [{"OpIndex": position, "What": what} for position, what in outcome.errors]
    results = [{"KV": entry_shape(entry)} for entry in outcome.results]
    shown = {"Results": None if errors else results, "Errors": errors or None}
    status = 409 if errors else 200
    if writes:
        return call.json(shown, status)
    return call.json(shown | READ_ONLY, status, LEADER_HEADERS)


def _operations(body: Any) -> tuple[Operation, ...]:
    """Raises ValueError with the words of Go's decoder."""
    if body is not None and not isinstance(body, list):
        raise ValueError(f"json: cannot unmarshal {kind_of(body)} into Go value of type api.TxnOps")
    found = [_operation(Fields(wrapped, "TxnOp", "api.TxnOp")) for wrapped in body or ()]
    return tuple(operation for operation in found if operation is not None)


def _operation(wrapped: Fields) -> Operation | None:
    """None for one that names nothing: Consul passes over it."""
    for name in wrapped.names():
        if name in NOT_HERE:
            words = f"the embedded agent has no transactions on a {name}, only on keys"
            raise Answered(text(400, words))
        if name != "kv":
            raise ValueError(f'json: unknown field "{wrapped.spelled(name)}"')
    fields = wrapped.one("KV", "KVTxnOp.KV", "api.KVTxnOp")
    if fields is None:
        return None
    for name in fields.names():
        if name not in FIELDS:
            raise ValueError(f'json: unknown field "{fields.spelled(name)}"')
    entry = Entry(
        key=fields.text("Key"),
        value=_value(fields.text("Value", kind="[]uint8")),
        flags=fields.unsigned("Flags"),
        session=fields.text("Session"),
        modify_index=fields.unsigned("Index"),
    )
    return Operation(fields.text("Verb", kind="api.KVOp"), entry)


def _value(encoded: str) -> bytes:
    """Raises ValueError, with the place of the first character that is no base64."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (Base64Error, ValueError):
        wrong = (at for at, character in enumerate(encoded) if character not in BASE64)
        at = next(wrong, len(encoded) - len(encoded) % 4)
        raise ValueError(f"illegal base64 data at input byte {at}") from None
