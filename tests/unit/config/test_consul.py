"""The address of Consul: the file first, then the variables of Consul's own command line."""

from pathlib import Path

import pytest

from supervisor.config import ConfigError, ConsulSettings
from supervisor.config.consul import from_environment
from supervisor.core.settings import Tls
from tests.support.configured import loaded


def from_file(tmp_path: Path, section: str, environ: dict[str, str]) -> ConsulSettings:
    return loaded(tmp_path, f"consul: {section}\nelections: {{app: {{}}}}\n", environ).consul


@pytest.mark.parametrize(
    ("address", "ssl", "expected"),
    [
        ("consul:8500", "", "http://consul:8500"),
        ("consul:8501", "true", "https://consul:8501"),
        ("http://consul:8501/", "1", "https://consul:8501"),
        ("http://consul:8500", "false", "http://consul:8500"),
        ("https://consul", "", "https://consul"),
        ("[::1]:8500", "", "http://[::1]:8500"),
        ("unix:///run/consul.sock", "", "unix:///run/consul.sock"),
        (":8500", "", "http://127.0.0.1:8500"),
        (":8501", "1", "https://127.0.0.1:8501"),
        ("", "true", "https://127.0.0.1:8500"),
        ("", "", "http://127.0.0.1:8500"),
    ],
)
def test_the_address_is_read_as_consuls_command_line_reads_it(address: str, ssl: str, expected: str) -> None:
    assert from_environment({"CONSUL_HTTP_ADDR": address, "CONSUL_HTTP_SSL": ssl}).address == expected


def test_every_variable_of_consuls_command_line_is_read() -> None:
    assert from_environment(
        {
            "CONSUL_HTTP_ADDR": "https://consul:8501",
            "CONSUL_HTTP_TOKEN": "hunter2",
            "CONSUL_NAMESPACE": "team",
            "CONSUL_PARTITION": "part",
            "CONSUL_CACERT": "/ca",
            "CONSUL_CLIENT_CERT": "/c",
            "CONSUL_CLIENT_KEY": "/k",
            "CONSUL_TLS_SERVER_NAME": "name",
            "CONSUL_HTTP_SSL_VERIFY": "false",
            "CONSUL_HTTP_AUTH": "user:pass:word",
            "CONSUL_CAPATH": "/not/beside/ca",
        }
    ) == ConsulSettings(
        address="https://consul:8501",
        token="hunter2",
        namespace="team",
        partition="part",
        tls=Tls("/ca", "/c", "/k", "name", False),
        http_auth="user:pass:word",
    )


def test_a_folder_of_authorities_is_used_when_no_file_is_named(tmp_path: Path) -> None:
    assert from_environment({"CONSUL_CAPATH": "/folder"}).tls == Tls(ca_path="/folder")
    assert loaded(
        tmp_path,
        "consul: {address: 'https://h:8501', tls: {ca_file: /mine}}\nelections: {a: {}}\n",
        {"CONSUL_CAPATH": "/folder"},
    ).consul.tls == Tls(ca_file="/mine")


def test_a_token_file_comes_before_a_token() -> None:
    settings = from_environment({"CONSUL_HTTP_TOKEN": "a", "CONSUL_HTTP_TOKEN_FILE": "/t"})
    assert (settings.token, settings.token_file) == (None, "/t")


def test_no_repr_shows_a_secret() -> None:
    secrets = {"CONSUL_HTTP_TOKEN": "hunter2", "CONSUL_HTTP_AUTH": "me:hunter2"}
    assert "hunter2" not in repr(from_environment(secrets))


def test_the_file_comes_before_the_environment(tmp_path: Path) -> None:
    environ = {
        "CONSUL_HTTP_ADDR": "nonsense://x y",
        "CONSUL_HTTP_TOKEN_FILE": "/other",
        "CONSUL_NAMESPACE": "other",
        "CONSUL_HTTP_SSL_VERIFY": "false",
        "CONSUL_CACERT": "/ca",
        "TOKEN": "hunter2",
    }
    section = (
        "{address: 'https://consul:8501/', token: '${TOKEN}', datacenter: dc1, namespace: n, partition: p,"
        " tls: {verify: true}}"
    )
    assert from_file(tmp_path, section, environ) == ConsulSettings(
        address="https://consul:8501",
        token="hunter2",
        datacenter="dc1",
        namespace="n",
        partition="p",
        tls=Tls(ca_file="/ca", verify=True),
    )


def test_tls_of_the_environment_does_not_forbid_plain_http() -> None:
    assert from_environment({"CONSUL_CACERT": "/ca"}).address == "http://127.0.0.1:8500"


@pytest.mark.parametrize(
    ("variable", "content", "problem"),
    [
        ("HTTP_ADDR", "ftp://hunter2", "cannot be requested: must begin with http:// or"),
        ("HTTP_ADDR", "hunter2:port", "cannot be requested: its host or port is invalid"),
        ("HTTP_ADDR", "http://h/v1?x", "cannot have a path"),
        ("HTTP_ADDR", "/run/consul.sock", "cannot be reached: put unix:// before a socket's path"),
        ("HTTP_ADDR", "unix://sock", "cannot be reached: a socket's path is absolute"),
        ("HTTP_ADDR", "unix:///" + "x" * 108, "cannot be reached: a socket's path has"),
        ("HTTP_SSL", "hunter2", "cannot be read: must be true or false"),
        ("HTTP_SSL_VERIFY", "no", "cannot be read: must be true or false"),
        ("HTTP_TOKEN", "hunter2\n", "cannot be sent: it has spaces or control"),
        ("CLIENT_CERT", "/c", "cannot be used without CONSUL_CLIENT_KEY: set both"),
        ("CLIENT_KEY", "/k", "cannot be used without CONSUL_CLIENT_CERT: set both"),
    ],
)
def test_a_variable_that_cannot_be_used_is_refused(variable: str, content: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_environment({f"CONSUL_{variable}": content})
    assert str(refused.value).startswith(f"environment: CONSUL_{variable}: {problem}")
    assert "hunter2" not in str(refused.value)
