"""Every configuration below ``examples``, whatever its folder."""

import re

from tests.support.supervisor import ROOT

CONFIGS = ROOT / "examples" / "configs"
MODELINE = "# yaml-language-server: $schema="
CONFIGURATIONS = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if path.read_text().startswith(MODELINE)
)
VARIABLES = {
    "NODE_ADDRESS": "192.0.2.11",
    "POSTGRESQL_ADDRESS": "192.0.2.11:5432",
    "REDIS_ADDRESS": "192.0.2.11:6379",
}
"""What some of them are filled in from."""
WARNED = {"haproxy": ("http.listen",)}
"""By folder what one is warned of on purpose: a balancer elsewhere must be able to ask."""

_ABSENT_HERE = re.compile("cannot start here: |: cannot read /")


def warnings_in(checked: str) -> list[str]:
    """List what `check` warns of, apart from the programs and secrets that this machine lacks."""
    return [line for line in checked.splitlines() if "warning" in line and not _ABSENT_HERE.search(line)]
