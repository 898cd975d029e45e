"""``candidate_check: {disk: PATH}`` as a process on file systems that are well, full, read-only or absent."""

import os
import subprocess
from pathlib import Path

import pytest

from supervisor.config import disk_check
from tests.support.captured import captured

NAMESPACE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
FACTS = {"CONSUL_SUPERVISOR_NODE": "n1", "CONSUL_SUPERVISOR_NAME": "app"}
# A kernel or file system without nameless files refuses them with EISDIR or EOPNOTSUPP. Without its own bit
# O_TMPFILE is refused like that here.
OLD = "import os; os.O_TMPFILE = os.O_DIRECTORY\n"


def checked(
    folder: Path, before: str = ":", after: str = ":", program: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the check of a folder in a mount namespace, between two texts of a shell with $1 as the folder."""
    script = f'{before}\nfolder=$1; shift; "$@"; code=$?; set -- "$folder"\n{after}\nexit $code'
    argv = program or disk_check.argv_of(str(folder))
    return captured([*NAMESPACE, "sh", "-c", script, "sh", folder, *argv], env={**os.environ, **FACTS})


def of_old_kernel(folder: Path) -> tuple[str, ...]:
    *interpreter, program, path = disk_check.argv_of(str(folder))
    return (*interpreter, OLD + program, path)


def test_a_disk_that_works_is_fit_and_keeps_no_file(tmp_path: Path) -> None:
    for program in ((), of_old_kernel(tmp_path)):
        done = checked(tmp_path, program=program)
        assert done.returncode == 0, done.stderr
        assert list(tmp_path.iterdir()) == []


def test_a_file_that_a_killed_check_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".consul-supervisor-n1-app").symlink_to("elsewhere")
    assert checked(tmp_path, program=of_old_kernel(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(
    ("before", "why"),
    [
        ('mount -t tmpfs -o ro none "$1"', "Read-only file system"),
        ('mount -t tmpfs -o size=8k none "$1"; head -c 8k /dev/zero >"$1/full"', "No space left on device"),
        ('rmdir "$1"', "No such file or directory"),
        ('rmdir "$1"; touch "$1"', "Not a directory"),
    ],
)
def test_a_disk_that_does_not_work_is_unfit_and_says_why(
    tmp_path: Path, before: str, why: str, old: bool
) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    done = checked(folder, before, 'ls -A "$1" >&2', of_old_kernel(folder) if old else ())
    assert done.returncode == 1
    said, *rest = done.stderr.splitlines()
    assert said == f"{folder} has not answered a write and a sync"
    assert rest[0] == f"cannot write and sync below {folder}: {why}"
    assert not [line for line in rest if "consul" in line and "cannot" not in line]
