"""One booted machine: a Debian in a systemd-nspawn of its own, whose writes stay in memory.

Commands are run in it by entering its namespaces. Nothing of it outlives the ``with`` block: its
processes end with their first one, PDEATHSIG has it shut down with the test process, and its files, its
cgroups and what nspawn leaves in /run are removed.

The Debian is only read, and the changes to it lie in a tmpfs over it: a copy of 18,000 files took ten
seconds to make and up to a minute to remove. The two are mounted in a namespace that a process keeps, so
that they outlast a reboot and end with that process.
"""

import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil

from tests.support.captured import captured
from tests.support.supervisor import until

TREES = Path(__file__).resolve().parents[3] / ".cache" / "machine"
BOOKWORM = TREES / "bookworm"  # Debian 12 with the applications of the tests
TRIXIE = TREES / "trixie"  # Debian 13, bare
PACEMAKER = TREES / "pacemaker"  # Debian 12 with Pacemaker, for the bench
BOOT_S = 60.0  # a boot takes one second where nothing else runs
COMMAND_S = 120.0
END_S = 60.0
LOOK_S = 5.0
ENVIRON = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
REBOOT_ASKED = 133  # exit code of a systemd-nspawn with --keep-unit: the machine is to boot again
HOST_CGROUPS = Path("/sys/fs/cgroup")
CHANGES_MAX = "2g"  # what one machine may write; two databases need a fifth of it
KEEP = f"""
cd "$1"
mount -t tmpfs -o mode=755,size={CHANGES_MAX} tmpfs .
cd "$1"
mkdir upper work root
mount -t overlay -o "lowerdir=$2,upperdir=upper,workdir=work" overlay root
echo mounted
exec sleep infinity
"""

Ran = subprocess.CompletedProcess[str]


class Machine:
    """A machine of its own; ``folder`` must not exist and gets its console.

    bridge: the bridge that its only network interface, host0, is plugged into. Blank: none.
    hostname: its name to the programs in it. Blank: the same as ``name``, by which the host knows it.
    tree: the Debian that it boots.
    """

    def __init__(self, folder: Path, bridge: str = "", hostname: str = "", *, tree: Path = BOOKWORM) -> None:
        assert os.geteuid() == 0, "cannot boot a machine: this needs root"
        assert tree.is_dir(), (
            f"cannot boot a machine: there is no {tree.name}; tests/system/machine/get_debian.sh makes it"
        )
        self._tree = tree
        self.name = f"supervised-{uuid.uuid4().hex[:8]}"
        self._hostname = hostname or self.name
        self._network = f"--network-bridge={bridge}" if bridge else "--private-network"
        self._mounted = folder / "mounted"
        self._log = folder / "console"
        self._keeper: subprocess.Popen[str] | None = None
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._cgroups: list[Path] = []

    def __enter__(self) -> Self:
        self._mounted.mkdir(parents=True)
        try:
            self._mount()
            (self.root / "etc" / "hostname").write_text(f"{self._hostname}\n")
            self._boot()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _mount(self) -> None:
        """Begin the process that keeps the mounts."""
        self._keeper = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount"),
                *("sh", "-euc", KEEP, "sh", str(self._mounted), str(self._tree)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        with self._keeper.stdout as told:
            assert told.readline() == "mounted\n", "cannot mount the machine's files"

    @property
    def root(self) -> Path:
        """The machine's files, as its keeper sees them."""
        assert self._keeper is not None
        return Path(f"/proc/{self._keeper.pid}/root{self._mounted}/root")

    def _boot(self) -> None:
        assert self._keeper is not None
        command = [
            *("nsenter", f"--mount=/proc/{self._keeper.pid}/ns/mnt"),
            *("setpriv", "--pdeathsig", "TERM", "systemd-nspawn", "--quiet", "--boot", "--register=no"),
            *(f"--machine={self.name}", f"--directory={self._mounted}/root", self._network, "--console=pipe"),
            *("--link-journal=no", "--resolv-conf=off", "--timezone=off", "--kill-signal=SIGRTMIN+3"),
        ]
        if not Path("/run/systemd/system").exists():  # without systemd here, it gets a cgroup of ours
            command.append("--keep-unit")
            self._cgroups = [hierarchy / self.name for hierarchy in _hierarchies()]
        for cgroup in self._cgroups:
            cgroup.mkdir()
        entering = "".join(f"echo 0 >'{cgroup}/cgroup.procs' && " for cgroup in self._cgroups)
        with self._log.open("ab") as log:
            self._nspawn = subprocess.Popen(
                ["/bin/sh", "-c", f'{entering}exec "$@"', "sh", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_up()

    def _wait_up(self) -> None:
        def up() -> bool:
            assert self._nspawn is not None and self._nspawn.poll() is None, self._log.read_text()
            return self._leader() is not None and self._told("systemctl is-system-running") == "running\n"

        until(up, "the machine has booted", BOOT_S)

    @property
    def leader(self) -> int:
        """The machine's process 1, as this computer numbers it."""
        leader = self._leader()
        assert leader is not None, "the machine is not up"
        return leader

    def _leader(self) -> int | None:
        """Return the machine's process 1; None while there is none."""
        assert self._nspawn is not None
        try:
            children = psutil.Process(self._nspawn.pid).children()
            return next((child.pid for child in children if child.exe().endswith("/systemd")), None)
        except psutil.Error:
            return None

    def run(
        self, *command: str, environ: Mapping[str, str] | None = None, within_s: float = COMMAND_S
    ) -> Ran:
        """Run a command in the machine and return its output, whatever its exit code."""
        leader = self._leader()
        if leader is None:
            return Ran(command, 1, "", "the machine is not up")
        variables = (f"{name}={value}" for name, value in {**ENVIRON, **(environ or {})}.items())
        entered = ["nsenter", "--all", f"--target={leader}", "--"]
        return captured(
            [*entered, "/usr/bin/env", "-i", "--chdir=/", *variables, *command],
            stdin=subprocess.DEVNULL,
            timeout=within_s,
        )

    def sh(self, text: str, within_s: float = COMMAND_S) -> Ran:
        """Run a shell's command line in the machine and return its output, whatever its exit code."""
        return self.run("/bin/sh", "-euc", text, within_s=within_s)

    def _told(self, text: str) -> str:
        """Return the output of a shell's command line; blank when the command hangs.

        While the machine comes up or goes down, a command may be stopped on its way in and never answer.
        """
        try:
            return self.sh(text, LOOK_S).stdout
        except subprocess.TimeoutExpired:
            return ""

    def did(self, text: str, within_s: float = COMMAND_S) -> str:
        """Run a shell's command line and return its output; raise AssertionError when it failed."""
        ran = self.sh(text, within_s)
        assert ran.returncode == 0, f"{text}: {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran.stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in the machine and make its folders.

        Not below /run or /tmp, which are mounts of the machine.
        """
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def read(self, path: str) -> str:
        """Return the text of a file in the machine; blank when it is absent."""
        file = self.root / path.lstrip("/")
        return file.read_text(errors="replace") if file.exists() else ""

    def reboot(self) -> None:
        """Reboot in order: services are stopped, and the machine boots with another boot id."""
        before = self.did(BOOT_ID)
        self.sh("systemctl --no-block reboot")

        def rebooted() -> bool:
            assert self._nspawn is not None
            return self._nspawn.poll() is not None or self._told(BOOT_ID) not in ("", before)

        until(rebooted, "the machine goes down", BOOT_S)
        assert self._nspawn is not None
        if self._nspawn.poll() == REBOOT_ASKED:
            self._leave_cgroups()
            self._boot()
        self._wait_up()
        assert self.did(BOOT_ID) != before

    @property
    def is_up(self) -> bool:
        return self._leader() is not None

    def kill(self) -> None:
        """End it as a loss of its power does, and return when it has ended. Its files stay."""
        if self._nspawn is not None:
            leader = self._leader()
            if leader is not None:
                os.kill(leader, signal.SIGKILL)  # the kernel then ends all processes of the machine
            else:
                self._nspawn.kill()
            self._nspawn.wait(END_S)

    def boot(self) -> None:
        self._leave_cgroups()
        self._boot()

    def pause(self) -> None:
        """Stop all of its processes. Its clock goes on."""
        leader, stopped = psutil.Process(self.leader), set[psutil.Process]()
        while others := {leader, *leader.children(recursive=True)} - stopped:
            _signal(others, signal.SIGSTOP)
            stopped |= others

    def resume(self) -> None:
        leader = psutil.Process(self.leader)
        _signal({leader, *leader.children(recursive=True)}, signal.SIGCONT)

    def _end(self) -> None:
        self.kill()
        self._leave_cgroups()
        shutil.rmtree(Path("/run/systemd/nspawn/propagate") / self.name, ignore_errors=True)
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.wait(END_S)

    def _leave_cgroups(self) -> None:
        for cgroup in self._cgroups:
            _remove(cgroup)


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _hierarchies() -> list[Path]:
    """Return where systemd may make cgroups: one place, or two beside those of the first version."""
    named = [HOST_CGROUPS / "systemd", HOST_CGROUPS / "unified"]
    return [HOST_CGROUPS] if (HOST_CGROUPS / "cgroup.procs").exists() else [h for h in named if h.exists()]


def _remove(cgroup: Path) -> None:
    """Remove a cgroup and those below it when their last process has gone."""

    def gone() -> bool:
        for folder, _, _ in os.walk(cgroup, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return True

    until(gone, f"no process is left in {cgroup}", END_S)
