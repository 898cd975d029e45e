"""Files that the kernel, a shell or execvp(3) cannot start: the verdict is what they really do."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from supervisor.adapters.filesystem.executable import CannotExecute, check_executable
from tests.support.patience import PATIENCE_S

PATH = os.environ["PATH"]
TRUE = Path(shutil.which("true") or "").read_bytes()
LOADER = TRUE[TRUE.index(b"/lib") :].partition(b"\0")[0]


def with_byte(at: int, value: int) -> bytes:
    return TRUE[:at] + bytes([value]) + TRUE[at + 1 :]


FILES = {
    "a script": b"#!/bin/sh\nexit 0\n",
    "blanks and tabs": b"#! \t /bin/sh \t -e \t\nexit 0\n",
    "Windows line ends": b"#!/bin/sh\r\nexit 0\n",
    "Windows line ends behind an option": b"#!/bin/sh -e\r\nexit 0\n",
    "Windows line ends that Perl ignores": b"#!/usr/bin/perl -w\r\nexit 0;\n",
    "env": b"#!/usr/bin/env sh\nexit 0\n",
    "env with Windows line ends": b"#!/usr/bin/env sh\r\nexit 0\n",
    "env without the program": b"#!/usr/bin/env nosuchpython\n",
    "env with two words": b"#!/usr/bin/env sh -e\nexit 0\n",
    "env -S": b"#!/usr/bin/env -S sh -e\r\nexit 0\n",
    "env -S with a variable": b"#!/usr/bin/env -S A=b sh\nexit 0\n",
    "env -S with quotes": b'#!/usr/bin/env -S "sh" -e\nexit 0\n',
    "a byte order mark": b"\xef\xbb\xbf#!/bin/sh\nexit 0\n",
    "UTF-16": "\ufeff#!/bin/sh\nexit 0\n".encode("utf-16-le"),
    "nothing": b"",
    "no #!": b"exit 0\n",
    "nothing behind #!": b"#! \t\nexit 0\n",
    "no such interpreter": b"#!/no/such/sh\nexit 0\n",
    "a blank in the path": b"#!/no such/sh\nexit 0\n",
    "a folder": b"#!/bin\nexit 0\n",
    "no program": b"#!/etc/passwd\nexit 0\n",
    "no line end": b"#!/bin/true",
    "a NUL behind the name": b"#!/bin/true\0x\n",
    "the longest name": b"#!" + b"/" * 245 + b"bin/true\n",
    "a name that is too long": b"#!" + b"/" * 246 + b"bin/true\n",
    "a long option": b"#!/bin/echo " + b"x" * 300 + b"\n",
    "a program": TRUE,
    "a program of another machine": with_byte(18, 8),
    "a part of a program": with_byte(16, 1),
    "the first bytes of a program": TRUE[:20],
    "a program without its loader": TRUE.replace(LOADER, LOADER[:-1] + b"X", 1),
    "a program whose table is out of reach": TRUE[:32] + struct.pack("=Q", 2**64 - 1) + TRUE[40:],
    "five scripts": b"5",
    "six scripts": b"6",
}
NOT_MEANT = ("nothing", "UTF-16")  # a shell takes these for a text, and does not do what they are to do
STARTERS = {
    "kernel": lambda file: [file],
    "shell": lambda file: ["/bin/sh", "-c", file],
    "execvp": lambda file: ["env", file],
}


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> str:
    made = tmp_path / "made"
    if content.isdigit():
        runner = "/bin/sh"
        for number in range(int(content)):
            made = tmp_path / f"script{number}"
            made.write_text(f"#!{runner}\nexit 0\n")
            made.chmod(0o755)
            runner = str(made)
        return runner
    made.write_bytes(content)
    made.chmod(0o755)
    return str(made)


def really_starts(starter: str, file: str) -> bool:
    try:
        done = subprocess.run(STARTERS[starter](file), capture_output=True, timeout=PATIENCE_S, check=False)
    except OSError:
        return False
    return done.returncode == 0


def verdict(starter: str, file: str) -> str:
    try:
        check_executable(file, PATH, by_shell=starter != "kernel")
    except CannotExecute as error:
        return ": ".join(error.args)
    return ""


@pytest.mark.parametrize("starter", STARTERS)
@pytest.mark.parametrize(("name", "content"), FILES.items(), ids=FILES)
def test_a_file_is_refused_if_it_does_not_really_start(
    starter: str, name: str, content: bytes, file: str
) -> None:
    starts = really_starts(starter, file) and name not in NOT_MEANT
    assert (verdict(starter, file) == "") is starts


@pytest.mark.parametrize(
    ("content", "why", "remedy"),
    [
        (b"#!/bin/bash\r\n", r"has Windows line ends, so it is run by /bin/bash\r,", r"sed -i 's/\r$//' "),
        (b"#!/usr/bin/env sh\r\n", r"has Windows line ends, so it is run by sh\r,", r"sed -i 's/\r$//' "),
        (b"\xef\xbb\xbf#!/bin/sh\n", "begins with a byte order mark", r"sed -i '1s/^\xef\xbb\xbf//' "),
        (b"#!/opt/py\x1b[1m x\n", r"is run by /opt/py\x1b[1m, which cannot be executed here", "install it"),
        (b"#!/usr/bin/env sh -e\n", "is run by sh -e, which is in no folder of PATH", "write env -S sh -e"),
        (b"exit 0\n", "does not begin with #! and the program that runs it", "begin it with #!/bin/sh"),
        (
            TRUE.replace(LOADER, b"/lib64/gone".ljust(len(LOADER), b"\0"), 1),
            "is run by /lib64/gone",
            "install it",
        ),
    ],
)
def test_a_refusal_names_the_interpreter_and_the_remedy(
    content: bytes, why: str, remedy: str, file: str
) -> None:
    with pytest.raises(CannotExecute) as refused:
        check_executable(file, PATH)
    assert f"{file} {why}" in refused.value.args[0] and remedy in refused.value.args[1]
    if remedy.startswith("sed"):
        subprocess.run(refused.value.args[1].rpartition(": ")[2], shell=True, check=True)
        check_executable(file, PATH)


def test_env_starts_a_text_as_a_shell_does(tmp_path: Path) -> None:
    text, script = tmp_path / "text", tmp_path / "script"
    text.write_text("exit 0\n")
    script.write_text(f"#!/usr/bin/env {text}\n")
    for file in (text, script):
        file.chmod(0o755)
    assert really_starts("kernel", str(script)) and verdict("kernel", str(script)) == ""
    assert not really_starts("kernel", str(text)) and verdict("kernel", str(text))
