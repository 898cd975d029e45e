"""examples/container: the image is built without a registry, and its containers act beside `consul lock`.

buildah builds the image, on a Debian in place of the registry's Python. Each container is a process 1 in
namespaces of its own, on an overlay over the files of the image, with what image, Compose file and Nomad job
give it. So the tests need no runtime for containers, and all mounts end with process 1.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from supervisor.config.formats.durations import parse_duration
from supervisor.core.lease import lease_of
from tests.support.configured import loaded
from tests.support.consul import BINARY, Agent
from tests.support.hung import needs_root
from tests.support.programs import script
from tests.support.supervisor import PATIENCE_S, ROOT, until
from tests.system.packaging.builds import run
from tests.system.packaging.conftest import Built
from tests.system.packaging.test_single_file import make

pytestmark = needs_root
EXAMPLE = ROOT / "examples" / "container"
BASE = ROOT / ".cache" / "image-base" / "rootfs.tar"  # by tests/setup/get_image_base.sh
SERVICE = yaml.safe_load((EXAMPLE / "compose.yaml").read_text())["services"]["app"]
JOB = (EXAMPLE / "app.nomad.hcl").read_text()
APP = "/usr/local/bin/app"
# What a runtime for containers does: a layer to write to above the files of the image, mounts, and process 1.
ENTER = """
root=$1 lower=$2; shift 2
mount -t overlay -o lowerdir="$lower",upperdir="$root.upper",workdir="$root.work" none "$root"
mkdir -p "$root/proc" "$root/dev" "$root/sys"
mount -t proc none "$root/proc"; mount --rbind /dev "$root/dev"; mount --rbind -o ro /sys "$root/sys"
while [ "$1" != -- ]; do
    mkdir -p "$(dirname "$root$2")"
    if [ -f "$1" ]; then touch "$root$2"; else mkdir -p "$root$2"; fi
    if [ "$1" = tmpfs ]; then mount -t tmpfs none "$root$2"; else mount --bind "$1" "$root$2"; fi
    shift 2
done
shift; exec chroot "$root" "$@"
"""
APPLICATION = """\
trap 'echo stopping; exit 3' TERM
(setsid sleep 0.1 &)
echo begins; while :; do sleep 0.05; cat /proc/[0-9]*/stat | grep -c ') Z ' >/tmp/zombies; done
"""


class Image:
    """The built image: its files, and what a container of it runs."""

    def __init__(self, store: Path, context: Path) -> None:
        self._buildah = ["buildah", "--root", f"{store}/root", "--runroot", f"{store}/run"]
        self._buildah += ["--storage-driver", "vfs"]
        self._run("build", "-t", "base", "-f", "Base", cwd=context)
        self._run(
            "build", "--build-arg", "BASE=localhost/base", "-t", "ours", "--isolation", "chroot", cwd=context
        )
        shown = json.loads(self._run("inspect", "--type", "image", "ours", cwd=context))["OCIv1"]["config"]
        self.entry, self.command, self.env = shown["Entrypoint"], shown["Cmd"], shown.get("Env", [])
        self.files = self._run("mount", self._run("from", "ours", cwd=context).strip(), cwd=context).strip()

    def _run(self, *arguments: str, cwd: Path) -> str:
        return run(*self._buildah, *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def image(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    shutil.copytree(EXAMPLE, context)
    shutil.copy(make(built, folder), context)
    os.link(BASE, context / BASE.name)
    (context / "Base").write_text(f"FROM scratch\nADD {BASE.name} /\n")
    try:
        yield Image(folder / "store", context)
    finally:
        shutil.rmtree(folder)


class Container:
    """One container, which may start again on its own files."""

    def __init__(
        self, image: Image, folder: Path, mounts: Mapping[str, str], environ: Mapping[str, str]
    ) -> None:
        self._image, self.log = image, folder / "log"
        self._root = folder / "root"
        self._mounts = [word for target, source in mounts.items() for word in (source, target)]
        self._environ = {**dict(each.split("=", 1) for each in image.env), **environ}
        for name in ("root", "root.upper", "root.work"):
            (folder / name).mkdir(parents=True)

    @contextmanager
    def started(self, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
        argv = [*self._image.entry, *(arguments or self._image.command)]
        environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **self._environ}
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-euc", ENTER, "sh"]
        with self.log.open("ab") as log, subprocess.Popen(
            [*enter, str(self._root), self._image.files, *self._mounts, "--", *argv],
            stdout=log, stderr=log, env=environ,
        ) as process:  # fmt: skip
            try:
                yield process
            finally:
                process.kill()

    def signal(self, process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
        """Send a signal to process 1, as `docker stop` does with TERM."""
        (first,) = psutil.Process(process.pid).children()
        first.send_signal(number)

    def said(self) -> list[str]:
        """Return what hooks, `run` or the command of `lock` have written."""
        lines = self.log.read_text().splitlines()
        told = (json.loads(line) if line.startswith("{") else {"text": line} for line in lines)
        return [each["text"] for each in told if "text" in each]

    def zombies(self) -> str:
        path = self._root.with_name("root.upper") / "tmp" / "zombies"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return script(tmp_path / "app", APPLICATION)


@contextmanager
def consul_lock(agent: Agent, prefix: str, told: Path) -> Iterator["subprocess.Popen[bytes]"]:
    lock = [str(BINARY), "lock", f"-http-addr={agent.url}", prefix, f"touch {told}; exec sleep 600"]
    with subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *lock], stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_lock_is_process_1_of_the_nomad_job_and_excludes_consul_lock(
    image: Image, app: Path, agent: Agent, tmp_path: Path, unique: str
) -> None:
    found = re.search(r"args += (\[.*\])", JOB)
    assert found is not None
    arguments = [word.replace("service/app", unique) for word in json.loads(found[1])]
    where = {"CONSUL_HTTP_ADDR": agent.url}
    one, theirs = Container(image, tmp_path / "one", {APP: str(app)}, where), tmp_path / "theirs"
    with one.started(*arguments) as first:
        until(
            lambda: "begins" in one.said() and one.zombies() == "0\n",
            "the application runs, and orphans are reaped",
        )
        with consul_lock(agent, unique, theirs):
            other = Container(image, tmp_path / "other", {APP: str(app)}, where)
            with other.started("lock", "--wait", "1s", *arguments[1:]) as second:
                assert second.wait(PATIENCE_S) == 1 and not theirs.exists(), other.said()
            one.signal(first, signal.SIGTERM)
            assert first.wait(PATIENCE_S) == 3, one.said()
            until(theirs.exists, "consul lock takes over")
            assert one.said() == ["begins", "stopping"]


def settings(image: Image, app: Path, agent: Agent, folder: Path, unique: str) -> Container:
    """Return the container of the Compose file, with this application and Consul."""
    folder.mkdir()
    (folder / "app.yaml").write_text((EXAMPLE / "app.yaml").read_text().replace("service/app", unique))
    (folder / "app").symlink_to(app)
    made = Path(f"{image.files}/var/lib/consul-supervisor")
    shutil.copytree(made, folder / "records")  # as a new volume begins, with the mode of the image
    mounts = {target: "tmpfs" for target in SERVICE["tmpfs"]}
    for volume in SERVICE["volumes"]:
        source, target, *_ = volume.split(":")
        mounts[target] = str((folder / source).resolve())
    environ = {**SERVICE["environment"], "CONSUL_HTTP_ADDR": agent.url}
    return Container(image, folder / "container", mounts, environ)


def is_copied(records: Path) -> bool:
    return any(b'"step":"holding"' in path.read_bytes() for path in records.glob("*.journal"))


def test_the_daemon_of_the_compose_file_stops_in_order_and_on_lose_runs_after_a_kill(
    image: Image, app: Path, agent: Agent, tmp_path: Path, unique: str
) -> None:
    one, theirs = settings(image, app, agent, tmp_path / "one", unique), tmp_path / "theirs"
    with one.started() as first:
        until(lambda: "begins" in one.said(), "the application runs")
        with consul_lock(agent, unique, theirs):
            one.signal(first, signal.SIGTERM)
            assert first.wait(PATIENCE_S) == 0, one.said()
            until(theirs.exists, "consul lock takes over")
    with one.started() as second:
        until(lambda: is_copied(tmp_path / "one" / "records"), "the volume has the record")
        one.signal(second, signal.SIGKILL)
        second.wait(PATIENCE_S)
    with one.started():
        until(lambda: "app has ended (crashed)" in one.said(), "on_lose runs")
    ended = ["app has ended (shutdown)", "app has ended (crashed)"]
    told = [line for line in one.said() if line in ("begins", "stopping", *ended)]
    assert told == ["begins", "stopping", ended[0], "begins", ended[1]]
    assert "state_dir" not in one.log.read_text()  # there are no warnings of it


def test_the_files_leave_the_time_that_on_lose_needs(tmp_path: Path) -> None:
    (item,) = loaded(tmp_path, (EXAMPLE / "app.yaml").read_text()).items
    assert parse_duration(SERVICE["stop_grace_period"]) >= 1.5 * lease_of(item).lose_time_s
