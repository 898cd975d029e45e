"""File systems that do not answer: every process that uses one waits until it is gone.

FUSE without a server. It covers a folder that was there before, so that a working path hangs from one moment
to the next, and works again at the end. Needs root.
"""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system; CI is root")


@contextmanager
def hung(folder: Path) -> Iterator[None]:
    """Let every access to this folder hang within the block."""
    fd = _mounted(folder)
    try:
        yield
    finally:
        os.close(fd)  # every waiting process gets ENOTCONN
        _libc.umount2(os.fsencode(folder), MNT_DETACH)


@contextmanager
def stuck(folder: Path) -> Iterator[None]:
    """Let every access to this folder hang within the block, even against SIGKILL.

    A server reads each request and answers none, and the kernel ends no waiting process before the server.
    """
    fd = _mounted(folder)
    server = subprocess.Popen([sys.executable, "-I", "-S", "-c", _SERVER, str(fd)], pass_fds=[fd])
    os.close(fd)
    try:
        yield
    finally:
        server.kill()
        server.wait()
        _libc.umount2(os.fsencode(folder), MNT_DETACH)


@contextmanager
def local_disk(folder: Path) -> Iterator[None]:
    """Mount a local disk of its own (ext4 on a loop device) at this folder within the block."""
    image = folder.with_suffix(".image")
    with image.open("wb") as file:
        file.truncate(16 * 1024 * 1024)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def frozen(folder: Path) -> Iterator[None]:
    """Freeze this local disk within the block: whoever writes hangs in state D, even against SIGKILL."""
    subprocess.run(["fsfreeze", "--freeze", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", folder], check=True)


def _mounted(folder: Path) -> int:
    """Mount the file system, and return the descriptor by which a server would answer."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    path = os.fsencode(folder)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if _libc.mount(b"hung", path, b"fuse", 0, options) != 0:
        error = ctypes.get_errno()
        os.close(fd)
        raise OSError(error, os.strerror(error), str(folder))
    return fd


# The server answers only FUSE_INIT, the first request, with the version of the protocol.
_SERVER = """
import os, struct, sys
fd = int(sys.argv[1])
while True:
    _, operation, unique = struct.unpack("<IIQ", os.read(fd, 1 << 20)[:16])
    if operation == 26:
        answer = struct.pack("<IIIIHHIIHH8I", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, *[0] * 8)
        os.write(fd, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
"""
