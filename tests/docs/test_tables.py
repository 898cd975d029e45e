"""What docs/ shows of a configuration within its tables, which `check` must accept where it belongs."""

import json
import re
from pathlib import Path

import pytest

from supervisor.config import ConfigError, Problem, schema
from tests.support.configured import loaded
from tests.support.pages import DOCS, ROOT, name, rows

OF_OTHERS = ("token: 1000",)  # of Corosync's file
PLACEHOLDERS = re.compile(r"\b(PATH|NAME)\b")
KEYS = {key for rule in [schema(), *schema()["$defs"].values()] for key in rule.get("properties", {})}
PLACES = """LINE
consul: {LINE}
fleet: {LINE}
watchdog: {LINE}
elections: {app: {LINE}}
elections: {app: {session: {LINE}}}
elections: {app: {candidate_check: {LINE}}}
elections: {app: {fence: {LINE}}}
elections: {app: {fence: {shell: a, LINE}}}
elections: {app: {fence: {webhook: 'http://h/', LINE}}}
elections: {app: {on_lose: [{LINE}]}}
elections: {app: {on_lose: [{shell: a, LINE}]}}
semaphores: {app: {limit: 2, LINE}}
semaphores: {app: {LINE}}""".splitlines()


def lines() -> list[tuple[str, str]]:
    """Return page and line of each piece of code in a table that sets a key of ours."""
    return [
        (name(page), code)
        for page in DOCS
        for row in re.findall(r"^\|.*", page.read_text(), re.MULTILINE)
        for code in re.findall(r"`([^`]+)`", row)
        if (found := re.match(r"(\w+): ", code)) and found[1] in KEYS and code not in OF_OTHERS
    ]


@pytest.mark.parametrize(("page", "line"), lines(), ids=lambda text: text)
def test_a_line_of_a_table_is_accepted_where_it_belongs(page: str, line: str, tmp_path: Path) -> None:
    refused: list[Problem] = []
    for place in PLACES:
        try:
            text = place.replace("LINE", PLACEHOLDERS.sub("/path", line))
            loaded(tmp_path, text + "\nelections: {some: {}}\n" * ("elections" not in place))
        except ConfigError as error:
            refused += error.problems
        else:
            return
    raise AssertionError(f"{page}: {line}: {[each for each in refused if 'no such key' not in each.message]}")


@pytest.mark.parametrize(
    "device", rows(ROOT / "docs" / "fence.md", "device | command"), ids=lambda row: row[0]
)
def test_the_command_for_a_device_is_a_fence(device: list[str], tmp_path: Path) -> None:
    code = re.sub(r"`(.*?)`.*", r"\1", device[1])
    fence = code if code.startswith("webhook: ") else f"shell: {json.dumps(code)}"
    text = f"elections: {{app: {{session: {{lock_delay: 45s}}, fence: {{{fence}}}}}}}\n"
    assert not [each for each in loaded(tmp_path, text).warnings if ".fence" in each.path]
