"""For ``check``: each hook that cannot start on this machine, with its place in the file.

The module lets ``looker`` look in a child, and waits for the answers. It refuses nothing, because ``check``
decides whether a problem is an error.
"""

import json
import os
from collections.abc import Mapping

from supervisor.config import Config, Problem
from supervisor.config.problems import KeyPath, Places, Report
from supervisor.preflight import LOOK_S, looker
from supervisor.preflight.looks import in_child
from supervisor.preflight.questions import Question, file_look, question_of, tls_looks


def unstartable(config: Config, environ: Mapping[str, str], *, here: bool) -> tuple[Problem, ...]:
    """Return a problem for every hook that cannot start on this machine and every file that cannot be read.

    environ: the environment that hooks inherit.
    here: whether the configuration is meant for this machine and this user.
    """
    question = question_of(config.items, environ)
    if config.consul.token_file is not None:
        look = file_look("token_file", config.consul.token_file)
        question.add("", "", ("consul",), look, needed=True)
    for look in tls_looks(config.consul.tls):
        question.add("", "", ("consul",), look, needed=True)
    report = Report(config.places or Places(""))
    if question.looks:
        _warn(question, report, here=here)
    return tuple(sorted(report.warnings))


def _warn(question: Question, report: Report, *, here: bool) -> None:
    answers = _answers(question, here=here)
    for need in question.needs:
        unanswered = [("", "it could not be looked at", "run check again")]
        for setting, why, remedy in answers.get(need.look, unanswered):
            path = _path_of(need.path, setting, report.places)
            message = f"cannot start here: {why}: {remedy}" if need.item else f"{why}: {remedy}"
            report.warn_key(path, message)


def _answers(question: Question, *, here: bool) -> dict[int, list[tuple[str, str, str]]]:
    """Return the faults of each look, by its index. The child that looks ends in time by itself."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.dup2(theirs, looker.ANSWERS)
        in_child(looker.Looks(question.looks, LOOK_S, strict=here).answer)
    os.close(theirs)
    content = b""
    while more := os.read(ours, 65_536):
        content += more
    os.close(ours)
    os.waitpid(pid, 0)
    return {index: faults for index, faults in map(json.loads, content.splitlines())}


def _path_of(path: KeyPath, setting: str, places: Places) -> KeyPath:
    """Return the path of the key at fault, else that of the hook's command, else ``path``."""
    given = (*path, *setting.split("."))
    if setting and places.has_key(given):
        return given
    named = [(*path, key) for key in ("exec", "shell", "webhook", *setting.split(".")[:1])]
    return next((each for each in named if places.has_key(each)), path)
