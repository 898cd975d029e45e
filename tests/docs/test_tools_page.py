"""docs/tools.md: the blocks for other tools do what the page says, on a real Consul."""

import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import yaml

from tests.support.captured import captured
from tests.support.consul import BINARY, HOST, Agent, free_ports
from tests.support.guarded import EACH_WAY, MASTER, Guarded, guarded_agent
from tests.support.pages import TOOLS as PAGE
from tests.support.pages import Shown
from tests.support.programs import script
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


def with_wan(datacenter: str) -> dict[str, object]:
    """Return the settings of a server which those of other datacenters may join."""
    return {"datacenter": datacenter, "ports": {"serf_wan": free_ports(1)[0]}}


@pytest.fixture
def third(tmp_path: Path) -> Iterator[Agent]:
    """Return a server of the datacenter that decides."""
    with Agent(tmp_path / "third", config=with_wan("third")) as running:
        yield running


@pytest.fixture
def east(tmp_path: Path, third: Agent) -> Iterator[Agent]:
    """Return a server of a site, which the third datacenter knows over the WAN."""
    with Agent(tmp_path / "east", config=with_wan("east")) as running:
        (itself,) = running.call("GET", "/agent/members?wan=1").json()
        joined = third.call("PUT", f"/agent/join/{HOST}:{itself['Port']}?wan=1")
        assert joined.status == 200, joined.text
        yield running


@SHOWN.by(PAGE, "One leader for two datacenters", "yaml")
def test_a_third_datacenter_decides_between_two_sites_and_a_site_observes_it(
    shown: str, third: Agent, east: Agent, tmp_path: Path, unique: str
) -> None:
    told = tmp_path / "told"

    def site(name: str, **consul: str) -> Supervisor:
        program = script(tmp_path / f"site-{name}", f"echo {name} $1 >>{told}")
        config = yaml.safe_load(shown.replace("/usr/local/sbin/site", str(program)))
        config["elections"]["site"] |= {"key": unique, "value": name}
        return Supervisor(tmp_path / name, {**config, "consul": consul})

    with ExitStack() as ends:
        one, two = (
            ends.enter_context(
                Agent(tmp_path / f"client-{number}", servers=third, config={"datacenter": "third"})
            )
            for number in (1, 2)
        )
        first, second = site("first", address=one.url), site("second", address=two.url)
        for each in (first, second):
            ends.enter_context(closing(each))
        first.start()
        first.wait_line("role", role="holding")
        second.start()
        until(lambda: len(third.sessions()) == 2, "the second site waits")
        entry = third.kv_get(unique)
        assert entry is not None and entry["Session"] and east.kv_get(unique) is None
        far = {"consul": {"address": east.url, "datacenter": "third"}}
        watching = {"shell": f"echo $CONSUL_SUPERVISOR_LEADER >>{tmp_path}/seen"}
        item = {"key": unique, "contend": False, "on_change": [watching]}
        observer = ends.enter_context(
            closing(Supervisor(tmp_path / "observer", {**far, "elections": {"site": item}}))
        )
        observer.start()
        until(lambda: lines(tmp_path / "seen") == ["first"], "the observer sees who leads")
        assert first.stop() == 0
        until(lambda: lines(tmp_path / "seen")[-1] == "second", "the observer sees the hand-over")
        second.wait_line("role", role="holding")
        assert second.stop() == 0 and observer.stop() == 0
    assert lines(told) == [
        *("first activate", "first deactivate", "second activate", "second deactivate"),
    ]


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


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
