"""Configurations from a text, as a file of a test's own holds it."""

from collections.abc import Mapping
from pathlib import Path

from supervisor.config import Config, load


def loaded(folder: Path, text: str, environ: Mapping[str, str] | None = None, node: str = "node1") -> Config:
    """Write the text to a file in this folder, and load it."""
    file = folder / "c.yaml"
    file.write_text(text)
    return load(file, environ or {}, node)
