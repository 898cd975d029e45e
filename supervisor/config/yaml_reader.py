"""Reads the YAML of one file as plain values, with the position of every key and value.

Only the harmless part of YAML is read: mappings with text keys, lists and scalars. Tags, anchors,
aliases and merge keys are refused, and depth and number are bounded. A plain scalar is read as null, a
boolean (``true`` or ``false``), a JSON number, or text. A plain scalar that YAML 1.1 does not read as text
(``yes``, ``022``, ``22:22``, a date) is read as text and noted as *ambiguous*. The cross-checks refuse an
ambiguous scalar where the schema allows values of any type, because its author may not have meant text.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from supervisor.config.problems import KeyPath, Position, Positions, Report, quoted

DEPTH_MAX = 32  # the schema needs 7; the rest is for a value's mapping
NODES_MAX = 100_000  # of one file, enough for 2,000 elections with 50 nodes each

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")
_WORD = re.compile(r"[ \t]+#[^\s#]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_AMBIGUOUS_IN_YAML_1_2 = re.compile(r"0o[0-7]+|[yYnN]")
_CONSTANTS = {"": None, "~": None, "null": None, "true": True, "false": False}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # with libyaml, which is ten times as fast

_STRANGE = "found character that cannot start any token"
_UNCLOSED = "while scanning a quoted scalar"
_TEMPLATE = "if {{ or {% is left of a template, render it"
_SHARE = "or use defaults or for_each"
_REMEDIES = (  # by a sign in the parser's words, or at the beginning of a line of what is no YAML
    ("^(?:```|~~~)", "remove the fences of Markdown (```), and all that is outside of them"),
    ("^(?:<{7}|={7}|>{7})(?: |$)", "settle the merge conflict, and remove its marks, such as <<<<<<<"),
    (r"\{%|<%|^\s*\{\{", _TEMPLATE),
    (r"^\[[^]\n]*\]\s*$|^[\w.-]+ *= *\S", "write YAML (KEY: VALUE), where this is TOML or INI"),
    (r"^@@ ", "apply the patch, and give the file that it makes"),
    (r"^\$ANSIBLE_VAULT", "decrypt it"),
    ("mapping values are not allowed", 'quote a text that has ": " in it, and check the indentation'),
    ("did not find expected key", "check the indentation and the quotes above"),
    ("did not find expected '-' indicator", "indent it as far as the text behind the dash above"),
    ("did not find expected ','", "close the brace, or quote a text that has one, such as ${NAME}"),
    ("could not find expected ':'", "write KEY: VALUE, with a space after the colon"),
    ("found unexpected end of stream", "close the quote that begins here"),
    (r"\A\n[^\s:]+(?:[,;\t][^:\n]*)+$", "write YAML (KEY: VALUE), where this is a table (CSV)"),
)


class InvalidYaml(Exception):
    """The rest of a file cannot be understood, for a reason that is in the report."""


def read_tree(file: str, text: str, report: Report) -> "Tree":
    """Read the only document of ``text`` and report every problem.

    Raises InvalidYaml, with the reason in the report, when the rest cannot be understood.
    """
    if found := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, found.start()) + 1
        position = Position(file, line, found.start() - text.rfind("\n", 0, found.start()))
        remedy = "save it as UTF-8, or remove it" if found[0] == "\0" else "remove it"
        report.refuse_at(position, (), f"cannot hold the control character {quoted(found[0])}: {remedy}")
        raise InvalidYaml
    tree = Tree(file, text, report)
    try:
        tree.value = tree.document()
    except yaml.YAMLError as error:
        tree.refuse_syntax(error)
        raise InvalidYaml from None
    return tree


class Tree:
    """The content of one file, made from the parser's events."""

    def __init__(self, file: str, text: str, report: Report) -> None:
        self.value: Any = None
        self.positions = Positions(file)  # where each key and value is
        # The paths of plain scalars that not every reader of YAML reads as text.
        self.ambiguous: set[KeyPath] = set()
        self._file = file
        self._text = text
        self._events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self._report = report
        self._nodes = 0

    def document(self) -> Any:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        first = next(self._events)
        value = self._node(first, (), self._position(first))
        next(self._events)  # the document's end
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            message = "cannot hold a second document: remove the line ---"
            self._report.refuse_at(self._position(after), (), message)
        return value

    def refuse_syntax(self, error: yaml.YAMLError) -> None:
        position, why = self.positions.root, "not valid"
        if isinstance(error, yaml.MarkedYAMLError):
            at_end = error.problem_mark or error.context_mark
            mark = error.context_mark if error.context == _UNCLOSED else at_end
            position = Position(self._file, mark.line + 1, mark.column + 1) if mark else position
            why = error.problem or why
        remedy = self.remedy(why) or (self._remedy_of_strange(position) if why == _STRANGE else "")
        if "\xa0" in "".join(self._text.splitlines()[max(0, position.line - 2) : position.line]):
            remedy = "a no-break space is here or in the line before, write a plain space"
        message = ": ".join(filter(None, ("cannot be read as YAML", why, remedy)))
        self._report.refuse_at(position, (), message)

    def remedy(self, why: str) -> str:
        """Return what to do with a file that the parser cannot read. Blank ``why``: it is no mapping."""
        said = f"{why}\n{self._text}"
        return next((words for sign, words in _REMEDIES if re.search(sign, said, re.MULTILINE)), "")

    def _remedy_of_strange(self, position: Position) -> str:
        """Return the remedy for the character at ``position``, which no text can begin with."""
        line = "".join(self._text.splitlines()[position.line - 1 : position.line])
        found = line[position.column - 1 : position.column]
        if found == "\t":
            return "a tab cannot indent, write spaces"
        return f"quote the text that begins with {found}"

    def _node(self, event: Any, path: KeyPath, position: Position) -> Any:
        self.positions.values.setdefault(path, position)
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._unreadable(
                position, path, f"cannot be read: more than {NODES_MAX} values; use several files"
            )
        if len(path) > DEPTH_MAX:
            raise self._unreadable(position, path, f"cannot be nested deeper than {DEPTH_MAX} levels")
        self._refuse_alias_anchor_tag(event, path)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, yaml.SequenceStartEvent):
            items = enumerate(self._until(yaml.SequenceEndEvent))
            return [self._node(each, (*path, index), self._position(each)) for index, each in items]
        return self._scalar(event, path)

    def _refuse_alias_anchor_tag(self, event: Any, path: KeyPath) -> None:
        if isinstance(event, yaml.AliasEvent):
            message = f"cannot be an alias (*): write the value out, {_SHARE}"
            raise self._unreadable(self._position(event), path, message)
        if event.anchor is not None:
            message = "cannot have an anchor (&): remove it, aliases are not read"
            self._report.refuse_at(self._position(event), path, message)
        if event.tag is not None:
            message = "cannot have a tag (!): remove it, and quote what must be text"
            self._report.refuse_at(self._position(event), path, message)

    def _mapping(self, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for event in self._until(yaml.MappingEndEvent):
            key_position = self._position(event)
            key = self._key(event, path)
            here = (*path, key)
            member = next(self._events)
            position = self._position(member) if isinstance(member, yaml.ScalarEvent) else key_position
            if key in result:
                first = self.positions.of_key(here).line
                self._report.refuse_at(
                    key_position, here, f"cannot be set twice: line {first} sets it, remove one"
                )
                self._node(member, here, position)
            else:
                self.positions.keys.setdefault(here, key_position)
                result[key] = self._node(member, here, position)
        return result

    def _key(self, event: Any, path: KeyPath) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            message = f"cannot have a key that is not text: write KEY: VALUE; {_TEMPLATE}"
            raise self._unreadable(self._position(event), path, message)
        self._refuse_alias_anchor_tag(event, path)
        if event.value == "<<" and event.implicit[0]:
            message = f"cannot have a merge key (<<): write the values out, {_SHARE}"
            raise self._unreadable(self._position(event), path, message)
        return str(event.value)

    def _scalar(self, event: Any, path: KeyPath) -> Any:
        text = str(event.value)
        if event.style != "|" and event.end_mark.line > event.start_mark.line:
            self.positions.folded[path] = self._text[event.start_mark.index : event.end_mark.index]
        if not event.implicit[0]:
            return text
        if path[-1:] == ("shell",) or path[-2:-1] == ("exec",):
            self._warn_of_comment(event.end_mark, path)
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        number = _number(text)
        if number is None and _is_ambiguous(text):
            self.ambiguous.add(path)
        return text if number is None else number

    def _warn_of_comment(self, end: Any, path: KeyPath) -> None:
        """Warn of a comment that looks like a word of the command: a comment has a space behind its #."""
        if found := _WORD.match(self._text, end.index):
            position = Position(self._file, end.line + 1, end.column + len(found[0]) - 1)
            message = "YAML takes this for a comment: quote the whole command, or put a space behind the #"
            self._report.warn_at(position, path, message)

    def _until(self, end: type) -> Iterator[Any]:
        while not isinstance(event := next(self._events), end):
            yield event

    def _position(self, event: Any) -> Position:
        mark = event.start_mark
        return Position(self._file, mark.line + 1, mark.column + 1)

    def _unreadable(self, position: Position, path: KeyPath, message: str) -> InvalidYaml:
        self._report.refuse_at(position, path, message)
        return InvalidYaml()


def _number(text: str) -> int | float | None:
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    value = float(text) if found[2] or found[3] else int(text)
    return value if math.isfinite(value) else None


def _is_ambiguous(text: str) -> bool:
    """Return whether some reader of YAML reads this plain scalar as anything except text."""
    rules = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], [])
    return any(rule.match(text) for _, rule in rules) or bool(_AMBIGUOUS_IN_YAML_1_2.fullmatch(text))
