"""Warnings about texts of hooks that are valid, and probably mean something else.

A shell or a template engine would have understood them. Each is a guess, so nothing is refused.
"""

import re
from collections.abc import Iterator

from supervisor.config.formats.templates import FACTS, PREFIX
from supervisor.config.problems import KeyPath, Report, nearest
from supervisor.core.settings import Command, Webhook

_QUOTED = re.compile(r"""'[^']*'|"[^"]*\"""")
_UNTYPED = re.compile("(?:^|[\\s=(])[\u2018-\u201f]|\u00a0")  # as word processors and web pages write them
_BACKGROUND = re.compile(r"[^&>|\\]&\s*$")
_OPERATOR = re.compile(r"\|\|?|\|&|&&?|;|[0-9&]?(>>?|<<?)(&[0-9-])?")
_TAKE_OPERATORS = ("find", "expr", "test", "[")  # programs with words of their own that look like operators
_VARIABLE = re.compile(r"\$(\{[A-Za-z_]\w*\}|[A-Z][A-Z0-9_]+)")
_EXPANDS = re.compile(r"-\w*[ce]")  # as in sh -c and perl -e, whose text may have variables of its own
# Jinja and ERB. Go's own templates, as in `docker inspect --format`, begin with a dot or a function.
_TEMPLATE = re.compile(r"\{\{-?\s*(?!end\b|else\b)[A-Za-z_][\w.]*\s*([(|\[]|-?\}\})|\{%[-+]?\s|<%=")
_FACT = re.compile(PREFIX + r"([A-Z0-9_]+)(?!\w|=)")
_KNOWN = [fact.upper() for fact in FACTS]


def check_call(call: Command | Webhook, path: KeyPath, report: Report) -> None:
    if isinstance(call, Webhook):
        key, texts = "webhook", (call.url, call.body or "", *(value for _, value in call.headers))
    else:
        key = "shell" if report.positions.has_key((*path, "shell")) else "exec"
        texts = call.argv
        for message in _in_shell(texts[-1]) if key == "shell" else _in_exec(*texts):
            report.warn((*path, key), message)
        for name in (name for text in texts for name in _FACT.findall(text) if name not in _KNOWN):
            match = nearest(name, _KNOWN)
            hint = f"did you mean {PREFIX}{match}?" if match else f"known are {', '.join(_KNOWN)}"
            report.warn((*path, key), f"no hook has a variable {PREFIX}{name}: {hint}")
    if any(map(_TEMPLATE.search, texts)):
        message = "{{ or {% is left of a template, and no hook fills it in: render the file"
        report.warn((*path, key), message)


def _in_shell(text: str) -> Iterator[str]:
    if _UNTYPED.search(_QUOTED.sub("", text)):
        yield "a typographic quote or no-break space is a letter to the shell: type it anew"
    if _BACKGROUND.search(text):
        stays = "start what must stay by systemctl start or systemd-run, or as run"
        yield f"what runs on behind the last & is killed soon after the shell has ended: {stays}"


def _in_exec(program: str, *words: str) -> Iterator[str]:
    operator = next(filter(_OPERATOR.fullmatch, words), None)
    if operator is not None and program.rpartition("/")[2] not in _TAKE_OPERATORS:
        yield f"{operator} is a word like any other, because no shell reads it: use shell"
    found = next((word for word in words if _VARIABLE.search(word)), None)
    if found is not None and not any(map(_EXPANDS.fullmatch, words)) and not program.endswith("ssh"):
        what = found if _VARIABLE.fullmatch(found) else "a variable"  # the rest of the word may be a secret
        yield f"{what} is passed on as it is, because no shell reads it: use shell"
