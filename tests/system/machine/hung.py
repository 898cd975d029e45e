"""A file system in a booted machine that does not answer, put over one of its folders.

The device is opened here, because the machine may have none, and it is mounted in the machine.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.machine.machine import Machine

# Enters the machine's mounts with the device open, mounts it, and unmounts at the end of its input.
PROGRAM = """
import ctypes, os, sys
leader, path = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def did(result):
    assert result == 0, os.strerror(ctypes.get_errno())
fuse = os.open("/dev/fuse", os.O_RDWR)
did(libc.setns(os.open(f"/proc/{leader}/ns/mnt", os.O_RDONLY), 0x20000))
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
did(libc.mount(b"hung", path.encode(), b"fuse", 0, options))
print("hangs", flush=True)
sys.stdin.read()
os.close(fuse)
did(libc.umount2(path.encode(), 2))
"""


@contextmanager
def hung(machine: Machine, path: str) -> Iterator[None]:
    """Let everything in this folder of the machine hang within the block."""
    command = [sys.executable, "-c", PROGRAM, str(machine.leader), path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as mounted:
        assert mounted.stdin is not None and mounted.stdout is not None
        try:
            assert mounted.stdout.readline() == "hangs\n"
            yield
        finally:
            mounted.stdin.close()
            mounted.wait()
