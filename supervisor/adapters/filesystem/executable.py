"""A look at whether the kernel would start a file, by the little that execve(2) reads. Nothing is executed.

A script names behind ``#!`` what runs it: blanks, tabs and NUL end that name, and a ``\\r`` belongs to it. A
program for this machine may name its loader. The kernel refuses every other file (ENOEXEC), and then a shell
and execvp(3) run it as a text for ``/bin/sh``.
"""

import os
import re
import shlex
import string
import struct
from contextlib import suppress
from glob import glob

HEAD_BYTES = 256  # BINPRM_BUF_SIZE: the kernel looks no further for the name behind #!
SCRIPTS_MAX = 5  # of which each runs the one before; the kernel follows no more
TABLE_BYTES_MAX, NAME_BYTES_MAX = 65_536, 4096  # the kernel's limits of what a program says of its loader
MACHINES = {"x86_64": (62, 3), "aarch64": (183, 40)}  # the programs that such a kernel starts: see elf(5)
HANDLERS = "/proc/sys/fs/binfmt_misc/*"  # register, status, and what else starts programs of other formats
_ELF, _ELF_PROGRAMS, _PT_INTERP = b"\x7fELF", (2, 3), 3
# For 32 and 64 bits: kind, machine, offset, entry size and number of a table; of an entry kind, offset, size.
_ELF_HEADERS = {
    b"\1": (struct.Struct("=16xHH8xI10xHH"), struct.Struct("=II8xI12x")),
    b"\2": (struct.Struct("=16xHH12xQ14xHH"), struct.Struct("=I4xQ16xQ16x")),
}
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_INTERPRETER = re.compile(rb"#![ \t]*([^ \t\0\n]*)[ \t]*([^\n]*)")
_PLAIN = frozenset(string.ascii_letters + string.digits + "_./+-")
_NO_CR = re.compile(r"(ba|da|k|z)?sh|python[\d.]*")  # programs that refuse a \r behind their options


class CannotExecute(Exception):
    """A file that would not start, or whose interpreter would refuse it. Its arguments: why, remedy."""


def head_of(file: str, size: int = HEAD_BYTES, at: int = 0, flags: int = 0) -> bytes | None:
    """Return what the kernel reads first. None: this user cannot read it. ``flags``: to open the file."""
    with suppress(OSError, OverflowError, ValueError):
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            return os.pread(fd, size, at)
        finally:
            os.close(fd)
    return None


def interpreter_of(head: bytes) -> tuple[str, str] | None:
    """Return the program that runs this script, and its one argument. None: it names none."""
    found = _INTERPRETER.match(head)
    if found is None or not found[1] or found.end(1) == HEAD_BYTES:
        return None
    return os.fsdecode(found[1]), os.fsdecode(found[2].rstrip(b" \t"))


def check_executable(file: str, path: str, cwd: str = "", *, by_shell: bool = False, depth: int = 0) -> None:
    """Raise CannotExecute if this file, which has the mode of a program, would not start.

    A file that this user cannot read is passed over, because the kernel can read it.

    path: the PATH in which ``env`` finds what runs a script.
    by_shell: whether a shell or execvp(3) starts the file.
    depth: how many scripts this file runs.
    """
    whole = os.path.join(cwd, file)
    head = head_of(whole)
    if head is None:
        return
    is_elf = head.startswith(_ELF)
    runner = _loader_of(whole, head) if is_elf else interpreter_of(head)
    if runner is None:
        is_text = bool(head) and b"\0" not in head.partition(b"\n")[0]
        has_handlers = len(glob(HANDLERS)) > len(("register", "status"))
        if not (by_shell and is_text) and not (has_handlers and b"\0" in head):
            raise CannotExecute(*_unknown_format(file, head))
    elif depth == SCRIPTS_MAX and not is_elf:
        raise CannotExecute(f"{file} is run by a script, and that by another", "name a program in the first")
    elif name := runner[0]:
        _found(file, name, [name], "cannot be executed here", cwd)
        check_executable(name, path, cwd, by_shell=by_shell, depth=depth + 1)
        _check_argument(file, *runner, path, cwd, depth)


def _check_argument(file: str, name: str, argument: str, path: str, cwd: str, depth: int) -> None:
    """Check the program that ``env`` is to run, and that no ``\\r`` stands behind options."""
    program = os.path.basename(name)
    if _NO_CR.fullmatch(program) and argument.endswith("\r"):
        raise _windows(file, f"{name} {argument}")
    named = next(iter(argument[2:].split()), "") if argument.startswith("-S") else argument
    expands = argument.startswith("-S") and not _PLAIN.issuperset(named)  # env reads quotes and variables
    if program == "env" and named and not named.startswith("-") and "=" not in named and not expands:
        candidates = [named] if "/" in named else [f"{folder}/{named}" for folder in path.split(":")]
        runner = _found(file, named, candidates, f"is in no folder of PATH, {path}", cwd)
        check_executable(runner, path, cwd, by_shell=True, depth=depth + 1)


def _found(file: str, name: str, candidates: list[str], why_not: str, cwd: str) -> str:
    """Return the first candidate that can be executed. Raises CannotExecute if there is none."""
    for candidate in candidates:
        whole = os.path.join(cwd, candidate)
        if os.path.isfile(whole) and os.access(whole, os.X_OK, effective_ids=True):
            return candidate
    if name.endswith("\r"):
        raise _windows(file, name)
    remedy = f"write env -S {ascii(name)[1:-1]}" if " " in name else f"install it, or let {file} name another"
    raise CannotExecute(f"{file} is run by {ascii(name)[1:-1]}, which {why_not}", remedy)


def _windows(file: str, name: str) -> CannotExecute:
    why = f"{file} has Windows line ends, so it is run by {ascii(name)[1:-1]}, which does not exist"
    return CannotExecute(why, rf"sed -i 's/\r$//' {shlex.quote(file)}")


def _unknown_format(file: str, head: bytes) -> tuple[str, str]:
    if not head:
        return f"{file} is empty", "install it again"
    if head.startswith(_ELF):
        why = f"{file} is damaged, or a program for another kind of machine"
        return why, f"install the one for {os.uname().machine}"
    if head.startswith(_BYTE_ORDER_MARKS):
        remedy = rf"save it as UTF-8 without one: sed -i '1s/^\xef\xbb\xbf//' {shlex.quote(file)}"
        return f"{file} begins with a byte order mark, so the kernel sees no #!", remedy
    remedy = "begin it with #!/bin/sh, or with another program that runs it"
    return f"{file} does not begin with #! and the program that runs it", remedy


def _loader_of(whole: str, head: bytes) -> tuple[str, str] | None:
    """Return the loader of a program, blank if it needs none. None: no program for this machine."""
    header, entry = _ELF_HEADERS.get(head[4:5], _ELF_HEADERS[b"\2"])
    kind, machine, at, size, count = header.unpack(head[: header.size].ljust(header.size, b"\0"))
    known = MACHINES.get(os.uname().machine, (machine,))
    table = head_of(whole, min(count * size, TABLE_BYTES_MAX), at) or b""
    if kind not in _ELF_PROGRAMS or machine not in known or not len(table) == count * entry.size > 0:
        return None
    for kind, offset, length in entry.iter_unpack(table):
        if kind == _PT_INTERP:
            name = head_of(whole, min(length, NAME_BYTES_MAX), offset) or b""
            return os.fsdecode(name.partition(b"\0")[0]), ""
    return "", ""
