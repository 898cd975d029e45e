"""For ``check``: what cannot start on this machine, each with its place in the file.

It asks ``looker`` and waits for the answer. It refuses nothing: ``check`` decides what is an error.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping

from supervisor.config import Config, Problem
from supervisor.config.problems import KeyPath, Places, dotted
from supervisor.preflight import ENDS_S, LOOK_S, command
from supervisor.preflight.questions import Question, file_look, question_of, tls_looks


def unstartable(config: Config, environ: Mapping[str, str], *, here: bool) -> tuple[Problem, ...]:
    """Every hook that cannot start on this machine, and every file that cannot be read. ``here``: the
    configuration is meant for this machine and this user."""
    question = question_of(config.items, environ)
    if config.consul.token_file is not None:
        look = file_look("token_file", config.consul.token_file)
        question.add("", "", ("consul",), look, needed=True)
    for look in tls_looks(config.consul.tls):
        question.add("", "", ("consul",), look, needed=True)
    return (
        tuple(sorted(_problems(question, config.places or Places(""), here=here))) if question.looks else ()
    )


def _problems(question: Question, places: Places, *, here: bool) -> Iterator[Problem]:
    answers = _answers(question, here=here)
    for need in question.needs:
        unanswered = [("", "it could not be looked at", "run check again")]
        for setting, why, remedy in answers.get(need.look, unanswered):
            path = _path_of(need.path, setting, places)
            message = f"cannot start here: {why}: {remedy}" if need.item else f"{why}: {remedy}"
            yield Problem(*places.of_key(path), dotted(path), message)


def _answers(question: Question, *, here: bool) -> dict[int, list[tuple[str, str, str]]]:
    try:
        done = subprocess.run(
            command(alone=True),
            input=question.asked(strict=here),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=LOOK_S + ENDS_S,
            env={},
            process_group=0,
        )
        lines = done.stdout
    except subprocess.TimeoutExpired as expired:
        lines = expired.stdout or b""
    except OSError:
        lines = b""
    whole = lines[: lines.rfind(b"\n") + 1]
    return {index: faults for index, faults in map(json.loads, whole.splitlines())}


def _path_of(path: KeyPath, setting: str, places: Places) -> KeyPath:
    """The key that says it; where the file has none, that of the command."""
    given = (*path, *setting.split("."))
    if setting and given in places.keys:
        return given
    named = [(*path, key) for key in ("exec", "shell", "webhook", *setting.split(".")[:1])]
    return next((each for each in named if each in places.keys), path)
