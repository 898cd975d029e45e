"""examples/cron/only-here by itself: nothing of a job is left when ``only-here --end`` has ended with 0."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.programs import script
from tests.support.supervisor import processes_of, until
from tests.system.applications.stage import EXAMPLES, end_all

SCRIPT = EXAMPLES / "cron" / "only-here"
JOBS = {
    "heeds TERM": "exec sleep 600",
    "does not heed TERM": "trap '' TERM; while :; do sleep 0.2; done",
    "closes what it has inherited": (
        'exec python3 -c "import subprocess; '
        "subprocess.run(['sh', '-c', \\\"trap '' TERM; while :; do sleep 0.2; done\\\"])\""
    ),
    "is a daemon by now": "exec 9>&-; setsid sh -c \"trap '' TERM; while :; do sleep 0.2; done\" & sleep 0.2",
    "holds the lock without any mark": "exec env -i sleep 600",
}


class Job:
    """``only-here nightly`` with this command, on a node that holds."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        script(folder / "bin" / "consul-supervisor", "exit 0")
        script(folder / "bin" / "job", f"cd {folder}; : >{folder}/begun; {text}")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self._environ = {**os.environ, "PATH": path, "ONLY_HERE_RUNS": f"{folder}/runs"}
        self._environ["ONLY_HERE_GRACE_S"] = "1"

    def begin(self) -> "subprocess.Popen[bytes]":
        """Start the job as cron does; return when it has begun."""
        argv = [str(SCRIPT), "nightly", "job"]
        begun = subprocess.Popen(argv, env=self._environ, cwd=self.folder)
        until((self.folder / "begun").exists, "the job runs")
        return begun

    def end(self) -> int:
        """End the job as on_lose does; return the exit code."""
        return subprocess.run([str(SCRIPT), "--end", "nightly"], check=False, env=self._environ).returncode

    def run_again(self) -> int:
        """Start the job as cron's next tick does; return the exit code."""
        argv = [str(SCRIPT), "nightly", "true"]
        return subprocess.run(argv, check=False, env=self._environ, capture_output=True).returncode

    def processes(self) -> list[int]:
        """Return all processes that work in the job's folder."""
        here = str(self.folder)
        return [process.pid for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == here]


@pytest.fixture(params=JOBS)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path, JOBS[request.param])
    yield made
    for pid in made.processes():
        os.kill(pid, 9)
    end_all(tmp_path)


def test_no_process_of_the_job_is_left_and_none_is_started_beside_it(job: Job) -> None:
    begun = job.begin()
    until(lambda: job.processes(), "it is there")
    assert job.run_again() == 75
    assert job.end() == 0
    assert job.processes() == []
    begun.wait(10)
    assert job.run_again() == 0


def test_a_node_without_the_job_ends_nothing(tmp_path: Path) -> None:
    job = Job(tmp_path, "true")
    assert job.end() == 0
    job.begin().wait(10)
    assert job.end() == 0
    assert processes_of(str(tmp_path)) == []
