"""A Consul agent that denies by default, and makes the tokens that a test asks for."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.consul import READY_S, WAYS, Agent

# The server itself, and through a client agent of it, which takes longer.
EACH_WAY = (WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.long))
MASTER = "7b0f0e2c-3f5b-4d3a-9a51-5d1f0c6f5f10"


class Made(NamedTuple):
    """A token and its only policy; ``secret`` is what is sent."""

    policy: str
    accessor: str
    secret: str


class Guarded(Agent):
    """An agent on which only what a policy says is allowed; the test itself uses its master token."""

    def __init__(
        self,
        folder: Path,
        *,
        key_list_policy: bool = False,
        servers: "Guarded | None" = None,
        **config: object,
    ) -> None:
        """``key_list_policy``: lists of keys need a right of their own. ``servers``: it is a client agent
        of that one, which makes the tokens."""
        acl = {
            "enabled": True,
            "default_policy": "deny",
            "enable_key_list_policy": key_list_policy,
            "tokens": {"master": MASTER, "agent": MASTER},
            "policy_ttl": "100ms",  # a client agent keeps what it knows of a token so long; else 30 s
            "token_ttl": "100ms",
        }
        super().__init__(folder, config={"acl": acl, **config}, token=MASTER, servers=servers)

    def start(self) -> None:
        """Return only when this agent knows the anonymous token, too: a new leader makes it a moment after it
        has begun to answer, and a client agent calls requests without a token unknown until it is told."""
        super().start()
        token, self.token = self.token, None
        try:
            give_up_at = time.monotonic() + READY_S
            while "ACL not found" in self.call("GET", "/agent/self").text:
                assert time.monotonic() < give_up_at, "the agent has not heard of the anonymous token"
                time.sleep(0.01)
        finally:
            self.token = token

    @property
    def node_name(self) -> str:
        """What sessions of this agent belong to."""
        return str(self.call("GET", "/agent/self").json()["Config"]["NodeName"])

    def token_of(self, rules: str) -> Made:
        """A token that may do what these rules say, and nothing else."""
        name = f"test-{len(self.call('GET', '/acl/policies').json())}"
        policy = self.call("PUT", "/acl/policy", {"Name": name, "Rules": rules})
        assert policy.status == 200, policy
        token = self.call("PUT", "/acl/token", {"Policies": [{"Name": name}]})
        assert token.status == 200, token
        return Made(policy.json()["ID"], token.json()["AccessorID"], token.json()["SecretID"])

    def change(self, made: Made, rules: str) -> None:
        """Other rules for this token, in force at once."""
        name = self.call("GET", f"/acl/policy/{made.policy}").json()["Name"]
        body = {"ID": made.policy, "Name": name, "Rules": rules}
        assert self.call("PUT", f"/acl/policy/{made.policy}", body).status == 200

    def forget(self, made: Made) -> None:
        """The token is known no more."""
        assert self.call("DELETE", f"/acl/token/{made.accessor}").status == 200

    def sessions_rule(self) -> str:
        """The rule that lets make sessions on this agent."""
        return f'session "{self.node_name}" {{ policy = "write" }}\n'


@contextmanager
def guarded_agent(folder: Path, asked: str) -> Iterator[Guarded]:
    """``asked`` is one of WAYS: the server itself, or a client agent of it."""
    with Guarded(folder / "server") as server:
        if asked == WAYS[0]:
            yield server
            return
        with Guarded(folder / "client", servers=server) as client:
            yield client


def write(key: str) -> str:
    """The rule that lets write this key."""
    return f'key "{key}" {{ policy = "write" }}\n'


def below(prefix: str) -> str:
    """The rule that lets write all below this prefix."""
    return f'key_prefix "{prefix}/" {{ policy = "write" }}\n'


def deny(key: str) -> str:
    """The rule that takes this key out of what another rule allows."""
    return f'key "{key}" {{ policy = "deny" }}\n'
