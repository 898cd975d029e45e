"""Every configuration below ``examples``, in any folder."""

import re

from tests.support.supervisor import ROOT

CONFIGS = ROOT / "examples" / "configs"
MODELINE = "# yaml-language-server: $schema="
CONFIGURATIONS = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if path.read_text().startswith(MODELINE)
)
VARIABLES = {
    "NODE_ADDRESS": "192.0.2.11",
    "PAGERDUTY_ROUTING_KEY": "0123456789abcdef0123456789abcdef",
    "POSTGRESQL_ADDRESS": "192.0.2.11:5432",
    "REDIS_ADDRESS": "192.0.2.11:6379",
    "SLACK_WEBHOOK_URL": "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
}
"""Variables that some of the configurations need."""

_ABSENT_HERE = re.compile("cannot start here: |: cannot read /|: cannot open /dev/watchdog: No such")


def warnings_in(checked: str) -> list[str]:
    """List the warnings of `check`, except those of programs, devices and secrets that this machine lacks."""
    warnings = (line for line in checked.splitlines() if line.startswith("warning: "))
    return [line for line in warnings if not _ABSENT_HERE.search(line)]
