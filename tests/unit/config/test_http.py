"""The address of the HTTP listener: a literal one."""

from pathlib import Path

import pytest

from supervisor.config import HttpSettings
from tests.support.configured import loaded


def read(listen: str, folder: Path) -> tuple[HttpSettings | None, tuple[str, ...]]:
    """Return the settings, and the warnings without their place."""
    config = loaded(folder, f'http: {{listen: "{listen}"}}\nelections: {{app: {{}}}}\n', node="vm")
    return config.http, tuple(str(each).removeprefix(f"{folder}/c.yaml") for each in config.warnings)


@pytest.mark.parametrize(
    ("listen", "host", "port"),
    [
        ("127.0.0.1:8555", "127.0.0.1", 8555),
        ("127.1.2.3:65535", "127.1.2.3", 65535),
        ("[::1]:8555", "::1", 8555),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("0.0.0.0:8555", "0.0.0.0", 8555),
        ("[::]:8555", "::", 8555),
        ("10.0.0.9:8555", "10.0.0.9", 8555),
        ("[fe80::1%eth0]:8555", "fe80::1%eth0", 8555),
    ],
)
def test_a_literal_address_is_taken_without_a_warning(
    listen: str, host: str, port: int, tmp_path: Path
) -> None:
    settings, warnings = read(listen, tmp_path)
    assert settings == HttpSettings(host, port) and warnings == ()
    assert str(settings) == listen


def test_without_the_section_there_is_no_listener(tmp_path: Path) -> None:
    assert loaded(tmp_path, "elections: {app: {}}\n", {}, "vm").http is None


def values(folder: Path, http: str, item: str = "{}") -> list[bytes]:
    config = loaded(
        folder,
        f"http: {http}\nelections: {{app: {item}}}\nsemaphores: {{slots: {{limit: 2}}}}\n",
        {"DOMAIN": "example.net"},
        "vm",
    )
    return [settings.value for settings in config.items]


def test_the_default_value_has_the_url_of_the_page(tmp_path: Path) -> None:
    with_url = '{listen: "127.0.0.1:8555", public_url: "https://${HOSTNAME}.${DOMAIN}/page/"}'
    app, slots = values(tmp_path, with_url)
    assert app == b'{"Node":"vm","Url":"https://vm.example.net/page/"}'
    assert b'"Url":"https://vm.example.net/page/"' in slots
    assert values(tmp_path, with_url, "{value: {Node: a}}")[0] == b'{"Node":"a"}'
    assert values(tmp_path, '{listen: "127.0.0.1:8555"}')[0] == b'{"Node":"vm"}'
