"""Which paths lie on disks of this machine: the kernel's table decides, without a use of any file system."""

import os
from pathlib import Path

import pytest

from supervisor.adapters.filesystem.mounts import Mounts, remote_points, which
from tests.support.hung import hung, needs_root

TABLE = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 27 0:40 / /srv/a\\040b rw,relatime shared:7 master:2 - nfs4 10.0.0.1:/ rw
32 27 0:41 / /home rw - autofs systemd-1 rw
33 27 0:42 / /mnt/x rw - fuse.sshfs host:/ rw
35 22 0:43 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw
34 33 254:1 / /mnt/x/disk rw - xfs /dev/vdb rw
"""


def test_a_mount_that_no_disk_serves_is_remote() -> None:
    assert list(remote_points(TABLE.splitlines())) == ["/srv/a b", "/home", "/mnt/x"]


@pytest.mark.parametrize(
    ("path", "local"),
    [
        ("/usr/bin/env", True),
        ("/srv/a b", False),
        ("/srv/a b/c", False),
        ("/srv/a bc", True),
        ("/srv/a b/../c", False),
        ("/mnt/x/disk/hook", False),  # its path leads through a remote mount
        ("//mnt//x/hook", False),
        ("/proc/../mnt/./x", False),
        ("/absent/hook", True),
    ],
)
def test_a_path_is_local_while_it_stays_on_local_disks(path: str, local: bool, tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    mounts = Mounts(str(table))
    assert mounts.is_local(path) is local
    os.close(mounts._fd)


def test_symlinks_are_followed_and_a_circle_of_symlinks_ends(tmp_path: Path) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    for name, target in {
        "far": "/home/x",
        "on": "far",
        "up": "../../../../../../home",
        "round": "round",
    }.items():
        (tmp_path / name).symlink_to(target)
    mounts = Mounts(str(table))
    found = {name: mounts.is_local(str(tmp_path / name)) for name in ("far", "on", "up", "round")}
    os.close(mounts._fd)
    assert found == {"far": False, "on": False, "up": False, "round": True}


@needs_root
def test_a_later_mount_counts_from_then_on(tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (tmp_path / "link").symlink_to(far / "hook")
    mounts = Mounts()
    assert mounts.is_local(str(far / "hook"))
    with hung(far):
        assert not mounts.is_local(str(far / "hook")) and not mounts.is_local(str(tmp_path / "link"))
        assert which("sh", f"{far}{os.pathsep}/bin") == "/bin/sh"
    assert mounts.is_local(str(far / "hook"))
    os.close(mounts._fd)
