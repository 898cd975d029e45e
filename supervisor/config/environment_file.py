"""The variables of /etc/default/consul-supervisor, which the unit gives to the daemon.

Commands add them to their own environment, so that a command that is typed by hand sees the configuration as
the daemon does. The syntax is that of systemd's EnvironmentFile=, with the meaning that systemd gives to it.
No message shows the value of a variable.
"""

import re
from pathlib import Path
from typing import NamedTuple

from supervisor.config.problems import Problem

FILE = Path("/etc/default/consul-supervisor")
FILE_BYTES_MAX = 128 * 1024  # the kernel gives no program a longer variable

# One entry: a comment, or a name with its value. Before the plain end of a value there may be quoted parts.
_ENTRY = re.compile(
    r"""
    (?: [\#;][^\r\n]*
      | (?P<name>[^ \t\r\n\#;][^=\r\n]*)
        (?: = (?P<quoted> (?: [ \t]* (?: '[^']*(?:'|\Z) | "(?:\\.|[^"\\])*(?:"|\\?\Z) ) )* )
            [ \t]* (?P<plain> (?: \\. | \\\Z | [^\\\r\n] )* )
        )?
    )
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"'([^']*)'?|\"((?:\\.|[^\"\\])*)\\?\"?", re.DOTALL)
_UNESCAPED = re.compile(r"\\(.?)|([^\\]+)", re.DOTALL)
_ESCAPE = re.compile(r'\\(?:(["\\`$])|\n)')
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class UnitVariables(NamedTuple):
    """The variables of a file by their names, and the warnings about what systemd does not take from it."""

    values: dict[str, str]
    warnings: tuple[Problem, ...]


def read() -> UnitVariables:
    """Read the file. An absent file has no variables."""
    file = FILE
    try:
        with file.open("rb") as stream:
            content = stream.read(FILE_BYTES_MAX + 1)
        if len(content) > FILE_BYTES_MAX:
            return _unread(file, f"larger than {FILE_BYTES_MAX >> 10} KiB")
        return parse(content.decode(), file)
    except FileNotFoundError:
        return UnitVariables({}, ())
    except OSError as error:
        return _unread(file, f"{error.strerror}, so this command lacks variables that the daemon may have")
    except UnicodeDecodeError:
        return _unread(file, "it is not UTF-8")


def _unread(file: Path, why: str) -> UnitVariables:
    return UnitVariables({}, (Problem(str(file), 0, 0, "", f"cannot be read: {why}"),))


def parse(text: str, file: Path = FILE) -> UnitVariables:
    """Return the variables of this text, as systemd 254 and later read it."""
    values: dict[str, str] = {}
    warnings = []
    line, counted = 1, 0
    for entry in _ENTRY.finditer(text):
        name = (entry["name"] or "").rstrip(" \t")
        if not name:
            continue
        if why := _not_taken(name, entry):
            line, counted = line + text.count("\n", counted, entry.start()), entry.start()
            warnings.append(Problem(str(file), line, 1, "", f"systemd ignores this line: {why}"))
        if entry["plain"] is not None:  # also if systemd ignores it, because it replaces an earlier line
            values.pop(name, None)
            values |= {} if why else {name: _value(entry)}
    return UnitVariables(values, tuple(warnings))


def _not_taken(name: str, entry: re.Match[str]) -> str:
    """Return why systemd ignores the entry. Blank: systemd takes it."""
    if entry["plain"] is None:
        return "write NAME=value"
    if not _NAME.fullmatch(name):
        return "write NAME=value, with a name of letters, digits and _, and without export"
    return "its value has control characters" if _CONTROLS.search(_value(entry)) else ""


def _value(entry: re.Match[str]) -> str:
    quoted = (
        single if single is not None else _ESCAPE.sub(lambda escaped: escaped[1] or "", double)
        for single, double in (part.groups() for part in _QUOTED.finditer(entry["quoted"]))
    )
    return "".join(quoted) + _plain(entry["plain"])


def _plain(text: str) -> str:
    """Return the end of a value, which has no quotes, without its escapes and the blanks behind it."""
    parts = _UNESCAPED.findall(text)
    if parts and parts[-1][1]:
        parts[-1] = ("", parts[-1][1].rstrip(" \t"))
    return "".join(escaped.strip("\r\n") + literal for escaped, literal in parts)
