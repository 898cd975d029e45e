"""For ``check``: each hook that cannot start on this machine, with its place in the file.

The module refuses nothing, because ``check`` decides whether a problem is an error.
"""

from collections.abc import Mapping
from contextlib import suppress

from supervisor.adapters.filesystem.forked import ChildFailed
from supervisor.config import Config, Problem
from supervisor.config.problems import KeyPath, Positions, Report
from supervisor.daemon.preflight.needs import probes_of, tls_probes
from supervisor.daemon.preflight.probe_run import PROBE_S, Answer, make_probes
from supervisor.daemon.preflight.probes import Fault, FileProbe


async def unstartable(config: Config, environ: Mapping[str, str], *, here: bool) -> tuple[Problem, ...]:
    """Return a problem for every hook that cannot start on this machine and every file that cannot be read.

    environ: the environment that hooks inherit.
    here: whether the configuration is meant for this machine and this user.
    """
    wanted = probes_of(config.items, environ)
    if config.consul.token_file is not None:
        wanted.add("", "", ("consul",), FileProbe("token_file", config.consul.token_file), needed=True)
    for probe in tls_probes(config.consul.tls):
        wanted.add("", "", ("consul",), probe, needed=True)
    for item in config.items:
        if item.watchdog is not None and item.watchdog.required:
            device = FileProbe("watchdog", item.watchdog.device, is_watchdog=True)
            wanted.add("", "", (), device, needed=True)
    faults_by_probe: dict[int, list[Fault]] = {}

    async def answered(answers: list[Answer]) -> None:
        faults_by_probe.update(answers)

    with suppress(ChildFailed, OSError):
        await make_probes(wanted.probes, answered, strict=here, within_s=PROBE_S)
    report = Report(config.positions or Positions(""))
    unanswered = [("", "it could not be looked at", "run check again")]
    for need in wanted.needs:
        for setting, why, remedy in faults_by_probe.get(need.probe, unanswered):
            path = _path_of(need.path, setting, report.positions)
            message = f"cannot start here: {why}: {remedy}" if need.item else f"{why}: {remedy}"
            report.warn_key(path, message)
    return tuple(sorted(report.warnings))


def _path_of(path: KeyPath, setting: str, places: Positions) -> KeyPath:
    """Return the path of the key at fault, else that of the hook's command, else ``path``."""
    given = (*path, *setting.split("."))
    if setting and places.has_key(given):
        return given
    named = [(*path, key) for key in ("exec", "shell", "disk", "webhook", *setting.split(".")[:1])]
    return next((each for each in named if places.has_key(each)), path)
