"""Users and groups: as root they are taken on; without root the refusal says so."""

import asyncio
import grp
import os
import pwd
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from supervisor.core.settings import Command, ElectionSettings, Hook, SessionSettings
from supervisor.hooks.privileges import Privileges, PrivilegesRefused
from tests.processes.hooks.trial import shell, trial
from tests.support.programs import run_program

# Another user than we are, also where somebody runs these tests as nobody.
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
def test_a_hook_runs_as_its_user_and_group_or_not_at_all(
    settings: dict[str, str], expected: list[int]
) -> None:
    """User, group and supplementary groups, as the kernel has them."""

    async def main() -> None:
        async with trial() as one:
            text = "id -u; id -g; sed -n 's/^Groups:[[:space:]]*//p' /proc/self/status"
            ok, detail = await one.run(shell(text, **settings))
        if IS_ROOT:
            assert (ok, [int(number) for number in " ".join(one.text()).split()]) == (True, expected)
        else:
            assert not ok and detail.startswith(REFUSAL)

    asyncio.run(main())


def test_a_hook_with_a_user_sees_that_users_home_and_may_read_its_input() -> None:
    call = shell('echo "$USER $LOGNAME $HOME $SHELL"; wc -c < /dev/stdin', user=NOBODY.pw_name)

    async def main() -> None:
        async with trial() as one:
            ok, detail = await one.run(call)
        if IS_ROOT:
            assert one.text()[0] == f"{NOBODY.pw_name} {NOBODY.pw_name} {NOBODY.pw_dir} {NOBODY.pw_shell}"
            assert int(one.text()[1]) > 100
        else:
            assert not ok and detail.startswith(REFUSAL)

    asyncio.run(main())


def test_our_own_user_needs_no_rights_at_all() -> None:
    ours = pwd.getpwuid(os.geteuid()).pw_name

    async def main() -> None:
        async with trial() as one:
            await one.run(shell("id -un", user=ours))
        assert one.text() == [ours]

    asyncio.run(main())


def test_an_unknown_user_or_group_is_refused_by_name() -> None:
    async def main() -> None:
        async with trial() as one:
            assert await one.run(shell("true", user="no-such-user")) == (
                False,
                "cannot start: unknown user 'no-such-user'",
            )
            assert await one.run(shell("true", group="no-such-group")) == (
                False,
                "cannot start: unknown group 'no-such-group'",
            )

    asyncio.run(main())


def test_without_setpriv_the_refusal_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.hooks.privileges.SYSTEM_PATH", str(tmp_path))
    privileges = Privileges({"PATH": str(tmp_path)})
    with pytest.raises(PrivilegesRefused, match="install util-linux"):
        privileges.identity(Command(("/bin/true",)), dies_with_us=True)
    assert privileges.identity(Command(("/bin/true",))).prefix == ()


def test_without_root_another_user_is_refused_before_anything_runs() -> None:
    """Run as nobody, for these tests may run as root."""
    program = (
        "import os, pwd\n"
        "from supervisor.core.settings import Command\n"
        "from supervisor.hooks.privileges import Privileges, PrivilegesRefused\n"
        "if os.geteuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(Privileges(os.environ).identity(Command(('true',), user='nobody')).prefix)\n"
        "try:\n"
        "    print(Privileges(os.environ).identity(Command(('true',), user='root')))\n"
        "except PrivilegesRefused as refused:\n"
        "    print(refused)\n"
    )
    ran = run_program(program)
    assert ran.stdout == "()\nonly root may run a hook as another user or group: user id 0, group id 0\n", (
        ran.stderr
    )


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of users (the peer behind ``getent``) that tells, and hangs once ``hang`` is there."""
    program = tmp_path / "getent"
    hang = tmp_path / "hang"
    program.write_text(
        f'#!/bin/sh\ntest -e {shlex.quote(str(hang))} && exec sleep 60\nexec /usr/bin/getent "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return hang


def run_as(name: str, then: Callable[[], None] = lambda: None) -> tuple[bool, str]:
    """Look up the users of an on_lose, do what comes ``then``, and run on_lose as the user of this name."""
    hook = Hook("down", shell("true", user=name), timeout_s=5.0)
    settings = ElectionSettings("n", "k", b"", SessionSettings("n"), on_lose=(hook,))

    async def main() -> tuple[bool, str]:
        async with trial() as one:
            one.hooks.preload_users(settings)
            then()
            return await one.run(hook.call)

    return asyncio.run(main())


def test_users_are_looked_up_when_they_are_learnt_and_not_when_on_lose_is_due(directory: Path) -> None:
    """The directory may not answer in the very outage that ends a lease."""
    user = NOBODY if IS_ROOT else pwd.getpwuid(os.geteuid())  # only root may run a hook as another
    ok, detail = run_as(user.pw_name, directory.touch)
    assert ok, detail


def test_a_directory_of_users_that_hangs_fails_the_hook_and_stops_nothing_for_long(directory: Path) -> None:
    directory.touch()
    ok, detail = run_as(NOBODY.pw_name)
    assert not ok and f"did not answer for '{NOBODY.pw_name}' within 1 s" in detail


def test_a_user_that_is_not_there_yet_is_no_fault_before_it_is_needed() -> None:
    assert run_as("nobody-such") == (False, "cannot start: unknown user 'nobody-such'")


def test_a_look_up_that_cannot_be_made_while_users_are_learnt_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An error of the system would end the daemon, although no hook is due: without getent, or without a
    process to be had, it is told when the hook is to run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_as(NOBODY.pw_name) == (False, "cannot start: No such file or directory: getent")
