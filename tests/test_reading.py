"""A file whose file system does not answer is read by children, of which few are left behind."""

import asyncio
from pathlib import Path

import psutil
import pytest

from supervisor.filesystem.reading import HUNG_MAX, NoAnswer, answers, read, read_within
from tests.support.hung import needs_root, stuck
from tests.support.supervisor import until

pytestmark = needs_root


def children() -> int:
    """How many processes read for us."""
    return sum(child.name() == "head" for child in psutil.Process().children())


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
        assert not answers(str(secret), 0.01)
        assert not answers(str(far / "other"), 0.01) and children() == HUNG_MAX + 1
    until(lambda: answers(str(secret)), "what hung has ended")
    assert read_within(str(secret), 10) == b"abc"
    until(lambda: answers(str(secret)) and not children(), "those that were killed are gone")
