"""The reference by key in ``configuration.md``, made from ``schemas/config.schema.json``.

    python -m docs.reference            prints it
    python -m docs.reference --write    puts it into configuration.md

The schema is the only source: correct mistakes there. A test runs this and compares.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

Rule = dict[str, Any]
Described = dict[tuple[str, str], tuple[str, str]]  # by key and text: first section, default

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "configuration.md"
BEGIN = "<!-- from here on `python -m docs.reference` writes -->\n"
END = "<!-- to here -->\n"
SAID = re.compile(  # the rules of the page, or its table of variables, say so for all keys
    r" \$\{NAME\}[^.]*\.| (?:In its path and query )?\$\{CONSUL_SUPERVISOR_LEADER\}[^.]*\."
    r"| Nothing except \$\{EACH\} is replaced in the[^.]*\.| (?:Without|Missing)[^.]* CONSUL_[^.]*\."
)
SECTIONS = (  # title and definition; the first section that has a key describes it
    ("The file", ""),
    ("consul", "consul"),
    ("consul.tls, and tls of a webhook", "tls"),
    ("http", "http"),
    ("fleet", "fleet"),
    ("fence_limit", "fence_limit"),
    ("watchdog", "watchdog"),
    ("log", "log"),
    ("elections.NAME", "election"),
    ("semaphores.NAME", "semaphore"),
    ("session", "session"),
    ("A hook", "hook"),
    ("run", "run"),
    ("candidate_check", "candidate_check"),
    ("fence", "fence"),
    ("fence.try", "fence_method"),
    ("service", "service"),
    ("defaults", "defaults"),
    ("defaults.session", "session_defaults"),
    ("defaults.hook", "hook_defaults"),
    ("defaults.lose_hook", "lose_hook_defaults"),
)


def reference() -> str:
    """Return all sections as Markdown."""
    described: Described = {}
    parts = [_section(title, definition, rules, described) for title, definition, rules in definitions()]
    return "\n".join(parts)


def definitions() -> Iterator[tuple[str, Rule, list[tuple[str, Rule]]]]:
    """Yield the title of each section, its definition, and its keys with their rules."""
    schema = _schema()
    known: Rule = {**schema["$defs"], "": schema}
    for title, name in SECTIONS:
        yield title, known[name], list(_resolved_properties(known[name], known))


def page(text: str) -> str:
    """Return the text of ``configuration.md`` with the present reference."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


@cache
def _schema() -> Rule:
    schema: Rule = json.loads((ROOT / "schemas" / "config.schema.json").read_text(encoding="utf-8"))
    return schema


def _section(title: str, definition: Rule, rules: list[tuple[str, Rule]], described: Described) -> str:
    """Return one section. ``described``: what the sections above describe already."""
    known = [
        described.setdefault((key, rule["description"]), (title, default_of(rule))) for key, rule in rules
    ]
    firsts = [first for first, _ in known]
    begin = f"### {title}\n\n{SAID.sub('', definition['description'])}"
    if title not in firsts and len(set(firsts)) == 1:  # nothing is new but the defaults
        keys = [
            f"`{key}: {default.strip('`')}`" if (default := default_of(rule)) else f"`{key}`"
            for key, rule in rules
        ]
        return f"{begin} Keys of {_link(firsts[0])}, and their defaults: {', '.join(keys)}.\n"
    table, others = dict[tuple[str, ...], list[str]](), dict[str, list[str]]()
    for (key, rule), (first, default) in zip(rules, known, strict=True):
        if first != title and default == default_of(rule):
            others.setdefault(first, []).append(f"`{key}`")
        else:
            cells = kind_of(rule), default_of(rule), _what(key, rule, title, first)
            table.setdefault(cells, []).append(f"`{key}`")
    same = "".join(f"\nAs in {_link(first)}: {', '.join(keys)}.\n" for first, keys in others.items())
    head = _row("key", "what it takes", "default", "what it does") + "|---|---|---|---|\n"
    rows = "".join(_row(", ".join(keys), *cells) for cells, keys in table.items())
    return f"{begin}\n\n{head}{rows}{same}"


def _what(key: str, rule: Rule, title: str, first: str) -> str:
    """Return what the key does. What the page says elsewhere is left out: SAID, a section, the bounds."""
    if first != title:
        return f"as in {_link(first)}"
    text, known = rule["description"], _schema()["$defs"]
    if any(text == known[name]["description"] for own, name in SECTIONS if own == key):
        return f"see {_link(key)}"
    bounds = f"{rule.get('durationMinimum')} to {rule.get('durationMaximum')}"
    return re.sub(rf"[.,:] {bounds}(, or none)?", "", SAID.sub("", text))


def _link(title: str) -> str:
    anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return f"[{title}](#{anchor})"


def _row(*cells: str) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in (c.replace("|", "\\|") for c in cells)) + "|\n"


def _resolved_properties(definition: Rule, definitions: Rule) -> Iterator[tuple[str, Rule]]:
    for key, rule in definition["properties"].items():
        resolved = rule
        while "$ref" in resolved:
            target = definitions[resolved["$ref"].removeprefix("#/$defs/")]
            resolved = {**target, **{name: part for name, part in resolved.items() if name != "$ref"}}
        yield key, resolved


def kind_of(rule: Rule) -> str:
    """Return the values that the rule allows, as Markdown."""
    if "enum" in rule:
        return ", ".join(
            f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in rule["enum"]
        )
    if "durationMinimum" in rule:
        none = ", or `none`" if "none" in rule["pattern"] else ""
        return f"duration, {rule['durationMinimum']} to {rule['durationMaximum']}{none}"
    kind = rule.get("type", "object")  # what has a command has its type, and the message, elsewhere
    kinds = kind if isinstance(kind, list) else [kind]
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


def default_of(rule: Rule) -> str:
    """Return the default of the rule as Markdown. Blank: it has none."""
    if "default" not in rule:
        return ""
    default = rule["default"]
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        sys.stdout.write(reference())
