"""A candidate on another node than that of a test's agent, as Consul shows it."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.consul import Agent


@contextmanager
def candidate_elsewhere(agent: Agent, name: str) -> Iterator[None]:
    """Let a node that has no supervisor have a session of this name, which waits for nothing."""
    node = f"elsewhere-{uuid.uuid4().hex[:8]}"
    agent.call("PUT", "/catalog/register", {"Node": node, "Address": "127.0.0.1"})
    session = agent.session_create(Node=node, Name=name)
    try:
        yield
    finally:
        agent.session_destroy(session)
        agent.call("PUT", "/catalog/deregister", {"Node": node})
