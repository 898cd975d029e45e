"""A Consul agent that denies by default, and makes the tokens that a test needs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.consul import READY_S, WAYS, Agent

# A server, and a client agent of that server, which takes longer.
EACH_WAY = (WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.long))
MASTER = "7b0f0e2c-3f5b-4d3a-9a51-5d1f0c6f5f10"


class Made(NamedTuple):
    """A token and its only policy; ``secret`` is sent with requests."""

    policy: str
    accessor: str
    secret: str


class Guarded(Agent):
    """An agent that allows only what policies say; the test itself uses its master token."""

    def __init__(
        self,
        folder: Path,
        *,
        key_list_policy: bool = False,
        servers: "Agent | None" = None,
        agent_token: str = MASTER,
        **config: object,
    ) -> None:
        """Create the agent.

        key_list_policy: whether lists of keys need a right of their own.
        servers: the server that this client agent uses, and that makes the tokens. None: the agent is a
            server.
        agent_token: the token with which the agent itself asks its servers.
        """
        acl = {
            "enabled": True,
            "default_policy": "deny",
            "enable_key_list_policy": key_list_policy,
            "tokens": {"master": MASTER, "agent": agent_token},
            "policy_ttl": "100ms",  # how long a client agent caches a token; by default 30 s
            "token_ttl": "100ms",
        }
        super().__init__(folder, config={"acl": acl, **config}, token=MASTER, servers=servers)

    def start(self) -> None:
        """Start the agent, and return when it knows the anonymous token.

        A new leader makes this token a moment after it has begun to answer. Until a client agent knows it, it
        refuses requests without a token.
        """
        super().start()
        token, self.token = self.token, None
        try:
            give_up_at = time.monotonic() + READY_S
            while "ACL not found" in self.call("GET", "/agent/self").text:
                assert time.monotonic() < give_up_at, "the agent does not know the anonymous token"
                time.sleep(0.01)
        finally:
            self.token = token

    @property
    def node_name(self) -> str:
        return str(self.call("GET", "/agent/self").json()["Config"]["NodeName"])

    def token_of(self, rules: str) -> Made:
        name = f"test-{len(self.call('GET', '/acl/policies').json())}"
        policy = self.call("PUT", "/acl/policy", {"Name": name, "Rules": rules})
        assert policy.status == 200, policy
        token = self.call("PUT", "/acl/token", {"Policies": [{"Name": name}]})
        assert token.status == 200, token
        return Made(policy.json()["ID"], token.json()["AccessorID"], token.json()["SecretID"])

    def change(self, made: Made, rules: str) -> None:
        """Give this token other rules, in force at once."""
        name = self.call("GET", f"/acl/policy/{made.policy}").json()["Name"]
        body = {"ID": made.policy, "Name": name, "Rules": rules}
        assert self.call("PUT", f"/acl/policy/{made.policy}", body).status == 200

    def forget(self, made: Made) -> None:
        assert self.call("DELETE", f"/acl/token/{made.accessor}").status == 200

    def sessions_rule(self) -> str:
        return f'session "{self.node_name}" {{ policy = "write" }}\n'


@contextmanager
def guarded_agent(folder: Path, asked: str) -> Iterator[Guarded]:
    """Return a guarded server, or a client agent of one.

    asked: the agent that the test uses, one of WAYS.
    """
    with Guarded(folder / "server") as server:
        if asked == WAYS[0]:
            yield server
            return
        with Guarded(folder / "client", servers=server) as client:
            yield client


def write(key: str) -> str:
    return f'key "{key}" {{ policy = "write" }}\n'


def below(prefix: str) -> str:
    return f'key_prefix "{prefix}/" {{ policy = "write" }}\n'


def deny(key: str) -> str:
    """Return the rule that denies this key although another rule allows it."""
    return f'key "{key}" {{ policy = "deny" }}\n'
