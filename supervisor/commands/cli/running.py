"""``run``, the daemon. If its configuration cannot be loaded, tenures on record are wound up instead."""

import argparse
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from supervisor.adapters.consul.token import Token, TokenError, TokenHangs
from supervisor.adapters.filesystem.children import NoAnswer
from supervisor.adapters.runtime import signals
from supervisor.adapters.runtime.notification import still_starting
from supervisor.commands.cli.exit_codes import CONFIGURATION, DONE, NEGATIVE
from supervisor.commands.cli.terminal import collect_rarely, fail, report, run_async
from supervisor.config import Config, ConfigError, load, schema_text
from supervisor.config.loader import state_dirs_of
from supervisor.config.notification import may_stand_still_s
from supervisor.config.places import usual_socket, usual_state_dir
from supervisor.daemon import accepted
from supervisor.reporting.control import ControlError

NOTED = "state_dir"  # a file in the folder that systemd keeps, also when this process is killed
START_WITHIN_S = 3.0  # time for the file system of another machine to answer after a boot
RELOAD_WITHIN_S = 0.25  # a file system that works answers in about ten milliseconds
SIGN_OF_LIFE_S = 1.0  # between two notifications of systemd, which kills a start that stands still


@dataclass(frozen=True, slots=True)
class _Start:
    """The configuration with which a process starts."""

    config: Config
    refused: str = ""  # why the present files cannot be used. Blank: they are
    passes: bool = False  # whether that may pass by itself


def run(options: argparse.Namespace) -> int:
    path, note = options.path, _note_file(options.path)
    reload = partial(_load, path, RELOAD_WITHIN_S)
    try:
        start = _load_or_go_on(path, note)
        ended = _wind_up_former_state_dir(start.config, note)
        if ended is not None:
            return ended
        code = _daemon(start, reload, path)
        if code == DONE:
            note.unlink(missing_ok=True)
        return code
    except NoAnswer as error:
        fail(NEGATIVE, f"cannot read {path}: {error.strerror}")
        _wind_up_each([usual_state_dir(os.environ)], note)
        return NEGATIVE  # systemd starts the daemon again, and the file system may answer by then
    except (ConfigError, TokenError, ControlError) as error:
        code = report(error)
        _wind_up_each(state_dirs_of(path, os.environ), note)
        return code


def _load_or_go_on(path: Path, note: Path) -> _Start:
    """Load the configuration; where it cannot be used, take the last accepted one, as a reload would.

    Raises ConfigError, NoAnswer or TokenError when none was ever accepted. Where a tenure may be on record, a
    token file that cannot be used is forgiven even then.
    """
    unusable: ConfigError | NoAnswer | TokenError
    config = None
    try:
        config = _load_at_start(path)
        Token(config.consul, forgiven=TokenHangs).close()
        return _Start(config)
    except NoAnswer as error:
        unusable, why = error, f"{path} cannot be read: {error.strerror}"
        folders = [usual_state_dir(os.environ)]  # the files may hang whoever looks into them
    except TokenError as error:
        unusable, why = error, str(error)
        folders = [] if config is None else [config.state_dir]
    except ConfigError as error:
        unusable, why = error, error.in_short
        folders = [*state_dirs_of(path, os.environ)]
    folders.insert(0, _noted_state_dir(note))
    runtime, passes = os.environ.get("RUNTIME_DIRECTORY", ""), not isinstance(unusable, ConfigError)
    former = accepted.find(filter(None, folders), runtime, path)
    if former is not None:
        if isinstance(unusable, ConfigError):
            report(unusable)
        runs = f"this process runs by the configuration of {former.time}"
        return _Start(former.config, f"{runs}, because {why}", passes)
    if config is not None:
        from supervisor.daemon.records import config_of_records

        if config_of_records(config.state_dir, os.environ) is not None:
            return _Start(config, f"requests carry no token, because {why}", passes)
    raise unusable


def _load_at_start(path: Path) -> Config:
    """Load the configuration in a child, or in this process if no child can do it.

    A shortage of processes or memory must not keep a node from adopting its tenures. Raises ConfigError, and
    NoAnswer when loading takes too long.
    """
    from supervisor.adapters.filesystem.forked import ChildFailed

    try:
        return run_async(_load_beside_imports(path))
    except NoAnswer:
        raise
    except (ChildFailed, OSError):
        return _load_here(path)


async def _load_beside_imports(path: Path) -> Config:
    """Load the configuration in a child, and import the daemon meanwhile, which takes a tenth of a second."""
    import asyncio

    loading = asyncio.create_task(_load(path, START_WITHIN_S))
    await asyncio.sleep(0)  # so that the child begins
    from supervisor.daemon import loop as loop

    while not loading.done():
        still_starting(os.environ, may_stand_still_s(os.environ))
        await asyncio.wait((loading,), timeout=SIGN_OF_LIFE_S)
    still_starting(os.environ, may_stand_still_s(os.environ))
    return await loading


async def _load(path: Path, within_s: float) -> Config:
    """Load the configuration in a child, once its file system has answered; else raise NoAnswer."""
    from supervisor.adapters.filesystem.reading import answer_of
    from supervisor.daemon.reload import load_in_child

    await answer_of(str(path), within_s)
    schema_text()  # in memory, as the loader is, because an upgrade may have replaced the files
    return await load_in_child(partial(_load_here, path), path)


def _load_here(path: Path) -> Config:
    """Load the configuration, without ``positions``, which the daemon does not use. Raises ConfigError."""
    config = replace(load(path, os.environ, socket.gethostname()), positions=None)
    return replace(config, kept=accepted.content_of(path, config))


def _wind_up_each(directories: Iterable[str], note: Path) -> None:
    """Wind up the tenures on record in these state_dirs, and in that of the former process.

    So each tenure gets its on_lose even if the configuration cannot be loaded.
    """
    from supervisor.adapters.journal import JournalError
    from supervisor.adapters.journal.copies import JournalBusy

    for directory in filter(None, dict.fromkeys((*directories, _noted_state_dir(note)))):
        try:
            _wind_up_records(directory)
        except (JournalBusy, JournalError) as error:
            report(error)
        except OSError as error:
            fail(CONFIGURATION, f"cannot use state_dir {directory}: {error.strerror}")


def _wind_up_former_state_dir(config: Config, note: Path) -> int | None:
    """Wind up the records of the former process, if it was killed and had another state_dir.

    No later process would look there. Return the exit code. None: there was nothing to wind up. Raises
    JournalBusy or JournalError.
    """
    former, state_dir = _noted_state_dir(note), config.state_dir
    ended = _wind_up_records(former) if _is_another_folder(former, state_dir) else None
    if ended not in (None, DONE):
        return fail(
            CONFIGURATION,
            f"cannot use state_dir {state_dir} yet: a tenure on record in {former}, the state_dir until now, "
            f"is not wound up; see the records in {former}",
        )
    with suppress(OSError):
        if config.control is not None and Path(config.control.path).parent == note.parent:
            note.parent.mkdir(parents=True, exist_ok=True)  # as the control socket's own would be
        note.write_text(state_dir)
    if ended is None:
        return None
    what = f"the records in {former}, the state_dir until now, are wound up"
    return fail(NEGATIVE, f"{what}; the next start uses {state_dir}")


def _is_another_folder(former: str, state_dir: str) -> bool:
    """Return whether the former state_dir is known, and is not the present folder by another path.

    On a file system that may not answer only the paths are compared.
    """
    from supervisor.adapters.filesystem.mounts import is_local

    if not former or os.path.normpath(former) == os.path.normpath(state_dir):
        return False
    near = is_local(former) and is_local(state_dir)
    return not near or os.path.realpath(former) != os.path.realpath(state_dir)


def _note_file(path: Path) -> Path:
    """Return the file in which a process notes its state_dir for the next process.

    It is in the folder that systemd keeps during restarts. Without systemd it is beside the default control
    socket, which several daemons may share, so its name is that of the configuration at ``path``.
    """
    beside = Path(usual_socket(os.environ))
    if os.environ.get("RUNTIME_DIRECTORY"):
        return beside.with_name(NOTED)
    return beside.with_name(f"{NOTED}.{sha256(os.fsencode(path)).hexdigest()[:16]}")


def _noted_state_dir(note: Path) -> str:
    """Return the state_dir that the former process noted. Blank: there is no note."""
    try:
        return note.read_text(errors="replace")
    except OSError:
        return ""


def _wind_up_records(directory: str) -> int | None:
    """Wind up the tenures on record. None: there are none. Raises JournalBusy or JournalError."""
    from supervisor.daemon.records import config_of_records

    config = config_of_records(directory, os.environ)
    if config is None:
        return None
    print(f"winding up the tenures that an earlier run has left on record in {directory}", file=sys.stderr)
    return _daemon(_Start(config))


def _daemon(
    start: _Start, load: Callable[[], Awaitable[Config]] | None = None, path: Path | None = None
) -> int:
    from supervisor.adapters.runtime.clock import boottime
    from supervisor.daemon.loop import Daemon
    from supervisor.reporting.telemetry.log import STANDARD_ERROR, Log, reaches_journal

    config, journal = start.config, reaches_journal(STANDARD_ERROR, os.environ)
    log = Log(config.log.level, config.log.format, boottime, journal=journal)

    async def daemon() -> int:
        running = Daemon(
            config,
            socket.gethostname(),
            os.environ,
            log,
            load=load,
            path=path,
            refused=start.refused,
            reads_again=start.passes,
        )
        collect_rarely()
        try:
            return await running.run()
        finally:
            # Other records may have to be wound up next, so a stop signal waits until a loop handles it.
            signals.block()

    return run_async(daemon())
