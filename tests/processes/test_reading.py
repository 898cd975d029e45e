"""A file on a hung file system: children read it, and few of them are left behind."""

import asyncio
from pathlib import Path

import psutil
import pytest

from supervisor.adapters.filesystem import reading
from supervisor.adapters.filesystem.children import HUNG_MAX, NoAnswer
from supervisor.adapters.filesystem.reading import await_answer, read, read_within
from supervisor.commands.cli.exit_codes import NEGATIVE
from tests.support.hung import hung, needs_root, stuck
from tests.support.supervisor import command, name_of, until

pytestmark = needs_root


def children() -> int:
    """Return how many processes read for this one."""
    return sum(name_of(child) == "head" for child in psutil.Process().children())


def is_read(path: Path) -> bool:
    """Return whether a child could read the file."""
    try:
        return read_within(str(path), 10) == b"abc"
    except NoAnswer:
        return False


def hanging(path: Path) -> int:
    """Return how many children there are after two more reads of a file that does not answer.

    A child may be killed before its read hangs.
    """
    with pytest.raises(NoAnswer):
        read_within(str(path), 10, 0.01)
    with pytest.raises(NoAnswer):
        asyncio.run(read(str(path), 10, 0.01))
    return children()


def test_reading_children_that_outlive_sigkill_are_bounded(tmp_path: Path) -> None:
    """A webhook reads its secret for each attempt, and a candidate_check runs every five seconds."""
    far = tmp_path / "far"
    far.mkdir()
    secret, other = far / "secret", far / "other"
    secret.write_text("abc")
    with stuck(far):
        until(lambda: hanging(secret) == HUNG_MAX, "as many reads hang as may")
        for _ in range(HUNG_MAX):
            hanging(secret)
            with pytest.raises(NoAnswer):
                await_answer(str(secret), 0.01)
        assert children() == HUNG_MAX
        with pytest.raises(NoAnswer):
            await_answer(str(other), 0.01)
        until(lambda: hanging(other) == 2 * HUNG_MAX, "another path has children of its own")
    until(lambda: is_read(secret), "the hung reads have ended")
    until(lambda: is_read(secret) and not children(), "the killed children are gone")


def test_an_error_of_a_file_system_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "is_local", lambda path: False)
    await_answer(str(tmp_path / "none"), 10.0)


def test_a_start_ends_in_time_if_the_former_state_dir_does_not_answer(tmp_path: Path) -> None:
    """systemd starts the daemon again, and the file system may be back by then."""
    far, file = tmp_path / "far", tmp_path / "supervisor.yaml"
    far.mkdir()
    (tmp_path / "state_dir").write_text(str(far))
    file.write_text(f"state_dir: {tmp_path / 'state'}\nelections: {{app: {{}}}}\n")
    with hung(far):
        done = command("run", str(file), environ={"RUNTIME_DIRECTORY": str(tmp_path)})
    assert done.returncode == NEGATIVE, done.stderr
    assert f"cannot use state_dir {far}: its file system did not answer within 3 s" in done.stderr
