"""The successor whom a holder names: the value that its release leaves behind.

A holder that steps down for a named node releases the key with a value that names a session of that node. A
key without Session has no leader, so no reader takes it for a leader's value. The value of the next
holder replaces it.

The other contenders leave the key to the named session for HANDOVER_S, counted on their own clocks from the
moment at which they saw the key free. The named session itself does not wait. So it only delays a
contender that may try, and never decides whether it may try.

Only the exact bytes of ``naming`` name one. Any other value is ignored, such as one of a later version.
"""

import re

HANDOVER_S = 10.0  # the named node acquires within milliseconds, so after that long it is dead, or not fit
_NAMING = re.compile(rb'\{"consul-supervisor":\{"handover_to":"([0-9A-Za-z-]{1,64})"\}\}')


def naming(session: str) -> bytes:
    """Return the value that hands the key over to this session."""
    return b'{"consul-supervisor":{"handover_to":"%s"}}' % session.encode()


def named_session(value: bytes) -> str | None:
    """Return the session to which the key is handed over. None: the value names none."""
    named = _NAMING.fullmatch(value)
    return named[1].decode() if named else None
