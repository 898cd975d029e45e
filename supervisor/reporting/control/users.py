"""The names of users, for the log and for people.

Only the local file is read. The system's directory of users may be a server that does not answer, and the
loop must not wait for one.
"""

from pathlib import Path

USERS = Path("/etc/passwd")
FILE_BYTES_MAX = 1 << 20  # some ten thousand users; the rest of a longer file is not read


def user_name(uid: int, users: Path = USERS) -> str:
    """Return the name of the user with this id. Blank: the local file has no such user."""
    try:
        with users.open("rb") as file:
            lines = file.read(FILE_BYTES_MAX).splitlines()
    except OSError:
        return ""
    entries = (line.decode(errors="replace").split(":") for line in lines)
    return next((entry[0] for entry in entries if len(entry) > 2 and entry[2] == str(uid)), "")
