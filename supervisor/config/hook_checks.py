"""Warnings about texts of hooks that are valid, and probably mean something else.

Many of these hooks end with 0 and have not done their work. Each warning is a guess, so nothing is refused.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from supervisor.config.formats.templates import FACTS, PREFIX
from supervisor.config.problems import KeyPath, Report, nearest
from supervisor.core.settings import Command, Webhook

_QUOTED = re.compile(r"""(?s)'[^']*'|"(?:\\.|[^"\\])*\"""")
_NO_OPERATOR = (
    r"[0-9]?>&[0-9-]|\\\n|\$\([^()]*\)"  # an & of a redirection, a line that goes on, what is a word
)
# In a command, with NUL between its words: a shell's text, and the words behind it, which it may use.
_SHELL = r"(?s)(?:^|[\0/])(?:ba|da|[akz])?sh(?:\0[-+]+\w*(?:o\0\w+)?)*?\0-\w*c\w*\0([^\0]*)\0?(.*)"
_USED = r"(?s)[^\0]*(?:\$\{?[0-9@*#]|\bshift\b|\bfor \w+ *(?:;|do\b)).*|[^\0]*\0(?:\w*sh|_|--?)?"
_UNTYPED = "[\u2018-\u201f]|[\u2010-\u2015\u2212]+(?=\\w)"  # as word processors and web pages write
_SPACES = "[\xa0\xad\u2000-\u200b\u202f\u2060\ufeff]"
_BEHIND_IT = (
    "what runs on behind the last & is killed soon after the shell has ended: start what must stay by "
)
_OPERATOR = r"\0(\|\|?|\|&|&&?|;|[0-9&]?(?:>>?|<<?)(?:&[0-9-])?)(?=\0|$)"
_VARIABLE = r"\$(?:\{[A-Za-z_]\w*\}|[A-Z][A-Z0-9_]+|\([\w/])"
_FILES = "rm|rmdir|unlink|shred|touch|cp|mv|ln|install|chmod|chown|chgrp|cat|ls|umount"
_BEHIND_OTHERS = r"^(?:(?:\S*/)?(?:sudo|doas|env|nice|timeout|runuser|chroot)\0(?:[^\0]*\0)*?)?(?:[^\0]*/)?"
_GLOB = r"(?:[*?]|\[[^]\0]{1,99}\]|\{[^{}\0]{0,99},)"
_PATTERN = rf"{_BEHIND_OTHERS}(?:{_FILES})\0(?:[^\0]*\0)*?(?!-)[^\0]*{_GLOB}"
_LITERAL = rf"\0(?:({_VARIABLE})(?=\0|$)|[^\0]*{_VARIABLE}|~[\w-]*/)|{_PATTERN}"
_OTHERS = r"^(?:[^\0]*/)?(?:ssh|find|expr|test|\[)\0"  # a shell elsewhere, or the program, reads such words
_OF_BASH = r"&>|(?<!\$)\{[\w./*-]{0,99}(?:,|\.\.)[\w./*,-]{0,99}\}|(?:^|[\s;(!])\[\[\s"
_PIPE = (  # which ends in what only passes on its input, unless that is words
    r"(?:^|[;&\n]|(?<!\$)[({])[^\S\n]*(?!(?:echo|printf|date|cat)\b)[^\s;&|({](?:[^;&\n({]|\$[({])*(?<!\|)\|&?\s*"
    r"(?:sudo )?(?:[^\s|]*/)?(?:tee|logger|systemd-cat|ts|cat|sed|grep -v)\b[^;&|\n]*(?:\|\|[^;&|\n]*)?"
)
_CURL = r"(?:^|[;&|({\n\0]\s*|\b(?:then|do|else|if|sudo|exec)\s+)(?:[^\s;&|\0]*/)?curl[\s\0]"
_TELLS = r"curl(?:[^|]|\|\|)*(?:[\s\0](?:--fail(?!-early)|-[a-zA-Z]*[fwK]|--write-out)|(?<!\|)\|(?!\|))"
_HASTY = r"[\s\0](--no-block|--wait=false|--detach)(?![\w-])"
_SAYS_0 = "curl ends with 0 also where the server says no: add --fail"
_LETTER = "a typographic quote or dash, or a no-break or zero-width space, is a letter to it: type it anew"
_NO_SHELL, _BASH = "because no shell reads it: use shell", "use exec: [bash, -o, pipefail, -c, TEXT]"
_Rules = tuple[tuple[str, str, str], ...]  # a sign, what excuses it, the warning, where IT is what was found
_OF_TEXT: _Rules = (  # of a shell, without what is quoted in it
    (rf"(?:^|[\s=(])(?:{_UNTYPED})|{_SPACES}", "(?!)", _LETTER),
    (r"[^&>|\\]&\s*$", "(?!)", f"{_BEHIND_IT}systemctl start or systemd-run, or as run"),
    (f"{_PIPE}$", "pipefail|PIPESTATUS", f"the exit code is that of the pipe's end alone: {_BASH}"),
    (  # the same before the last command, where a failure should have ended the text
        rf"{_PIPE}(?=[;\n])",
        r"(?s)pipefail|PIPESTATUS|^(?!.*(?:\bset |\0)-\w*e)",
        f"the exit code is that of the pipe's end alone, also for set -e: {_BASH}",
    ),
    (_OF_BASH, r"(?:^|[\0/])(?:ba|k|z)sh\0", f"sh may misread &>, {{A,B}} and [[ of bash: {_BASH}"),
    (_CURL, _TELLS, _SAYS_0),
    (r"^(?:\s*#[^\n]*(?:\n|$))+$", "(?!)", "all of it is a comment, so nothing is run: remove the #"),
)
_OF_WORDS: _Rules = (  # joined by NUL; those that have a space may be for people
    (rf"(?:^|\0)(?![^\0]* )(?:{_UNTYPED}|[^\0]*{_SPACES})", "(?!)", _LETTER),
    (_OPERATOR, _OTHERS, f"IT is a word like any other, {_NO_SHELL}"),
    (_LITERAL, rf"\0-\w*[ce]\0|{_OTHERS}", f"IT is passed on as it is, {_NO_SHELL}"),
    (_CURL, _TELLS, _SAYS_0),
)
# What ends or begins a line whose neighbour belongs to it: operators, options, and what is rarely a command.
_BEFORE = r"""[|&;({,=!]$|\b(?:then|do|else|elif|if|while|until|in|exec|sudo)$"""
_BEHIND = r"""[-|&;<>)}#"'$0-9]|\S+://"""
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
        for message in _of_command("\0".join(texts), (*path, key), report):
            report.warn((*path, key), message)
        if "on_lose" in path and (hasty := re.search(_HASTY, "\0".join(texts))):
            report.warn((*path, key), f"{hasty[1]} ends before what it is to stop has: leave it out")
        for name in (name for name, value in call.env if re.search(_LITERAL, f"\0{value}")):
            report.warn((*path, "env", name), "$NAME and ~ stay as they are in env: set it in shell")
        for name in (name for text in texts for name in _FACT.findall(text) if name not in _KNOWN):
            match = nearest(name, _KNOWN)
            hint = f"did you mean {PREFIX}{match}?" if match else f"known are {', '.join(_KNOWN)}"
            report.warn((*path, key), f"no hook has a variable {PREFIX}{name}: {hint}")
    if any(map(_TEMPLATE.search, texts)):
        message = "{{ or {% is left of a template, and no hook fills it in: render the file"
        report.warn((*path, key), message)


def _of_command(joined: str, path: KeyPath, report: Report) -> Iterator[str]:
    """Yield the warnings of a command whose words are joined by NUL."""
    rules, read = _OF_WORDS, joined
    if found := re.search(_SHELL, joined):
        at = (*path, joined.count("\0", 0, found.start(1))) if path[-1] == "exec" else path
        if _is_cut(report.positions.folded_at(at)):
            yield "YAML makes one command of its lines: write | (`shell: |`), and \\ where a line goes on"
            return  # the text is not what its author sees
        if found[2] and not re.fullmatch(_USED, "\0".join(found.groups())):
            yield "only the word behind -c is run, and the others are its arguments: write them as one text"
        rules, read = _OF_TEXT, re.sub(_NO_OPERATOR, "", _QUOTED.sub("Q", found[1])).rstrip()
    for sign, excuse, message in rules:
        if (seen := re.search(sign, read)) and not re.search(excuse, joined):
            yield message.replace("IT", (seen.lastindex and seen[1]) or "a variable, ~ or pattern")


def _is_cut(raw: str) -> bool:
    """Return whether lines that YAML joins by a space would be commands of their own to a shell."""
    is_block, text = raw.startswith(">"), ""
    if raw.startswith('"'):
        raw = re.sub(r"\\\n\s*", "", raw)  # to YAML itself such a line goes on
    lines = (raw if is_block else raw.strip("'\"")).splitlines()[is_block:]
    first, quote = next(filter(str.strip, lines), ""), ""
    deeper = " " * (len(first) - len(first.lstrip()) + 1)
    for line, after in pairwise(lines):
        text = _QUOTED.sub("Q", f"{quote} {line.strip()}")
        quote = next((letter for letter in text if letter in "'\""), "")  # one that no other has closed
        is_kept = is_block and (line.startswith(deeper) or after.startswith(deeper))
        goes_on = quote or re.search(_BEFORE, text) or re.match(_BEHIND, after.strip())
        if is_kept or not line.strip() or not after.strip():
            continue
        if re.match(r"""[^'"]*\s#""", text) or not goes_on:
            return True
    return False
