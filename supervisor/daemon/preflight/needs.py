"""What the hooks of a configuration need in order to start, as probes of this machine.

The functions are pure, and look at nothing. Equal probes are merged, because a thousand items may run one
program. The probes hold names of files, users and programs, and no secret.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from supervisor.config.problems import KeyPath
from supervisor.core.settings import HOOK_EVENTS, Command, ItemSettings, Tls, Webhook
from supervisor.daemon.preflight.probes import FileProbe, Probe, ProgramProbe

DEFAULT_PATH = "/bin:/usr/bin"  # as execvp has it when PATH is not set
_SPARED = ("on_change", "candidate_check")  # the keys whose hooks a node can hold without
_GOES_ON = re.compile(r"[;|&\n]")
_JOINED = re.compile(r"&&|[<>]&|&>|;$")  # a command only if the former one has succeeded; streams
_SCRIPT = re.compile(r"\s*([\w.,:+@%-]*/[\w./,:+@%-]*)(?!\S)")


@dataclass(frozen=True, slots=True)
class Need:
    """A probe that a hook needs."""

    item: str  # the name of the item. Blank: the probe is for the connection to Consul
    hook: str  # its name. Blank: as above
    path: KeyPath  # where the hook is in the configuration
    probe: int  # the index of the probe in ``ProbeList.probes``
    needed: bool  # whether a node needs the hook in order to hold


@dataclass(slots=True)
class ProbeList:
    """The probes, each of them once, and the hooks that need them."""

    needs: list[Need] = field(default_factory=list)
    _known: dict[Probe, int] = field(default_factory=dict)

    @property
    def probes(self) -> tuple[Probe, ...]:
        return tuple(self._known)

    def add(self, item: str, hook: str, path: KeyPath, probe: Probe, *, needed: bool) -> None:
        self.needs.append(Need(item, hook, path, self._known.setdefault(probe, len(self._known)), needed))


def probes_of(items: tuple[ItemSettings, ...], environ: Mapping[str, str]) -> ProbeList:
    """Return everything that the hooks of these items need. ``environ``: what hooks inherit, such as PATH."""
    found, path = ProbeList(), environ.get("PATH") or DEFAULT_PATH
    for settings in items:
        can_wait = settings.fence is not None and not settings.fence.required
        spared = (*_SPARED, "fence") if can_wait else _SPARED
        for hook, at, call, lives in _calls_of(settings):
            needed = settings.contend and at[2] not in spared
            for probe in _probes_of(call, path, lives=lives):
                found.add(settings.name, hook, at, probe, needed=needed)
    return found


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
    for hook in settings.fence_methods:
        yield hook.name, (*path, "fence"), hook.call, False


def _probes_of(call: Command | Webhook, path: str, *, lives: bool) -> Iterator[Probe]:
    if isinstance(call, Command):
        path = dict(call.env).get("PATH", path)
        script = _script_of(call.argv)
        yield ProgramProbe(call.argv[0], path, call.cwd, call.user, call.group, lives, script)
        return
    if call.secret_file is not None:
        yield FileProbe("secret_file", call.secret_file)
    yield from tls_probes(call.tls)


def _script_of(argv: tuple[str, ...]) -> str:
    """Return the program that a text for a shell begins with, if nothing of it is the shell's own.

    Blank where the text goes on although that program fails.
    """
    if argv[:2] != ("/bin/sh", "-c") or _GOES_ON.search(_JOINED.sub("", argv[2].strip())):
        return ""
    found = _SCRIPT.match(argv[2])
    return found[1] if found else ""


def tls_probes(tls: Tls) -> Iterator[Probe]:
    """Yield the probes whether the files and the folder of these settings can be read."""
    for setting in ("ca_file", "cert_file", "key_file"):
        if name := getattr(tls, setting):
            yield FileProbe(f"tls.{setting}", name)
    if tls.ca_path:
        yield FileProbe("CONSUL_CAPATH", tls.ca_path, is_folder=True)
