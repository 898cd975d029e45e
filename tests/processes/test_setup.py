"""The set-up on a new machine: a missing part is reported in one sentence with what to install."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.consul import BINARY

ROOT = Path(__file__).resolve().parents[2]
SETUP = Path("tests", "setup")
TOOLS = ("sh", "dirname", "mkdir", "flock", "cksum", "cat")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return the files of a fresh clone that the set-up needs; an empty PATH folder ``bin`` is beside it."""
    folder = tmp_path / "clone"
    shutil.copytree(ROOT / SETUP, folder / SETUP)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (tmp_path / "bin").mkdir()
    return folder


def get_consul(clone: Path, *sources: tuple[str, str], path: str = "") -> subprocess.CompletedProcess[str]:
    """Run get_consul.py with these files as apt's folder and with this PATH."""
    apt = clone.parent / "apt"
    (apt / "sources.list.d").mkdir(parents=True)
    for name, text in sources:
        (apt / name).write_text(text)
    return run([sys.executable, str(clone / SETUP / "get_consul.py"), str(apt)], path)


def make_venv(clone: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run make_venv.sh with ``bin`` as PATH: the tools of every Debian, and the programs of the test."""
    folder = clone.parent / "bin"
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None, tool
        (folder / tool).symlink_to(found)
    return run(["sh", str(clone / SETUP / "make_venv.sh")], str(folder), **environment)


def run(argv: list[str], path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return captured(argv, env={"PATH": path, **environment}, timeout=120)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_consul_on_path_is_used_if_it_is_new_enough(clone: Path, tmp_path: Path) -> None:
    program(tmp_path / "old" / "consul", "echo Consul v1.7.14")
    program(tmp_path / "broken" / "consul", "exit 1")
    program(tmp_path / "new" / "consul", f'exec "{BINARY}" "$@"')
    got = get_consul(clone, path=os.pathsep.join(str(tmp_path / name) for name in ("old", "broken", "new")))
    link = clone / ".cache" / "consul" / "consul"
    assert (got.returncode, got.stdout.strip()) == (0, str(link)), got.stderr
    assert link.readlink() == tmp_path / "new" / "consul"


def test_without_consul_and_mirror_the_set_up_says_what_to_install(clone: Path) -> None:
    got = get_consul(clone)
    assert (got.returncode, got.stdout) == (1, "")
    assert got.stderr == (
        "cannot get Consul for the tests: none on PATH, and this machine's apt sources name no mirror to take"
        " it from; install Consul 1.8 or newer so that `consul` is on PATH\n"
    )


def test_a_package_with_another_checksum_than_debians_is_refused(clone: Path) -> None:
    """A mirror without the package must not hide a later one that has it."""
    with mirror(b"not the package") as port:
        sources = f"deb http://127.0.0.1:{port}/absent a main\ndeb http://127.0.0.1:{port}/debian a main\n"
        got = get_consul(clone, ("sources.list", sources))
    assert got.returncode == 1
    assert "/absent: HTTP Error 404" in got.stderr
    assert "/debian: the package's bytes have another sha256 than Debian's" in got.stderr
    assert not (clone / ".cache").exists()


@contextmanager
def mirror(package: bytes) -> Iterator[int]:
    """Serve these bytes for every path below /debian, and return the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.startswith("/debian/pool/main/c/consul/")
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(package)))
            self.end_headers()
            self.wfile.write(package)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def test_without_a_suitable_python_the_set_up_says_what_to_install(clone: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "python3", "exit 1")
    made = make_venv(clone)
    assert (made.returncode, made.stdout) == (1, "")
    assert made.stderr.startswith(
        "cannot set up the tests: no Python of at least 3.11 on PATH; `apt install python3"
    )
    assert made.stderr.count("\n") == 1


def test_for_a_python_without_ensurepip_the_set_up_names_debians_package(clone: Path, tmp_path: Path) -> None:
    """Debian's python3 has no module ensurepip without python3-venv."""
    (tmp_path / "ensurepip.py").write_text("raise ModuleNotFoundError('ensurepip')")
    made = make_venv(clone, PYTHON=sys.executable, PYTHONPATH=str(tmp_path))
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
    assert made.returncode == 1
    assert made.stderr == (
        f"cannot set up the tests: {sys.executable} cannot make a virtual environment;"
        f" `apt install {package}` adds what is missing.\n"
    )
    assert not (clone / ".venv").exists()


@pytest.mark.long
def test_without_a_package_index_the_set_up_says_so_and_tries_again_next_time(clone: Path) -> None:
    made = make_venv(clone, PYTHON=sys.executable, PIP_NO_INDEX="1", PIP_CONFIG_FILE=os.devnull)
    assert made.returncode == 1
    assert "it needs a package index: check the network" in made.stderr.splitlines()[-1]
    assert not (clone / ".venv" / "made-from").exists()
