"""Users and groups of hooks: root switches to them, and another user refuses with the reason."""

import asyncio
import grp
import os
import pwd
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.adapters.hooks import privileges
from supervisor.adapters.hooks.privileges import Privileges, PrivilegesRefused, RunAs
from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from tests.processes.hooks.trial import shell, trial
from tests.support.patience import PATIENCE_S
from tests.support.programs import run_program

# Another user than ours, even if these tests run as nobody.
NOBODY = next(each for each in map(pwd.getpwnam, ("nobody", "daemon")) if each.pw_uid != os.geteuid())
DAEMON = grp.getgrnam("daemon")
IS_ROOT = os.geteuid() == 0
REFUSAL = "cannot start: only root may run a hook as another user or group"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"user": NOBODY.pw_name}, [NOBODY.pw_uid, NOBODY.pw_gid, NOBODY.pw_gid]),
        ({"user": NOBODY.pw_name, "group": "daemon"}, [NOBODY.pw_uid, DAEMON.gr_gid, NOBODY.pw_gid]),
        ({"group": "daemon"}, [0, DAEMON.gr_gid]),
    ],
)
async def test_a_hook_runs_as_its_user_and_group_or_not_at_all(
    settings: dict[str, str], expected: list[int]
) -> None:
    """The kernel shows user, group and supplementary groups."""
    async with trial() as one:
        text = "id -u; id -g; sed -n 's/^Groups:[[:space:]]*//p' /proc/self/status"
        ok, detail = await one.run(shell(text, **settings))
    if IS_ROOT:
        assert (ok, [int(number) for number in " ".join(one.text()).split()]) == (True, expected)
    else:
        assert not ok and detail.startswith(REFUSAL)


async def test_a_hook_with_a_user_sees_that_users_home_and_may_read_its_input() -> None:
    call = shell('echo "$USER $LOGNAME $HOME $SHELL"; wc -c < /dev/stdin', user=NOBODY.pw_name)
    async with trial() as one:
        ok, detail = await one.run(call)
    if IS_ROOT:
        assert one.text()[0] == f"{NOBODY.pw_name} {NOBODY.pw_name} {NOBODY.pw_dir} {NOBODY.pw_shell}"
        assert int(one.text()[1]) > 100
    else:
        assert not ok and detail.startswith(REFUSAL)


async def test_a_hook_with_the_daemons_own_user_needs_no_rights() -> None:
    ours = pwd.getpwuid(os.geteuid()).pw_name
    async with trial() as one:
        await one.run(shell("id -un", user=ours))
    assert one.text() == [ours]


async def test_an_unknown_user_or_group_is_refused_by_name() -> None:
    async with trial() as one:
        assert await one.run(shell("true", user="no-such-user")) == (
            False,
            "cannot start: unknown user 'no-such-user': add the user, or correct user",
        )
        assert await one.run(shell("true", group="no-such-group")) == (
            False,
            "cannot start: unknown group 'no-such-group': add the group, or correct group",
        )


def test_without_setpriv_the_refusal_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.adapters.hooks.privileges.SYSTEM_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    made = Privileges()
    with pytest.raises(PrivilegesRefused, match="install util-linux"):
        made.identity(Command(("/bin/true",)), dies_with_us=True)
    assert made.identity(Command(("/bin/true",))) == RunAs()


def test_without_root_another_user_is_refused_before_anything_runs() -> None:
    """These tests may run as root, so the child becomes nobody first."""
    program = (
        "import asyncio, os, pwd\n"
        "from supervisor.core.settings import Command\n"
        "from supervisor.adapters.hooks.privileges import Privileges, PrivilegesRefused\n"
        "if os.geteuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "privileges = Privileges()\n"
        "asyncio.run(privileges.look_up(Command(('true',), user='nobody')))\n"
        "print(privileges.identity(Command(('true',), user='nobody')).prefix)\n"
        "try:\n"
        "    asyncio.run(privileges.look_up(Command(('true',), user='root')))\n"
        "except PrivilegesRefused as refused:\n"
        "    print(refused)\n"
    )
    ran = run_program(program)
    why = "only root may run a hook as another user or group: user id 0, group id 0"
    assert ran.stdout == f"()\n{why}: run the supervisor as root, or remove it\n", ran.stderr


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a directory of users, the peer behind ``getent``, that hangs once the returned file exists."""
    program = tmp_path / "getent"
    hang = tmp_path / "hang"
    program.write_text(
        f'#!/bin/sh\ntest -e {shlex.quote(str(hang))} && exec sleep 60\nexec /usr/bin/getent "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return hang


def run_as(name: str, then: Callable[[], None] = lambda: None) -> tuple[bool, str]:
    """Look up the users of an on_lose, call ``then``, and run on_lose as this user."""
    hook = Hook("down", shell("true", user=name), timeout_s=PATIENCE_S)
    settings = ElectionSettings("n", "k", b"", SessionSettings("n"), on_lose=(hook,))

    async def main() -> tuple[bool, str]:
        async with trial() as one:
            await one.hooks.preload_users(settings)
            then()
            return await one.run(hook.call)

    return asyncio.run(main())


def test_users_are_looked_up_ahead_and_not_when_on_lose_is_due(directory: Path) -> None:
    """The directory may not answer in the very outage that ends a lease."""
    user = NOBODY if IS_ROOT else pwd.getpwuid(os.geteuid())  # only root may run a hook as another
    ok, detail = run_as(user.pw_name, directory.touch)
    assert ok, detail


@pytest.mark.long
def test_a_directory_of_users_that_hangs_fails_the_hook_after_a_second(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "LOOKUP_S", 1.0)
    directory.touch()
    ok, detail = run_as(NOBODY.pw_name)
    assert not ok and f"did not answer for '{NOBODY.pw_name}' within 1 s" in detail


async def test_the_loop_goes_on_while_a_user_is_looked_up_and_the_hook_can_be_stopped(
    directory: Path,
) -> None:
    """A directory of users that hangs would otherwise stop every other item for a second."""
    directory.touch()
    async with trial() as one:
        start = one.start(shell("true", user=NOBODY.pw_name))
        assert await one.run("exit 0", attempt=2) == (True, "exit 0")
        assert one.hooks.running == 1
        one.kill(start)
        assert await one.outcome(start) == (False, "stopped before it could start")


async def test_a_hook_that_is_killed_in_the_moment_its_user_is_known_does_not_start() -> None:
    async with trial() as one:
        others = asyncio.all_tasks()
        start = one.start(shell("true", user=NOBODY.pw_name))
        (look_up,) = asyncio.all_tasks() - others
        while not look_up.done():
            await asyncio.sleep(0)
        one.kill(start)
        assert await one.outcome(start) == (False, "stopped before it could start")


def test_a_missing_user_is_no_fault_before_its_hook_runs() -> None:
    assert run_as("nobody-such") == (
        False,
        "cannot start: unknown user 'nobody-such': add the user, or correct user",
    )


def test_a_failed_look_up_ahead_does_not_end_the_daemon(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """getent or a process for it may be missing, which the hook reports when it is due."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_as(NOBODY.pw_name) == (False, "cannot start: No such file or directory: getent")
