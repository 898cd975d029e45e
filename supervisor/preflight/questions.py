"""The looks for ``looker``: everything that the hooks of a configuration need in order to start.

The functions are pure, and look at nothing. Equal looks are merged, because a thousand items may run one
program. The looks hold names of files, users and programs, and no secret.
"""

import marshal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from supervisor.config.problems import KeyPath
from supervisor.core.settings import HOOK_EVENTS, Command, ItemSettings, Tls, Webhook
from supervisor.preflight import LOOK_S

DEFAULT_PATH = "/bin:/usr/bin"  # as execvp has it when PATH is not set
Look = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Need:
    """A look that a hook needs.

    item, hook: their names. Blank: the look is for the connection to Consul.
    path: where the hook is in the configuration.
    look: the index of the look in ``Question.looks``.
    needed: whether a node needs the hook in order to hold.
    """

    item: str
    hook: str
    path: KeyPath
    look: int
    needed: bool


@dataclass(slots=True)
class Question:
    """The looks, each of them once, and the hooks that need them."""

    looks: list[Look] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    _known: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, item: str, hook: str, path: KeyPath, look: Look, *, needed: bool) -> None:
        """Add a look that this hook needs."""
        key = tuple(look.values())
        index = self._known.setdefault(key, len(self.looks))
        if index == len(self.looks):
            self.looks.append(look)
        self.needs.append(Need(item, hook, path, index, needed))

    def asked(self, *, strict: bool) -> bytes:
        """Return the question as ``looker`` reads it. ``strict``: as in ``looks.faults_of``."""
        return marshal.dumps({"looks": self.looks, "within_s": LOOK_S, "strict": strict})


def question_of(items: tuple[ItemSettings, ...], environ: Mapping[str, str]) -> Question:
    """Return everything that the hooks of these items need. ``environ``: what hooks inherit, such as PATH."""
    question, path = Question(), environ.get("PATH") or DEFAULT_PATH
    for settings in items:
        for hook, at, call, lives in _calls_of(settings):
            needed = settings.contend and at[2] not in ("on_change", "candidate_check")
            for look in _looks_of(call, path, lives=lives):
                question.add(settings.name, hook, at, look, needed=needed)
    return question


def _calls_of(settings: ItemSettings) -> Iterator[tuple[str, KeyPath, Command | Webhook, bool]]:
    """Yield the name, path and call of every hook, and whether the hook lives as long as the tenure."""
    path: KeyPath = (f"{settings.kind}s", settings.name)
    for list_name in HOOK_EVENTS:
        for index, hook in enumerate(settings.hooks_of(list_name)):
            yield hook.name, (*path, list_name, index), hook.call, False
    if settings.run is not None:
        yield "run", (*path, "run"), settings.run.command, True
    if settings.check_hook is not None:
        yield settings.check_hook.name, (*path, "candidate_check"), settings.check_hook.call, False


def _looks_of(call: Command | Webhook, path: str, *, lives: bool) -> Iterator[Look]:
    if isinstance(call, Command):
        yield _command(call, path, lives=lives)
        return
    if call.secret_file is not None:
        yield file_look("secret_file", call.secret_file)
    yield from tls_looks(call.tls)


def _command(command: Command, path: str, *, lives: bool) -> Look:
    return {
        "program": command.argv[0],
        "path": dict(command.env).get("PATH", path),
        "cwd": command.cwd,
        "user": command.user,
        "group": command.group,
        "setpriv": lives,
    }


def file_look(setting: str, name: str) -> Look:
    """Return the look whether the file ``name`` can be read. ``setting``: the key that names it."""
    return {"file": name, "setting": setting}


def tls_looks(tls: Tls) -> Iterator[Look]:
    """Yield the looks whether the files and the folder of these settings can be read."""
    for setting in ("ca_file", "cert_file", "key_file"):
        if name := getattr(tls, setting):
            yield file_look(f"tls.{setting}", name)
    if tls.ca_path:
        yield {"folder": tls.ca_path, "setting": "CONSUL_CAPATH"}
