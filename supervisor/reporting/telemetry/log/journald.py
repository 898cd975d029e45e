"""Lines for journald by its native protocol: a sentence to read, and a field for each value to filter by.

systemd's documentation describes the protocol under "Native Journal Protocol". A line is one datagram of
fields. journald itself adds the time, the unit and the process. While journald is behind, lines wait up to
WAITING_BYTES_MAX. A line that cannot be sent, because there is no journald, goes to standard error as text.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from supervisor.adapters.filesystem.writing import WAITING_BYTES_MAX, LateWriter, NonBlockingWriter
from supervisor.adapters.hooks.output import printable
from supervisor.reporting.telemetry.names import PRIORITIES, Level, sentence, texts

JOURNAL = "/run/systemd/journal/socket"
PREFIX = "CONSUL_SUPERVISOR_"
FACILITY = 3  # daemon, as systemd gives to the lines of a service
# A datagram must fit into the send buffer, which is 208 KiB by default (net.core.wmem_default). A line has
# some ten values, and few of them are long.
VALUE_BYTES_MAX = 16_384
RETRY_S = 0.02  # ten lines may wait in the kernel (net.unix.max_dgram_qlen), or 512 where systemd has booted


class JournalWriter(LateWriter):
    """The way to journald, and to standard error where journald cannot be reached."""

    def __init__(self, fallback: NonBlockingWriter, *, path: str = JOURNAL, prefixed: bool) -> None:
        super().__init__(RETRY_S)
        self._fallback = fallback
        self._path = path  # the socket of journald
        self._prefixed = prefixed  # standard error is the journal, so a line there begins with its priority
        self._socket: socket.socket | None = None
        self._waiting: deque[tuple[bytes, str]] = deque()
        self._waiting_bytes = 0

    def write(self, level: Level, event: str, fields: Mapping[str, Any]) -> None:
        """Send a line, now or later. Never wait and never raise."""
        priority, lines = PRIORITIES[level], sentence(event, fields).split("\n")
        message = "\n".join(printable(line.encode(errors="replace")) for line in lines)
        data = datagram(_line(priority, message, event, fields))
        if self._waiting_bytes + len(data) > WAITING_BYTES_MAX:
            self._fallback.dropped += 1
        else:
            prefix = f"<{priority}>" if self._prefixed else ""
            self._waiting.append((data, "".join(f"{prefix}{text}\n" for text in message.splitlines())))
            self._waiting_bytes += len(data)
        self.flush()

    def finish(self) -> None:
        """Wait for journald to take the rest. Then write the remaining lines to standard error."""
        super().finish()
        while self._waiting:
            self._fall_back()
        self._close()

    def _drain(self, wait_ms: int) -> bool:
        ends_at = time.monotonic() + wait_ms / 1000
        while self._waiting:
            try:
                self._send(self._waiting[0][0])
            except BlockingIOError:  # journald is behind
                if not self._has_room(ends_at - time.monotonic()):
                    return False
            except OSError:
                self._close()  # the next line looks whether there is a new socket
                self._fall_back()
            else:
                self._take_first()
        return True

    def _send(self, data: bytes) -> None:
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._socket.connect(self._path)
        self._socket.send(data)

    def _has_room(self, within_s: float) -> bool:
        """Return whether journald has taken lines within this time, so that more can be sent."""
        if self._socket is None or within_s <= 0:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        return bool(poll.poll(within_s * 1000))

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _fall_back(self) -> None:
        self._fallback.write(self._take_first())
        self._fallback.flush()

    def _take_first(self) -> str:
        """Remove the first line that waits, and return it as text."""
        data, text = self._waiting.popleft()
        self._waiting_bytes -= len(data)
        return text


def _line(priority: int, message: str, event: str, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the fields of a line. A list is several fields of one name."""
    yield "MESSAGE", message
    yield "PRIORITY", str(priority)
    yield "SYSLOG_IDENTIFIER", "consul-supervisor"
    yield "SYSLOG_FACILITY", str(FACILITY)
    yield f"{PREFIX}EVENT", event
    for name, value in fields.items():
        for text in texts(value):
            yield PREFIX + name.upper(), text


def datagram(fields: Iterable[tuple[str, str]]) -> bytes:
    """Return these fields as the protocol has them: a value with a newline has its length before it."""
    parts = []
    for name, text in fields:
        value = text.encode("utf-8", "backslashreplace")[:VALUE_BYTES_MAX]
        if b"\n" in value:
            parts.append(b"%b\n%b%b\n" % (name.encode(), len(value).to_bytes(8, "little"), value))
        else:
            parts.append(b"%b=%b\n" % (name.encode(), value))
    return b"".join(parts)
