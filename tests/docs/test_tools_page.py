"""docs/tools.md: the blocks for other tools do what the page says, on a real Consul."""

import base64
import json
import os
import re
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from tests.support.captured import captured
from tests.support.configured import loaded
from tests.support.consul import BINARY, Agent
from tests.support.guarded import EACH_WAY, MASTER, Guarded, guarded_agent
from tests.support.pages import TOOLS as PAGE
from tests.support.pages import Shown
from tests.support.supervisor import PATIENCE_S, Supervisor, until

SHOWN = Shown(PAGE)


def test_every_block_of_the_page_has_a_test() -> None:
    assert SHOWN.untested() == []


@SHOWN.by(PAGE, "A file that names the leader, and a proxy that follows", "yaml")
def test_the_file_names_the_leader_and_the_proxy_is_told(
    shown: str, shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    file, told = tmp_path / "db-leader", tmp_path / "told"
    text = shown.replace("/run/db-leader", str(file))
    text = text.replace("systemctl reload --no-block proxy", f"cat {file} >>{told}")
    (election,) = yaml.safe_load(text)["elections"].values()
    config = {"consul": {"address": shared_agent.url}, "elections": {"db": {**election, "key": unique}}}
    with closing(Supervisor(tmp_path / "one", config)) as one:
        one.start()
        until(lambda: told.exists() and told.read_text() == "\n", "nobody leads")
        session = shared_agent.session_create()
        shared_agent.acquire(unique, session, b"192.0.2.11")
        until(lambda: file.read_text() == "192.0.2.11\n", "the file names the leader")
        shared_agent.release(unique, session)
        until(lambda: told.read_text() == "\n192.0.2.11\n\n", "the proxy is told each change")
        shared_agent.session_destroy(session)
        assert one.stop() == 0


CONFIGURED = "Salt, Chef and Puppet: only on the leader"


@SHOWN.by(PAGE, CONFIGURED, "salt", "salt")
@SHOWN.by(PAGE, CONFIGURED, "ruby", "chef")
@SHOWN.by(PAGE, CONFIGURED, "puppet", "puppet")
def test_the_condition_is_a_command_that_is_true_on_the_leader_alone(
    salt: str, chef: str, puppet: str
) -> None:
    """tests/consul/test_exit_codes.py asks a daemon, where it holds and where it does not."""
    found = [re.findall(r"only_?if\W+(consul-supervisor[^'\n]*)", text) for text in (salt, chef, puppet)]
    assert found == [["consul-supervisor holds db"]] * 3


@SHOWN.by(PAGE, "One leader for two datacenters", "yaml")
def test_the_file_of_a_site_loads_without_a_warning(shown: str, tmp_path: Path) -> None:
    """An election by a client agent is tried by all tests with ``either_agent``."""
    assert loaded(tmp_path, shown).warnings == ()


def signed(folder: Path, claims: dict[str, object]) -> tuple[str, str]:
    """Return a public key, and a JWT of these claims that its private key has signed."""
    private = str(folder / "machine.key")
    openssl("genrsa", "-out", private, "2048")
    public = openssl("rsa", "-in", private, "-pubout").decode()
    parts = ({"alg": "RS256", "typ": "JWT"}, claims)
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    signature = openssl("dgst", "-sha256", "-sign", private, given=text)
    return public, (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def openssl(*arguments: str, given: bytes = b"") -> bytes:
    argv = ["openssl", *arguments]
    return subprocess.run(argv, input=given, capture_output=True, check=True, timeout=PATIENCE_S).stdout


def may_log_in(guarded: Guarded, folder: Path, rules: str) -> None:
    """Let who has a signed JWT of our issuer log in for a token with these rules."""
    now = int(time.time())
    public, jwt = signed(folder, {"iss": "us", "iat": now, "nbf": now - 60, "exp": now + 3600})
    (folder / "machine.jwt").write_text(jwt)
    (folder / "method.json").write_text(json.dumps({"JWTValidationPubKeys": [public], "BoundIssuer": "us"}))
    (folder / "rules.hcl").write_text(rules)
    for line in (
        f"policy create -name ours -rules @{folder}/rules.hcl",
        "role create -name ours -policy-name ours",
        f"auth-method create -name machines -type jwt -config @{folder}/method.json",
        "binding-rule create -method machines -bind-type role -bind-name ours",
    ):
        done = captured([str(BINARY), "acl", *line.split()], env=variables(guarded))
        assert done.returncode == 0, done.stderr


def variables(guarded: Guarded) -> dict[str, str]:
    return {**os.environ, "CONSUL_HTTP_ADDR": guarded.url, "CONSUL_HTTP_TOKEN": MASTER}


@pytest.mark.long
@SHOWN.by(PAGE, "Tokens that live for an hour", "sh")
def test_a_token_of_a_second_login_costs_no_tenure_though_the_first_ends(
    shown: str, tmp_path: Path, unique: str
) -> None:
    file = tmp_path / "run" / "consul-supervisor.token"
    file.parent.mkdir()
    script = shown.replace("consul login", f"{BINARY} login").replace(
        "/run/machine.jwt", f"{tmp_path}/machine.jwt"
    )
    script = script.replace("/run/consul-supervisor.token", str(file))
    with guarded_agent(tmp_path / "guarded", EACH_WAY[0]) as guarded:
        session = f'session "{guarded.node_name}" {{ policy = "write" }}\n'
        may_log_in(guarded, tmp_path, f'key "{unique}" {{ policy = "write" }}\n{session}')
        login = ["sh", "-euc", script]
        assert captured(login, env=variables(guarded)).returncode == 0
        first = file.read_text().strip()
        config = {
            "consul": {"address": guarded.url, "token_file": str(file)},
            "elections": {"db": {"key": unique}},
        }
        with closing(Supervisor(tmp_path / "one", config)) as one:
            one.start()
            one.wait_line("role", role="holding")
            assert captured(login, env=variables(guarded)).returncode == 0
            assert file.read_text().strip() != first
            one.wait_line("token-renewed")
            environ = {**variables(guarded), "CONSUL_HTTP_TOKEN": first}
            assert captured([str(BINARY), "logout"], env=environ).returncode == 0
            assert one.stop() == 0
            assert not one.lines("consul-denied")
            assert [line["reason"] for line in one.lines("role", role="losing")] == ["shutdown"]
