"""The reference by key in ``configuration.md``, made from ``schemas/config.schema.json``.

    python -m docs.reference            prints it
    python -m docs.reference --write    puts it into configuration.md

The schema is the only source: what is wrong here is mended there. A test runs this and compares.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Rule = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "configuration.md"
BEGIN = "<!-- from here on `python -m docs.reference` writes -->\n"
END = "<!-- to here -->\n"
SECTIONS = (  # title and definition, in the order in which a file is written
    ("The file", ""),
    ("consul", "consul"),
    ("consul.tls, and tls of a webhook", "tls"),
    ("http", "http"),
    ("log", "log"),
    ("defaults", "defaults"),
    ("defaults.session", "session_defaults"),
    ("defaults.hook", "hook_defaults"),
    ("defaults.lose_hook", "lose_hook_defaults"),
    ("elections.NAME", "election"),
    ("semaphores.NAME", "semaphore"),
    ("session of an election or semaphore", "session"),
    ("A hook: an entry of on_acquire, on_lose, on_change, on_lose_failure", "hook"),
    ("run of an election or semaphore", "run"),
    ("candidate_check of an election or semaphore", "candidate_check"),
)


def reference() -> str:
    """All sections as Markdown, then the keys that are refused for now."""
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text(encoding="utf-8"))
    definitions: Rule = {**schema["$defs"], "": schema}
    parts = [_section(title, definitions[name], definitions) for title, name in SECTIONS]
    owners = ("election", "semaphore")
    rules = {"": schema, **{f"{owner}s.NAME.": definitions[owner] for owner in owners}}
    later = [
        f"- `{place}{key}`: {rule['description']}\n"
        for place, owner in rules.items()
        for key, rule in owner["properties"].items()
        if not _available(rule)
    ]
    return "\n".join([*parts, *(["### Refused for now\n\n" + "".join(later)] if later else [])])


def page(text: str) -> str:
    """The text of ``configuration.md`` with the reference of now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _section(title: str, definition: Rule, definitions: Rule) -> str:
    rows = (
        _row(f"`{key}`", _kind(rule), _default(rule), rule["description"])
        for key, rule in _resolved_properties(definition, definitions)
        if _available(rule)
    )
    head = _row("key", "what it takes", "default", "what it does") + "|---|---|---|---|\n"
    return f"### {title}\n\n{definition['description']}\n\n{head}{''.join(rows)}"


def _row(*cells: str) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in (c.replace("|", "\\|") for c in cells)) + "|\n"


def _resolved_properties(definition: Rule, definitions: Rule) -> Iterator[tuple[str, Rule]]:
    for key, rule in definition["properties"].items():
        resolved = rule
        while "$ref" in resolved:
            target = definitions[resolved["$ref"].removeprefix("#/$defs/")]
            resolved = {**target, **{name: part for name, part in resolved.items() if name != "$ref"}}
        yield key, resolved


def _available(rule: Rule) -> bool:
    return bool(rule.get("x-available", True))


def _kind(rule: Rule) -> str:
    if "enum" in rule:
        return ", ".join(f"`{value}`" for value in rule["enum"])
    if "durationMinimum" in rule:
        none = ", or `none`" if "none" in rule["pattern"] else ""
        return f"duration, {rule['durationMinimum']} to {rule['durationMaximum']}{none}"
    kinds = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    words = {
        "string": "text",
        "object": "mapping",
        "array": f"list of {_item(rule.get('items', {}))}",
        "boolean": "`true` or `false`",
        "integer": f"number, {rule.get('minimum')} to {rule.get('maximum')}",
    }
    return " or ".join(words[kind] for kind in kinds)


def _item(rule: Rule) -> str:
    if rule.get("$ref") == "#/$defs/hook":
        return "hooks"
    members = rule.get("required")
    return "text" if members is None else "mappings with `" + "`, `".join(members) + "`"


def _default(rule: Rule) -> str:
    if "default" not in rule:
        return ""
    default = rule["default"]
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(reference())
