"""A program that runs to its end, and the text that it wrote."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def captured(argv: Sequence[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run the program, and return its exit code and what it wrote. Options: those of ``subprocess.run``."""
    done: subprocess.CompletedProcess[str] = subprocess.run(
        argv, check=False, capture_output=True, text=True, **options
    )
    return done
