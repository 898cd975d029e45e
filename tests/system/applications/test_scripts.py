"""Shellcheck reads the scripts of the examples and of the set-up, because users copy them."""

from pathlib import Path

import pytest

from tests.support.captured import captured
from tests.support.supervisor import ROOT

FIRST_LINES = ("#!/bin/sh", "#!/bin/bash", "#!/usr/bin/env bash")
SCRIPTS = [
    path
    for folder in ("examples", "tests", ".ci")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and path.suffix in ("", ".sh") and path.read_text().startswith(FIRST_LINES)
]


def test_the_scripts_of_the_examples_are_found() -> None:
    assert {"redis-failover", "only-here", "make_venv.sh", "run"} <= {path.name for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_shellcheck_accepts_the_scripts(script: Path) -> None:
    ran = captured(["shellcheck", str(script)])
    assert ran.returncode == 0, ran.stdout + ran.stderr
