"""A file whose file system does not answer is read by children, of which few are left behind."""

import asyncio
from pathlib import Path

import psutil
import pytest

from supervisor.filesystem import reading
from supervisor.filesystem.children import HUNG_MAX, NoAnswer
from supervisor.filesystem.reading import await_answer, read, read_within
from tests.support.hung import needs_root, stuck
from tests.support.supervisor import name_of, until

pytestmark = needs_root


def children() -> int:
    """How many processes read for us."""
    return sum(name_of(child) == "head" for child in psutil.Process().children())


def is_read(path: Path) -> bool:
    """Whether a child could read it."""
    try:
        return read_within(str(path), 10) == b"abc"
    except NoAnswer:
        return False


def test_children_that_even_sigkill_does_not_end_stay_few(tmp_path: Path) -> None:
    """A secret is read for each attempt of a webhook, and a candidate_check is one every five seconds."""
    far = tmp_path / "far"
    far.mkdir()
    secret = far / "secret"
    secret.write_text("abc")
    with stuck(far):
        for _ in range(HUNG_MAX):
            with pytest.raises(NoAnswer):
                read_within(str(secret), 10, 0.01)
            with pytest.raises(NoAnswer):
                asyncio.run(read(str(secret), 10, 0.01))
        assert children() == HUNG_MAX
        with pytest.raises(NoAnswer):
            await_answer(str(secret), 0.01)
        with pytest.raises(NoAnswer):
            await_answer(str(far / "other"), 0.01)
        assert children() == HUNG_MAX + 1
    until(lambda: is_read(secret), "what hung has ended")
    until(lambda: is_read(secret) and not children(), "those that were killed are gone")


def test_an_error_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "is_local", lambda path: False)
    await_answer(str(tmp_path / "none"), 10.0)
