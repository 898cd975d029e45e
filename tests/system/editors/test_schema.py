"""An editor completes, explains and checks each example by its modeline.

Text that a test types into an example is opened as another file beside the example.
"""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from supervisor.config import schema
from tests.support.supervisor import ROOT
from tests.system.editors.language_server import LanguageServer

MODELINE = "# yaml-language-server: $schema=../../schemas/config.schema.json"
OURS = re.compile(r"^(elections|semaphores):$", re.MULTILINE)
HOOK = re.compile(r"^    on_\w+:.*\n(      - \w+: .*\n)", re.MULTILINE)
KEY = re.compile(r"\s*(?:- )?(\w+):")
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if OURS.search(path.read_text()))
WITH_HOOKS = [path for path in EXAMPLES if HOOK.search(path.read_text())]
# The files into which a test types: the first of each kind.
TYPED = [
    next(path for path in WITH_HOOKS if OURS.findall(path.read_text())[0] == kind)
    for kind in ("elections", "semaphores")
]
DEFS = schema()["$defs"]

numbers = itertools.count()


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def beside(path: Path) -> Path:
    """Return a path beside this file that was not opened yet; the file need not exist."""
    return path.with_name(f"typed-{next(numbers)}.yaml")


def messages(diagnostics: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """Return (line counted from 1, message) of each diagnostic."""
    return sorted((each["range"]["start"]["line"] + 1, each["message"]) for each in diagnostics)


@pytest.mark.parametrize("path", EXAMPLES, ids=relative)
def test_an_example_names_its_schema_and_has_no_fault(server: LanguageServer, path: Path) -> None:
    assert path.read_text().splitlines()[0] == MODELINE
    assert messages(server.open(path)) == []


@pytest.mark.parametrize("path", TYPED, ids=relative)
def test_at_the_top_level_the_missing_sections_are_offered_and_explained(
    server: LanguageServer, path: Path
) -> None:
    text = path.read_text() + "\n"
    typed = beside(path)
    server.open(typed, text)
    offered = server.completions(typed, text.count("\n") - 1, 0)
    there = set(re.findall(r"^(\w+):", text, re.MULTILINE))
    assert set(offered) == set(schema()["properties"]) - there
    section = OURS.search(text)
    assert section is not None
    line = text.count("\n", 0, section.start())
    assert description(schema()["properties"][section[1]]) in server.hover(typed, line, 2)


@pytest.mark.parametrize("path", TYPED, ids=relative)
def test_within_an_election_or_semaphore_its_own_keys_are_offered(server: LanguageServer, path: Path) -> None:
    text = path.read_text()
    section = OURS.search(text)
    assert section is not None
    first = re.compile(r"^  \S+:.*\n", re.MULTILINE).search(text, section.end())
    assert first is not None
    offered, there = offered_after(server, path, first.end(), 4)
    definition = DEFS[section[1].removesuffix("s")]["properties"]
    assert set(offered) == set(definition) - there
    for key, item in offered.items():
        assert described(item) == description(definition[key])


@pytest.mark.parametrize("path", TYPED, ids=relative)
def test_within_a_hook_its_own_keys_are_offered(server: LanguageServer, path: Path) -> None:
    found = HOOK.search(path.read_text())
    assert found is not None
    offered, there = offered_after(server, path, found.end(), 8)
    there |= {key[1] for key in [KEY.match(found[1])] if key}
    assert set(offered) == set(DEFS["hook"]["properties"]) - there


def offered_after(
    server: LanguageServer, path: Path, at: int, indent: int
) -> tuple[dict[str, dict[str, Any]], set[str]]:
    """Return the offers on a new line there, and the keys that follow it in its mapping."""
    before, after = path.read_text()[:at], path.read_text()[at:]
    typed = beside(path)
    server.open(typed, f"{before}{' ' * indent}\n{after}")
    block = re.match(rf"(?:(?: {{{indent}}}.*|\s*#.*|)\n)*", after)
    assert block is not None
    there = re.findall(rf"^ {{{indent}}}(\w+):", block[0], re.MULTILINE)
    return server.completions(typed, before.count("\n"), indent), set(there)


def description(entry: dict[str, Any]) -> str:
    return str(entry.get("description") or description(DEFS[entry["$ref"].rpartition("/")[2]]))


def described(item: dict[str, Any]) -> str:
    told = item.get("documentation", "")
    return str(told["value"] if isinstance(told, dict) else told)


TYPOS = f"""{MODELINE}
elections:
  app:
    sesion: {{ttl: 15s}}
    on_lose:
      - shell: systemctl stop app
        timout: 5s
      - exec: systemctl stop web
log: {{level: loud}}
htttp: {{listen: 127.0.0.1:8555}}
"""


def test_a_typo_is_reported_at_its_place(server: LanguageServer) -> None:
    told = messages(server.open(beside(EXAMPLES[0]), TYPOS))
    assert {line for line, _ in told} == {4, 7, 8, 9, 10}, told
    for line, key in ((4, "sesion"), (7, "timout"), (10, "htttp")):
        assert (line, f"Property {key} is not allowed.") in told


def test_the_keys_of_a_hook_are_explained(server: LanguageServer) -> None:
    typed = beside(EXAMPLES[0])
    server.open(typed, TYPOS)
    assert description(DEFS["election"]["properties"]["on_lose"]) in server.hover(typed, 4, 6)
    assert description(DEFS["hook"]["properties"]["shell"]) in server.hover(typed, 5, 10)


MISTAKES = [  # what stands below `elections:`, and all that is told of it: the line and the words
    ("a: {session: {ttl: 500ms}}", ["must be at least 1s"]),
    ("a: {session: {ttl: 15}}", ["must be a duration with its unit, such as 500ms, 15s or 1h30m"]),
    ("a: {session: {ttl: 15 s}}", ["must be none or a duration such as 10s or 1m30s"]),
    ("a: {session: {lock_delay: 90s}}", ["must be at most 60s"]),
    ("a: {session: {lock_delay: 1m30s}}", ["must be at most 60s"]),
    ("a: {rejoin_delay: 50ms}", ["must be at least 100ms"]),
    ("a: {on_lose: [{shell: b, timeout: 25h}]}", ["must be at most 24h"]),
    (
        "a: {on_lose: [{shell: b, timeout: 5}]}",
        ["must be a duration with its unit, such as 500ms, 15s or 1h30m"],
    ),
    ("a: {on_lose: [systemctl stop b]}", ["must be a mapping, write `shell: ` before the text"]),
    ("a: {run: /usr/bin/b}", ["must be a mapping, write `shell: ` before the text"]),
    ("a: {on_lose: {shell: b}}", ["must be a list, begin each entry with a dash and a space"]),
    ("a: {run: {exec: /usr/bin/b -c}}", ["must be a list, write [PROGRAM, ARGUMENT], or use shell for text"]),
    ("a: {run: {exec: [b, 5]}}", ["must be text, quote it"]),
    ("a: {run: {exec: [b], env: {A: true}}}", ["must be text, quote it"]),
    ("a: {on_lose: [{shell: b, exec: [b]}]}", ["cannot be used together with shell: remove one of the two"]),
    (
        "a: {on_lose: [{webhook: 'http://b/', user: b}]}",
        ["cannot be used together with webhook: remove one of the two"],
    ),
    ("a: {on_lose: [{timeout: 5s}]}", ["cannot run anything: give exactly one of shell, exec or webhook"]),
    (
        "a: {candidate_check: {rise: 2}}",
        ["cannot run anything: give exactly one of shell, exec or disk, or maintenance: true"],
    ),
    (
        "a: {candidate_check: {exec: [b], disk: /b}}",
        ["cannot be used together with exec: remove one of the two"],
    ),
    (
        "a: {contend: false, on_lose: []}",
        ["cannot be used with contend: false, an observer only has on_change: remove one of the two"],
    ),
    ("a: {for_each: [b]}", ["cannot be used here: put ${EACH} into the name of the item"]),
    (
        "a.b: {}",
        ["must be at most 63 lower-case letters, digits, _ and - (no dot), beginning with a letter or digit"],
    ),
    (
        "a: &x {key: a}\n  b: {<<: *x, key: b}",
        ["cannot have a merge key (<<): write the values out, or use defaults or for_each"],
    ),
    (
        "a: {on_lose: [&x {shell: a}, {<<: *x, timeout: 5s}]}",
        ["cannot have a merge key (<<): write the values out, or use defaults or for_each"],
    ),
    (
        "a: {session: {ttl: none, lock_delay: 1m}, rejoin_delay: 0.1s, on_lose: [{exec: [b], timeout: 24h}]}",
        [],
    ),
    ("a-${EACH}: {for_each: [b], run: {}, candidate_check: {maintenance: true}, fence: {}}", []),
    ("a: {contend: false, key: a, on_change: [{webhook: 'http://b/', method: PUT}]}", []),
]


@pytest.mark.parametrize(("item", "told"), MISTAKES, ids=[item for item, _ in MISTAKES])
def test_a_mistake_is_told_in_words_that_say_what_to_do(
    server: LanguageServer, item: str, told: list[str]
) -> None:
    found = messages(server.open(beside(EXAMPLES[0]), f"{MODELINE}\nelections:\n  {item}\n"))
    assert [message for _, message in found] == told
