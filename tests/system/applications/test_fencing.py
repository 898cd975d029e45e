"""examples/fencing: three stores refuse what a former holder writes too late."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.background import Handler, Server
from tests.support.consul import HOST
from tests.system.applications.postgres_nodes import BIN, as_owner
from tests.system.applications.stage import EXAMPLES

EXAMPLE = EXAMPLES / "fencing"
FORMER, NEXT = 7, 12  # the fencing tokens of two holders


def written(tool: str, *arguments: str, token: int, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script of the example as a hook of the holder with this token."""
    environ = {**os.environ, "CONSUL_SUPERVISOR_FENCING_TOKEN": str(token)}
    argv = [str(EXAMPLE / tool), *arguments]
    return subprocess.run(
        argv, env=environ, input=text, capture_output=True, text=True, timeout=60, check=False
    )


def test_what_a_former_holder_writes_into_a_file_is_never_read(tmp_path: Path) -> None:
    file = str(tmp_path / "state")
    assert written("fenced-file", "claim", file, token=FORMER).returncode == 0
    assert written("fenced-file", "write", file, token=FORMER, text="former").returncode == 0
    assert written("fenced-file", "claim", file, token=NEXT).returncode == 0
    assert written("fenced-file", "read", file, token=0).stdout == "former"  # the claim continues it
    assert written("fenced-file", "write", file, token=FORMER, text="too late").returncode == 0
    assert written("fenced-file", "read", file, token=0).stdout == "former"
    assert written("fenced-file", "write", file, token=NEXT, text="next").returncode == 0
    assert written("fenced-file", "read", file, token=0).stdout == "next"


def test_a_file_is_not_written_without_a_token(tmp_path: Path) -> None:
    assert written("fenced-file", "write", str(tmp_path / "state"), token=0).returncode == 64
    assert list(tmp_path.iterdir()) == []


class Store(Server):
    """A store of one object, which compares ETags as S3 does."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.content, self.token, self.version = b"", "", 0
        self.meanwhile = [""]  # what another holder writes, with NEXT, before each next write. Blank: nothing

    @property
    def etag(self) -> str:
        return f'"v{self.version}"'

    def keep(self, content: bytes, token: str) -> None:
        self.content, self.token, self.version = content, token, self.version + 1


class _Handler(Handler):
    server: Store

    def do_HEAD(self) -> None:
        self.send_response(200 if self.server.version else 404)
        if self.server.version:
            self.send_header("ETag", self.server.etag)
            self.send_header("x-amz-meta-fencing-token", self.server.token)
        self.end_headers()

    def do_PUT(self) -> None:
        chunked = self.headers["Transfer-Encoding"] == "chunked"
        content = (
            b"".join(self._chunks()) if chunked else self.rfile.read(int(self.headers["Content-Length"]))
        )
        if other := self.server.meanwhile.pop() if self.server.meanwhile else "":
            self.server.keep(other.encode(), str(NEXT))
        wanted = self.headers["If-Match"]
        fits = wanted == self.server.etag if wanted else not self.server.version
        if fits:
            self.server.keep(content, self.headers["x-amz-meta-fencing-token"])
        self.answer(200 if fits else 412)

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as made:
        yield made


def put(store: Store, token: int, text: str) -> int:
    return written("fenced-put", f"{store.url}state", token=token, text=text).returncode


def test_an_object_store_refuses_a_former_holder(store: Store) -> None:
    assert put(store, FORMER, "former") == 0
    assert put(store, FORMER, "former again") == 0
    assert put(store, NEXT, "next") == 0
    assert put(store, FORMER, "too late") == 1
    assert (store.content, store.token) == (b"next", str(NEXT))


def test_an_object_store_refuses_a_holder_that_was_paused_before_its_write(
    store: Store,
) -> None:
    assert put(store, FORMER, "former") == 0
    store.meanwhile = ["next"]
    assert put(store, FORMER, "too late") == 1
    assert store.content == b"next"


def test_a_store_without_an_answer_is_69() -> None:
    assert written("fenced-put", f"http://{HOST}:1/state", token=NEXT, text="next").returncode == 69


@pytest.fixture
def database(folder: Path) -> Iterator[Path]:
    """Start a server, and yield the folder of its socket."""
    folder.chmod(0o777)  # for the owner of the database
    as_owner(BIN / "initdb", "-D", folder / "data", "--no-sync")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    control: list[str | Path] = [BIN / "pg_ctl", "-D", folder / "data", "-s", "-l", folder / "log"]
    as_owner(*control, "-o", options, "start")
    try:
        as_owner(*psql(folder), input=(EXAMPLE / "fence.sql").read_text())
        as_owner(*psql(folder), "-c", "CREATE TABLE numbers (number integer)")
        yield folder
    finally:
        as_owner(*control, "-m", "immediate", "stop")


def psql(folder: Path) -> list[str | Path]:
    return [BIN / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", folder, "postgres"]


def write(token: int, number: int) -> list[str]:
    """Return the options of psql for a transaction of the holder with this token."""
    return ["-1", "-c", f"SELECT fence('app', {token})", "-c", f"INSERT INTO numbers VALUES ({number})"]


def test_postgresql_refuses_the_transaction_of_a_former_holder(database: Path) -> None:
    for token, number in ((FORMER, 1), (FORMER, 2), (NEXT, 3)):
        as_owner(*psql(database), *write(token, number))
    with pytest.raises(AssertionError, match="older than that of the present holder"):
        as_owner(*psql(database), *write(FORMER, 4))
    assert as_owner(*psql(database), "-c", "SELECT number FROM numbers").split() == ["1", "2", "3"]
