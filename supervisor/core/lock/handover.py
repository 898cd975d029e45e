"""The hint with which a holder hands its key over: the value that its release leaves behind.

A holder that steps down for a named node releases the key with a value that names a session of that node. A
key without Session has no leader, so no reader takes the hint for a leader's value. The value of the next
holder replaces it.

The other contenders leave the key to the named session for HANDOVER_S, counted on their own clocks from the
moment at which they saw the key free. The named session itself does not wait. So a hint only delays a
contender that may try, and never decides whether it may try.

Only the exact bytes of ``hint_for`` are a hint. Any other value is ignored, such as one of a later version.
"""

import re

HANDOVER_S = 10.0  # the named node acquires within milliseconds, so after that long it is dead, or not fit
_HINT = re.compile(rb'\{"consul-supervisor":\{"handover_to":"([0-9A-Za-z-]{1,64})"\}\}')


def hint_for(session: str) -> bytes:
    """Return the value that hands the key over to this session."""
    return b'{"consul-supervisor":{"handover_to":"%s"}}' % session.encode()


def hinted_session(value: bytes) -> str | None:
    """Return the session to which the key is handed over. None: the value is no hint."""
    hint = _HINT.fullmatch(value)
    return hint[1].decode() if hint else None
