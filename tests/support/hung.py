"""A file system that does not answer: whoever asks it anything waits until it is gone.

FUSE without a server. It is put over a folder that was there before, so that what worked hangs from one
moment to the next, and is whole again at the end. Needs root.
"""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system; CI is root")


@contextmanager
def hung(folder: Path) -> Iterator[None]:
    """All of this folder hangs within the block."""
    fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    path = os.fsencode(folder)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if _libc.mount(b"hung", path, b"fuse", 0, options) != 0:
        error = ctypes.get_errno()
        os.close(fd)
        raise OSError(error, os.strerror(error), str(folder))
    try:
        yield
    finally:
        os.close(fd)  # whoever waits is told that there is no connection
        _libc.umount2(path, MNT_DETACH)
