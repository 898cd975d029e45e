"""``check --connect``: the reports of a real Consul about itself and a token, read without any effect."""

import json
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from supervisor.adapters.consul.client import CONCURRENT_MAX, HOLDING_CONCURRENT_MAX
from supervisor.adapters.consul.shared.grouping import WATCHES_MAX
from supervisor.adapters.transport.pool import IDLE_MAX
from supervisor.commands.check.agent import (
    OTHERS_MAX,
    AgentFacts,
    facts_of,
    of_agent,
    of_datacenter,
    of_fence,
    of_servers,
    of_voters,
)
from supervisor.commands.check.findings import Level
from supervisor.commands.check.rights import of_sessions
from supervisor.config.formats.tenure_record import encoded
from supervisor.core.claim.record import TenureRecord
from supervisor.core.outcomes import Denied, Failed, ListedSession, Outcome, SessionsView
from supervisor.core.settings import ElectionSettings, SessionSettings
from tests.consul.test_verify import Leaderless
from tests.support.consul import Agent, free_ports
from tests.support.guarded import EACH_WAY, Guarded, guarded_agent
from tests.support.proxy import Proxy
from tests.support.supervisor import COMMAND, ENVIRON, ROOT, command, until

SOME = ListedSession("s", "n", "node", "10s", 30.0, 7)
OK, UNREACHABLE, CONFIGURATION = 0, 69, 78
FILE = """
elections:
  app: {}
  watched: {contend: false}
semaphores:
  rebuild: {limit: 2}
"""
NEEDED = """
key "service/app/leader" { policy = "write" }
session "NODE" { policy = "write" }
key "service/watched/leader" { policy = "read" }
key_prefix "service/rebuild/" { policy = "write" }
agent "NODE" { policy = "read" }
"""


ANONYMOUS = "00000000-0000-0000-0000-000000000002"


class Check:
    """``check --connect --json`` of one file, and its findings."""

    def __init__(self, tmp_path: Path, consul: str, text: str = FILE) -> None:
        file = tmp_path / "c.yaml"
        file.write_text(f"consul: {{{consul}}}\n{text}")
        self.done = command("check", str(file), "--connect", "--json")
        assert "Traceback" not in self.done.stderr, self.done.stderr
        self.code = self.done.returncode
        document = json.loads(self.done.stdout)
        self.found: list[dict[str, str]] = document["connect"]
        self.warnings: list[dict[str, str]] = document["warnings"]

    def levels(self) -> set[tuple[str, str, str]]:
        return {(one["what"], one["item"], one["level"]) for one in self.found}

    def of(self, what: str, item: str = "", level: str = "") -> dict[str, str]:
        (one,) = (
            one
            for one in self.found
            if (one["what"], one["item"]) == (what, item) and level in ("", one["level"])
        )
        return one

    def errors(self) -> list[str]:
        return [
            f"{one['item']}: {one['text']}: {one['remedy']}" for one in self.found if one["level"] == "error"
        ]


@pytest.mark.parametrize("key", ["namespace", "partition"])
def test_a_namespace_or_partition_that_consul_does_not_have_is_a_fault(
    key: str, shared_agent: Agent, tmp_path: Path
) -> None:
    check = Check(tmp_path, f"address: '{shared_agent.url}', {key}: p")
    remedy = f"remove consul.{key} (or CONSUL_{key.upper()}): this Consul has none"
    assert check.code == CONFIGURATION and all(each.endswith(f": {remedy}") for each in check.errors())
    assert {"app", "rebuild"} <= {each.partition(":")[0] for each in check.errors()}
    assert not any(one["level"] == "cannot tell" for one in check.found if one["what"] == "rights")


# --- rights --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=EACH_WAY)
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Return an agent that denies by default: a server, and in a second run a client agent of one."""
    with guarded_agent(tmp_path_factory.mktemp("guarded"), request.param) as agent:
        yield agent


def token(agent: Guarded, rules: str) -> str:
    return agent.token_of(rules.replace("NODE", agent.node_name)).secret


def test_a_token_with_the_needed_rights_has_no_finding(guarded: Guarded, tmp_path: Path) -> None:
    secret = token(guarded, NEEDED)
    check = Check(tmp_path, f"address: '{guarded.url}', token: {secret}")
    assert check.code == OK, check.found
    assert check.levels() == {
        *((what, "", "ok") for what in ("reachable", "leader", "version", "machine", "leave", "connections")),
        *(("rights", item, "ok") for item in ("app", "watched", "rebuild")),
        ("sessions", "", "cannot tell"),
        *([("raft", "", "ok")] if guarded.call("GET", "/agent/self").json()["Config"]["Server"] else []),
    }
    assert 'session_prefix "" { policy = "read" }' in check.of("sessions")["remedy"]
    assert secret not in check.done.stdout + check.done.stderr


@pytest.mark.long
def test_a_key_with_another_program_s_data_is_named(guarded: Guarded, tmp_path: Path) -> None:
    secret = token(guarded, NEEDED)
    key = "/kv/service/app/leader"
    assert guarded.call("PUT", key, b"precious", {"flags": 42}).status == 200
    check = Check(tmp_path, f"address: '{guarded.url}', token: {secret}")
    assert guarded.call("DELETE", key).status == 200
    (error,) = check.errors()
    assert error.startswith(
        "app: service/app/leader belongs to another program: its flags are 42, not a lock's"
    )


def test_a_value_in_a_key_that_was_never_locked_is_a_warning(guarded: Guarded, tmp_path: Path) -> None:
    secret = token(guarded, NEEDED)
    assert guarded.call("PUT", "/kv/service/app/leader", b"max=500").status == 200
    check = Check(tmp_path, f"address: '{guarded.url}', token: {secret}")
    assert guarded.call("DELETE", "/kv/service/app/leader").status == 200
    text = check.of("rights", "app", "warning")["text"]
    assert check.code == OK and "a value of 7 bytes, and was never locked" in text


@pytest.mark.long
@pytest.mark.parametrize(
    ("missing", "errors"),
    [
        ("session", ["app: may not make its session", "rebuild: may not make its session"]),
        (
            'key "service/app/leader"',
            ["app: may not read service/app/leader", "app: may not write service/app/leader"],
        ),
        ('key "service/watched/leader"', ["watched: may not read service/watched/leader"]),
        (
            "key_prefix",
            [
                "rebuild: may not read service/rebuild/.lock",
                "rebuild: may not write service/rebuild/.lock",
                "rebuild: may not read service/rebuild/SESSION",
                "rebuild: may not write service/rebuild/SESSION",
            ],
        ),
    ],
)
def test_each_missing_right_is_named_with_the_rule_that_gives_it(
    guarded: Guarded, tmp_path: Path, missing: str, errors: list[str]
) -> None:
    rule = next(line for line in NEEDED.splitlines() if line.startswith(missing))
    secret = token(guarded, NEEDED.replace(f"{rule}\n", ""))
    check = Check(tmp_path, f"address: '{guarded.url}', token: {secret}")
    assert check.code == CONFIGURATION
    assert [error.partition(": Consul")[0] for error in check.errors()] == errors
    node = guarded.call("GET", "/agent/self").json()["Config"]["NodeName"]
    assert all(error.endswith(f"give the token: {rule.replace('NODE', node)}") for error in check.errors())


@pytest.mark.long
def test_a_token_that_sees_no_maintenance_mode_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    file = FILE.replace("app: {}", "app: {candidate_check: {maintenance: true}}")
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, NEEDED)}", file)
    (error,) = check.errors()
    assert check.code == CONFIGURATION and error.startswith("app: may not see the maintenance mode")
    rule = f'node "{guarded.node_name}" {{ policy = "read" }}'
    assert error.endswith(f"give the token: {rule}")
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, NEEDED + rule)}", file)
    assert check.code == OK and not check.errors()
    no_facts = NEEDED.replace('agent "NODE" { policy = "read" }\n', "") + rule
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, no_facts)}", file)
    untold = check.of("rights", "app", "cannot tell")
    assert untold["text"].startswith("whether it may see the maintenance mode: the agent does not report")
    assert untold["remedy"] == 'to find out, give the token: agent_prefix "" { policy = "read" }'


def test_a_fence_that_may_switch_off_a_server_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    file = FILE.replace("app: {}", "app: {fence: {exec: ['true']}}")
    rules = NEEDED + 'key "service/app/leader/.tenure" { policy = "write" }\n'
    assert guarded.call("PUT", "/kv/service/app/leader/.tenure", b"{}").status == 200
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, rules)}", file)
    assert check.code == OK and check.of("fence")["level"] == "cannot tell"
    assert check.of("rights", "app")["text"].count("service/app/leader/.tenure") == 2
    rules += check.of("fence")["remedy"].partition("the token: ")[2].replace("} ", "}\n")
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, rules)}", file)
    assert guarded.call("DELETE", "/kv/service/app/leader/.tenure").status == 200
    is_server = guarded.call("GET", "/agent/self").json()["Config"]["Server"]
    assert check.of("fence")["level"] == ("warning" if is_server else "ok")
    assert not is_server or f"server of Consul: {guarded.node_name} run" in check.of("fence")["text"]


def test_the_target_of_this_node_in_the_record_of_another_is_reported(
    guarded: Guarded, tmp_path: Path
) -> None:
    record = TenureRecord("old", lock_delay_s=30.0, target="bmc", node="db1")
    assert guarded.call("PUT", "/kv/service/app/leader/.tenure", encoded(record)).status == 200
    rules = NEEDED + 'key "service/app/leader/.tenure" { policy = "write" }\n'
    for target, level in (("bmc", "warning"), ("bmc-2", "")):
        file = FILE.replace("app: {}", f"app: {{fence: {{exec: ['true'], target: {target}}}}}")
        check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, rules)}", file)
        assert (("fence", "app", level) in check.levels()) == bool(level)
    assert guarded.call("DELETE", "/kv/service/app/leader/.tenure").status == 200


def test_the_nodes_of_a_fence_are_those_of_its_sessions() -> None:
    app = ElectionSettings("app", "k", b"", SessionSettings("app"))
    others = (replace(SOME, name="app", node="b"), replace(SOME, name="other", node="c"))
    found = of_fence([app], {"a", "b", "c"}, SessionsView(others), None)
    assert found.level is Level.WARNING and ": b run one" in found.text


@pytest.mark.long
def test_a_token_that_may_not_register_the_service_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    file = FILE.replace("app: {}", "app: {service: {name: app-leader}}")
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, NEEDED)}", file)
    (error,) = check.errors()
    rule = 'service "app-leader" { policy = "write" }'
    assert error.startswith("app: may not write the service app-leader") and error.endswith(rule)
    may_write = f"address: '{guarded.url}', token: {token(guarded, NEEDED + rule)}"

    def found(level: str) -> list[dict[str, str]]:
        check = Check(tmp_path, may_write, file)
        assert check.code == OK and not check.errors()
        return [
            one for one in check.found if (one["what"], one["item"], one["level"]) == ("rights", "app", level)
        ]

    (warned,) = until(lambda: found("warning"), "the agent knows its own node")
    assert warned["text"] == "DNS may not name app-leader"
    assert guarded.call("GET", "/agent/services").json() == {}
    rules = warned["remedy"].partition("anonymous one: ")[2]
    policy = guarded.token_of(rules.replace("} ", "}\n")).policy
    anonymous = {"Policies": [{"ID": policy}]}
    assert guarded.call("PUT", f"/acl/token/{ANONYMOUS}", anonymous).status == 200
    # An agent may believe what it has heard of the anonymous token for half a minute (acl.token_ttl).
    until(lambda: "DNS may name app-leader" in found("ok")[0]["text"], "it knows the new rights", 45.0)


def test_a_token_that_consul_does_not_know_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    check = Check(tmp_path, f"address: '{guarded.url}', token: 11111111-2222-3333-4444-555555555555")
    assert check.code == CONFIGURATION
    assert "ACL not found" in check.of("token")["text"] and "token_file" in check.of("token")["remedy"]
    assert not [one for one in check.found if one["what"] == "rights"]


def test_a_missing_token_file_is_reported(guarded: Guarded, tmp_path: Path) -> None:
    check = Check(tmp_path, f"address: '{guarded.url}', token_file: {tmp_path}/none")
    assert check.code == CONFIGURATION and f"{tmp_path}/none" in check.of("token")["text"]


@pytest.mark.long
def test_whether_a_command_sees_all_sessions_is_told_where_consul_shows_it(
    shared_agent: Agent, guarded: Guarded, tmp_path: Path
) -> None:
    """Without access control all; and a holder that the list does not have is hidden."""
    check = Check(tmp_path, f"address: '{shared_agent.url}'")
    assert check.of("sessions")["level"] == "ok"
    holder = guarded.session_create(TTL="600s", LockDelay="0s")
    assert guarded.acquire("service/app/leader", holder)
    only_keys = "".join(line for line in NEEDED.splitlines(keepends=True) if not line.startswith("session"))
    check = Check(tmp_path, f"address: '{guarded.url}', token: {token(guarded, only_keys)}")
    guarded.session_destroy(holder)
    assert "do not see all nodes" in check.of("sessions")["text"]


@pytest.mark.parametrize(
    ("outcome", "version", "level"),
    [
        (SessionsView((SOME,)), "1.11.0", Level.OK),
        (SessionsView((SOME,), filtered=True), "1.11.0", Level.UNTOLD),
        (SessionsView(()), "1.22.0", Level.UNTOLD),
        (SessionsView((SOME,)), "1.8.7", Level.UNTOLD),
        (Denied("403 Permission denied"), "1.8.7", Level.UNTOLD),
        (Failed("500 No cluster leader"), "1.8.7", Level.UNTOLD),
    ],
)
def test_a_list_of_sessions_shows_whether_the_token_sees_all(
    outcome: Outcome, version: str, level: Level
) -> None:
    facts = facts_of({"Config": {"Version": version}})
    assert of_sessions(outcome, (), facts).level is level
    assert of_sessions(outcome, (), None).level is Level.UNTOLD


# --- another datacenter ------------------------------------------------------------------------------

OBSERVED = "elections: {watched: {contend: false}}"


@pytest.mark.parametrize("text", [FILE, OBSERVED], ids=["contends", "observes"])
def test_an_unknown_datacenter_is_not_reported_as_a_missing_leader(
    shared_agent: Agent, tmp_path: Path, text: str
) -> None:
    check = Check(tmp_path, f"address: '{shared_agent.url}', datacenter: elsewhere", text)
    assert check.code == CONFIGURATION
    assert check.levels() == {("reachable", "", "ok"), ("datacenter", "", "error")}
    assert "No path to datacenter" in check.of("datacenter")["text"]
    assert "correct consul.datacenter, the agent is in dc1" in check.of("datacenter")["remedy"]


def test_a_contender_in_another_datacenter_is_refused_and_an_observer_is_not() -> None:
    """The agent reaches that datacenter, and yet Consul makes no session of the agent's node there."""
    observer = ElectionSettings("seen", "k", b"", SessionSettings("s"), contend=False)
    (found,) = of_datacenter("dc2", "dc1", [observer, replace(observer, name="held", contend=True)])
    assert found.level is Level.ERROR and "held" in found.text and "consul.datacenter" in found.remedy
    (found,) = of_datacenter("dc2", "dc1", [observer])
    assert found.level is Level.OK and not found.remedy
    assert not of_datacenter("dc1", "dc1", [observer]) and not of_datacenter(None, "dc1", [observer])
    assert not of_datacenter("dc2", "", [observer]), "an agent that does not say its own"


# --- versions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "level", "said"),
    [
        ("1.8.7", Level.OK, ""),
        ("1.8.19+ent", Level.OK, ""),
        ("v1.15.2", Level.WARNING, "with its own token alone"),
        ("1.21.0", Level.WARNING, "not tried with this program"),
        ("1.10.12", Level.OK, ""),
        ("1.12.2", Level.OK, ""),
        ("1.7.9", Level.ERROR, "older than 1.8"),
        ("0.9.1", Level.ERROR, "older than 1.8"),
        ("1.12.0", Level.OK, ""),
        ("1.11.9", Level.WARNING, "i/o deadline reached"),
        ("1.12.1+ent", Level.WARNING, "i/o deadline reached"),
        ("1.21.5", Level.WARNING, "refuses every key"),
        ("1.22.0", Level.WARNING, "not tried with this program"),
        ("1.22.4", Level.WARNING, "closes each request after 30 s"),
        ("2.0.4", Level.WARNING, "rpc error making call: EOF"),
        ("2.0.4", Level.WARNING, "65 to 74 s"),
        ("2.0.3", Level.WARNING, "Consul 2.0.3: not tried with this program"),
        ("", Level.UNTOLD, ""),
        ("main", Level.UNTOLD, ""),
        ("1", Level.UNTOLD, ""),
        ("9" * 50 + ".1", Level.UNTOLD, ""),
    ],
)
def test_an_untested_or_broken_version_is_a_warning(version: str, level: Level, said: str) -> None:
    facts = facts_of({"Config": {"Version": version, "NodeName": "n"}})
    found = [one for one in of_agent(facts, "n", is_local=True, items=[]) if one.what == "version"]
    assert [one.level for one in found] == [level] and said in found[0].text
    assert bool(found[0].remedy) == (level in (Level.WARNING, Level.ERROR))


# --- what a quick file relies on -------------------------------------------------------------------

SERF = "elections: {app: {session: {node_checks: [serfHealth]}}}"


def debug(server: bool = True, **changed: object) -> AgentFacts:
    """Return the facts of an agent with Consul's default settings, some of them changed."""
    usual = {"ConsulRaftHeartbeatTimeout": "5s", "GossipLANProbeInterval": "1s", "GossipLANSuspicionMult": 4}
    return facts_of({"DebugConfig": {"ServerMode": server, **usual, **changed}})


def of_settings(
    facts: AgentFacts, leader_change_s: float, checks: tuple[str, ...] = ()
) -> list[tuple[str, str]]:
    app = ElectionSettings("app", "k", b"", SessionSettings("s", node_checks=checks))
    return [(one.what, one.level.value) for one in of_servers(facts, leader_change_s, [app])]


@pytest.mark.parametrize(
    ("facts", "leader_change_s", "found"),
    [
        (debug(), 14.0, [("raft", "ok")]),
        (debug(), 3.0, [("raft", "warning")]),
        (debug(ConsulRaftHeartbeatTimeout="1s"), 3.0, [("raft", "ok")]),
        (debug(ConsulRaftHeartbeatTimeout="10s"), 14.0, [("raft", "warning")]),
        (debug(ConsulRaftHeartbeatTimeout=5), 14.0, [("raft", "cannot tell")]),
        (debug(server=False), 14.0, []),
        (debug(server=False, ConsulRaftHeartbeatTimeout="1s"), 3.0, [("raft", "cannot tell")]),
    ],
)
def test_a_file_that_counts_on_a_quicker_change_of_leader_than_its_server_is_a_warning(
    facts: AgentFacts, leader_change_s: float, found: list[tuple[str, str]]
) -> None:
    assert of_settings(facts, leader_change_s) == found


@pytest.mark.parametrize(
    ("changed", "level"),
    [
        ({}, "ok"),
        ({"GossipLANProbeInterval": "500ms", "GossipLANSuspicionMult": 3}, "ok"),
        ({"GossipLANProbeInterval": "5s"}, "warning"),
        ({"GossipLANSuspicionMult": 6}, "warning"),
        ({"GossipLANProbeInterval": None}, "cannot tell"),
    ],
)
def test_gossip_that_is_slower_than_by_default_is_a_warning_for_serf_health(
    changed: dict[str, object], level: str
) -> None:
    facts = debug(server=False, **changed)
    assert of_settings(facts, 14.0, ("serfHealth",)) == [("gossip", level)]
    assert of_settings(facts, 14.0) == []


def test_a_real_server_that_leaves_and_is_slower_than_the_file_has_the_line_to_change(tmp_path: Path) -> None:
    """A server with a data directory and Consul's default raft_multiplier."""
    config = {"performance": {"raft_multiplier": 5}, "gossip_lan": {"suspicion_mult": 6}}
    with Agent(tmp_path / "own", persistent=True, leave_on_terminate=True, config=config) as agent:
        check = Check(tmp_path, f"address: '{agent.url}', leader_change: 3s", SERF)
    assert check.code == OK and check.of("leave")["level"] == "warning"
    assert "leave_on_terminate: false" in check.of("leave")["remedy"]
    raft, gossip = check.of("raft", level="warning"), check.of("gossip", level="warning")
    assert raft["text"] == (
        "a change of Consul's leader takes about 14s by this server's raft_multiplier, "
        "and the file counts on 3s (leader_change)"
    )
    assert raft["remedy"] == (
        "set performance { raft_multiplier = 1 } in the configuration of every server, "
        "or consul.leader_change to 14s in this file"
    )
    assert gossip["text"] == (
        "serfHealth usually fails 8s to 11s after a crash of the machine, by this agent's gossip_lan "
        "(probe_interval 1s, suspicion_mult 6), later than with Consul's defaults"
    )
    assert 'set gossip_lan { probe_interval = "1s" suspicion_mult = 4 }' in gossip["remedy"]


def test_an_agent_that_closes_a_watch_before_its_answer_is_reported() -> None:
    """Durations as Consul prints them; 0 stands for none, and versions before 1.22.4 have no such setting."""

    def found(**changed: Any) -> list[str]:
        return [
            one.text
            for one in of_agent(debug(**changed), "n", is_local=True, items=[])
            if one.what == "timeout"
        ]

    (text,) = found(HTTPWriteTimeout="20s")
    assert "after 20s" in text and "26.56s" in text
    for fine in ("15m0s", "30s", "0s", 0, None):
        assert not found(HTTPWriteTimeout=fine)
    assert not found()


def test_a_server_that_does_not_vote_yet_is_reported() -> None:
    servers = [{"Node": "c1", "Voter": True}, {"Node": "c2", "Voter": False}, 7]
    (found,) = of_voters(servers)
    assert found.level is Level.WARNING and "c2" in found.text and "raft list-peers" in found.remedy
    assert not of_voters(servers[:1])


def test_a_record_that_somebody_else_wrote_is_reported(
    shared_agent: Agent, tmp_path: Path, unique: str
) -> None:
    text = f"semaphores: {{slots: {{limit: 2, prefix: {unique}}}}}"
    shared_agent.kv_put(f"{unique}/.lock", b"max_connections=500")
    check = Check(tmp_path, f"address: '{shared_agent.url}'", text)
    (error,) = check.errors()
    assert check.code == CONFIGURATION and f"{unique}/.lock is not the record of a semaphore" in error
    shared_agent.kv_put(f"{unique}/.lock", b'{"Limit": 2, "Holders": {}}')
    assert Check(tmp_path, f"address: '{shared_agent.url}'", text).code == OK


def test_a_first_write_that_agents_lose_leaves_nothing_untold(shared_agent: Agent, tmp_path: Path) -> None:
    """2.0.4 loses the first one after a rest, and a command always comes after a rest."""
    with Proxy(shared_agent.host, shared_agent.port) as proxy:
        rule = proxy.answer("500 Internal Server Error", "rpc error making call: EOF", "PUT", times=1)
        check = Check(tmp_path, f"address: '{proxy.url}'")
    assert check.code == OK and rule.caught
    assert {one["level"] for one in check.found if one["what"] == "rights"} == {"ok"}


def test_a_certificate_that_is_not_in_pem_is_named_with_its_remedy(tmp_path: Path) -> None:
    (tmp_path / "ca.der").write_bytes(ssl.PEM_cert_to_DER_cert(trustme.CA().cert_pem.bytes().decode()))
    check = Check(tmp_path, f"address: 'https://127.0.0.1:1', tls: {{ca_file: {tmp_path}/ca.der}}")
    found = check.of("reachable")
    assert "openssl x509 -inform DER" in found["text"] and "start the agent" not in found["remedy"]


# --- no effect -----------------------------------------------------------------------------------


def state(agent: Agent) -> list[Any]:
    """Return all keys and sessions, with the index of their table."""
    answers = [agent.call("GET", path) for path in ("/kv/?recurse&consistent", "/session/list?consistent")]
    return [(answer.index, answer.text) for answer in answers]


def test_check_connect_changes_nothing_with_keys_absent_or_held(tmp_path: Path) -> None:
    with Agent(tmp_path / "own") as agent:
        session = agent.session_create(TTL="60s")
        agent.acquire("service/app/leader", session, b"x")
        for key in ("service/watched/leader", "service/rebuild/.lock"):
            agent.kv_put(key, b'{"Limit": 2, "Holders": {}}')
        before = state(agent)
        assert Check(tmp_path, f"address: '{agent.url}'").code == OK
        assert state(agent) == before


# --- the agent -----------------------------------------------------------------------------------


@pytest.mark.long
def test_too_few_connections_for_the_items_are_reported(tmp_path: Path) -> None:
    config = {"limits": {"http_max_conns_per_client": 8}}
    items = "elections: {" + ", ".join(f"e{number}: {{}}" for number in range(8)) + "}"
    with Agent(tmp_path / "narrow", config=config) as agent:
        few = Check(tmp_path, f"address: '{agent.url}'")
        many = Check(tmp_path, f"address: '{agent.url}'", items)
    assert few.code == OK and few.of("connections")["level"] == "warning"
    assert many.code == CONFIGURATION and many.of("connections")["level"] == "error"
    assert "http_max_conns_per_client to 24" in many.of("connections")["remedy"]


def test_the_number_of_connections_that_check_counts_is_the_daemons_limit() -> None:
    assert CONCURRENT_MAX + HOLDING_CONCURRENT_MAX + IDLE_MAX == OTHERS_MAX
    assert WATCHES_MAX + OTHERS_MAX == 120  # docs/configuration.md, "Limits"


def test_a_ttl_and_a_check_that_consul_refuses_are_reported(tmp_path: Path) -> None:
    session = "{session: {ttl: TTL, node_checks: [CHECK]}}"
    items = "elections: {short: SHORT, unknown: UNKNOWN, fine: FINE}"
    for name, ttl, bound in (
        ("SHORT", "2s", "serfHealth"),
        ("UNKNOWN", "10s", "none"),
        ("FINE", "10s", "serfHealth"),
    ):
        items = items.replace(name, session.replace("TTL", ttl).replace("CHECK", bound))
    with Agent(tmp_path / "usual", config={"session_ttl_min": "10s"}) as agent:
        check = Check(tmp_path, f"address: '{agent.url}'", items)
    assert check.code == CONFIGURATION
    assert "Invalid Session TTL" in check.of("rights", "short", "error")["text"]
    assert "Missing check 'none'" in check.of("rights", "unknown", "error")["text"]
    assert check.of("rights", "fine")["level"] == "ok"
    assert "session_ttl_min" in str(check.warnings)


def test_a_short_ttl_that_consul_takes_is_no_warning(shared_agent: Agent, tmp_path: Path) -> None:
    text = (
        "elections: {a: {session: {ttl: 2s, lock_delay: 30s}}, b: {session: {ttl: 12s}}, c: {contend: false}}"
    )
    check = Check(tmp_path, f"address: '{shared_agent.url}'", text)
    assert check.code == OK and check.warnings == []


def test_a_check_that_fails_now_is_a_warning(shared_agent: Agent, tmp_path: Path, unique: str) -> None:
    bound = {"Name": unique, "ID": unique, "TTL": "60s", "Status": "critical"}
    assert shared_agent.call("PUT", "/agent/check/register", bound).status == 200
    shared_agent.wait_check(unique)
    item = f"elections: {{app: {{session: {{node_checks: [{unique}]}}}}}}"
    check = Check(tmp_path, f"address: '{shared_agent.url}'", item)
    assert shared_agent.call("PUT", f"/agent/check/deregister/{unique}").status == 200
    assert check.code == OK
    assert "critical" in check.of("rights", "app", "warning")["text"]


def test_an_agent_that_takes_no_writes_from_this_address_is_reported_as_one(tmp_path: Path) -> None:
    """No right of the token would help."""
    closed = {"http_config": {"allow_write_http_from": ["10.99.0.0/16"]}}
    with Agent(tmp_path / "closed", config=closed) as agent:
        check = Check(tmp_path, f"address: '{agent.url}'", "elections: {app: {}}")
    assert check.code == CONFIGURATION, check.errors()
    assert [error.split(":")[1].strip() for error in check.errors()] == [
        "may not write service/app/leader",
        "may not make its session",
    ]
    assert all("http_config.allow_write_http_from" in error for error in check.errors())
    assert not any("give the token" in error for error in check.errors())


def test_check_connect_works_with_the_embedded_agent(tmp_path: Path) -> None:
    """This agent has fewer facts about itself."""
    (port,) = free_ports(1)
    argv = [*("setpriv", "--pdeathsig", "KILL"), *COMMAND, "dev-agent", "--port", str(port)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=ROOT, env=ENVIRON) as agent:
        assert agent.stdout is not None and agent.stdout.readline()
        check = Check(tmp_path, f"address: 'http://127.0.0.1:{port}'")
        agent.terminate()
    assert check.code == OK and not check.errors()
    assert check.of("leave")["level"] == "cannot tell"


# --- no Consul -----------------------------------------------------------------------------------


def test_an_address_without_a_listener_is_69(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    check = Check(tmp_path, f"address: 'http://127.0.0.1:{port}'")
    assert check.code == UNREACHABLE
    assert check.levels() == {("reachable", "", "error")}


@pytest.mark.long
def test_a_cluster_without_a_leader_is_69(tmp_path: Path) -> None:
    with Leaderless(tmp_path / "consul") as agent:
        check = Check(tmp_path, f"address: '{agent.url}'")
    assert check.code == UNREACHABLE
    assert check.levels() == {("reachable", "", "ok"), ("leader", "", "error")}


@pytest.mark.long
def test_the_text_has_each_finding_with_its_remedy_below(guarded: Guarded, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(f"consul: {{address: '{guarded.url}'}}\nelections: {{app: {{contend: false}}}}\n")
    done = command("check", str(file), "--connect")
    assert done.returncode == CONFIGURATION and done.stderr == ""
    assert (
        "  error        rights app: may not read service/app/leader: Consul answers 403 "
        f"{'rpc error making call: ' if guarded.is_client else ''}Permission denied\n"
        '               give the token: key "service/app/leader" { policy = "read" }\n'
    ) in done.stdout
    *_, verdict = done.stdout.splitlines()
    assert verdict.startswith(f"{file}: valid, 1 election, no warnings; Consul: 1 fault, ")
    quiet = command("check", str(file), "--connect", "--quiet")
    head, *lines, last = quiet.stdout.splitlines()
    assert (quiet.returncode, head, last) == (CONFIGURATION, "consul", verdict)
    assert len(lines) == 2 and lines[0].startswith("  error        rights app: ")
