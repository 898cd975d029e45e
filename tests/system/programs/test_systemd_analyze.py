"""The unit's exposure by systemd's own scale: the sandbox stays as tight as hooks allow."""

import re
import shutil
from pathlib import Path

from tests.support.captured import captured

UNIT = Path(__file__).resolve().parents[3] / "systemd" / "consul-supervisor.service"
EXPOSURE_MAX = 5.0  # systemd's own scale: 10 is no sandbox, 5 and more is MEDIUM


def exposure(unit: str, folder: Path) -> float:
    """Return the exposure that `systemd-analyze security` computes."""
    file = folder / UNIT.name
    file.write_text(unit)
    analyze = shutil.which("systemd-analyze")
    assert analyze is not None, "cannot look at the unit: systemd-analyze is missing (package systemd)"
    ran = captured([analyze, "security", "--offline=true", "--no-pager", str(file)], timeout=60)
    found = re.search(r"Overall exposure level for .*: ([0-9.]+) ", ran.stdout)
    assert found is not None, ran.stdout + ran.stderr
    return float(found[1])


def test_the_unit_is_not_wide_open(tmp_path: Path) -> None:
    assert exposure(UNIT.read_text(), tmp_path) < EXPOSURE_MAX


def test_the_documentation_has_the_exposure_of_the_unit(tmp_path: Path) -> None:
    page = (UNIT.parents[1] / "docs" / "systemd.md").read_text()
    assert f"shows what is open: {exposure(UNIT.read_text(), tmp_path)}," in page
