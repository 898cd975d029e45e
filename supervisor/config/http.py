"""Resolves where the daemon listens over TCP: a literal address and a port.

A host name is refused, because the daemon would have to resolve the name at its start, with a resolver that
may be down or may answer differently tomorrow. The file must also show plainly where the status can be read.
"""

import ipaddress
import re
from typing import Any

from supervisor.config.problems import Report
from supervisor.config.settings import HttpSettings

PORT_MAX = 65535
_LISTEN = re.compile(r"(\[[^\[\]]+\]|[^\[\]:]+):([0-9]{1,5})")
_PATH = ("http", "listen")


def resolve(section: dict[str, Any] | None, report: Report) -> HttpSettings | None:
    """Return where to listen, and report an address that cannot be used. None: nowhere."""
    if section is None:
        return None
    match = _LISTEN.fullmatch(section["listen"])
    if match is None or int(match[2]) > PORT_MAX:
        example = "write ADDRESS:PORT, such as 127.0.0.1:8555 or [::1]:8555"
        report.refuse(_PATH, f"cannot be listened on: {example}, with a port up to {PORT_MAX}")
        return None
    try:
        address = ipaddress.ip_address(match[1].strip("[]"))
    except ValueError:
        report.refuse(_PATH, "cannot be a name: write an address of this machine, such as 127.0.0.1 or [::1]")
        return None
    if (address.version == 6) != match[1].startswith("["):
        report.refuse(
            _PATH,
            "cannot be separated from its port: put brackets around an IPv6 address, and around no other",
        )
        return None
    return HttpSettings(str(address), int(match[2]))
