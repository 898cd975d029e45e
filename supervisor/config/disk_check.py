"""The command of ``candidate_check: {disk: PATH}``: it writes a few bytes below the path, and syncs them.

It is a child like that of any check, so a disk that hangs lets nothing but this child wait. Its file has no
name, so nothing of it is left, however it ends. A file system without such files, as NFS, gets one with the
names of node and item, which is removed as soon as it is open.
"""

import sys

# 4096 bytes, because a file system may keep fewer beside the metadata, which a sync of a nameless file leaves
# alone. What it says first is the last line of a check that hangs. All is on standard error, because two
# streams have no order.
_PROGRAM = """
import errno, os, sys
folder, no_such_files = sys.argv[1], (errno.EOPNOTSUPP, errno.EISDIR)
sys.stderr.write(f"{folder} has not answered a write and a sync\\n")
try:
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
    except OSError as error:
        if error.errno not in no_such_files:
            raise
        names = os.environ["CONSUL_SUPERVISOR_NODE"], os.environ["CONSUL_SUPERVISOR_NAME"]
        path = os.path.join(folder, ".consul-supervisor-" + "-".join(names))
        if os.path.lexists(path):
            os.unlink(path)
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        os.unlink(path)
    os.write(file, bytes(4096))
    os.fsync(file)
except OSError as error:
    sys.exit(f"cannot write and sync below {folder}: {error.strerror}")
"""


def argv_of(folder: str) -> tuple[str, ...]:
    return sys.executable, "-I", "-S", "-c", _PROGRAM, folder
