"""Every file names the addresses of pyproject.toml, and a release names no placeholder."""

from pathlib import Path

import pytest

from release import ROOT, addresses

REAL = {"repository": "https://git.test/cs", "maintainer": "A team <team@git.test>"}


@pytest.mark.parametrize("file", addresses.PLACES)
def test_each_file_has_the_addresses_of_the_project(file: str) -> None:
    text, wanted = (ROOT / file).read_text(), addresses.addresses()
    assert addresses.with_addresses(file, text, wanted) == text
    written = addresses.with_addresses(file, text, REAL)
    assert not any(value in written for value in wanted.values()) and addresses.PLACEHOLDER not in written
    assert addresses.with_addresses(file, written, wanted) == text


def test_a_release_with_a_placeholder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (addresses.SETTINGS, *addresses.PLACES):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text((ROOT / file).read_text())
    monkeypatch.setattr(addresses, "ROOT", tmp_path)
    placeholders = addresses.addresses()
    assert addresses.main([]) == 1
    assert f"repository is still the placeholder {placeholders['repository']}" in capsys.readouterr().err
    settings = tmp_path / addresses.SETTINGS
    for name, value in REAL.items():
        settings.write_text(settings.read_text().replace(placeholders[name], value))
    assert addresses.main([]) == 1
    assert "debian/control: another address than in pyproject.toml" in capsys.readouterr().err
    assert addresses.main(["--write"]) == addresses.main([]) == 0
