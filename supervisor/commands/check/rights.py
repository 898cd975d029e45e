"""The findings about what the token may do, for each item and for the whole fleet."""

from collections.abc import Collection, Iterator, Sequence

from supervisor.adapters.consul import permissions, versions
from supervisor.adapters.consul.endpoints import NODE, READS_SESSIONS
from supervisor.commands.check.agent import AgentFacts
from supervisor.commands.check.findings import Finding, Level
from supervisor.config.formats import slot_record
from supervisor.core.outcomes import (
    Created,
    Denied,
    Ineligible,
    KeyView,
    Outcome,
    Refused,
    SessionsView,
)
from supervisor.core.settings import ItemSettings, SemaphoreSettings

MAKES_SESSION = "may make its session"
REPORTS_FILTERED = (1, 11)  # the first version that reports that a list is incomplete


def of_token(why: str) -> Finding:
    remedy = "put a token that exists into token_file (or token, or CONSUL_HTTP_TOKEN)"
    return Finding("token", Level.ERROR, f"Consul refuses the token: {why}", remedy)


def of_read(settings: ItemSettings, key: str, outcome: Outcome) -> Finding:
    if isinstance(outcome, Denied):
        said = _said(outcome)
        text, rule = f"may not read {key}: Consul answers {said}", _key_rule(settings, key)
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or rule)
    if not isinstance(outcome, KeyView):
        return _unclear(settings, f"read {key}", _said(outcome))
    is_own = key == settings.key  # and not its tenure record, or the key of a contender
    if is_own and settings.kind == "semaphore" and outcome.present:
        try:
            slot_record.decoded(outcome.value)
        except slot_record.InvalidRecord as why:
            remedy = "give the semaphore another prefix, or delete this key"
            return _right(settings, Level.ERROR, f"{key} is not the record of a semaphore: {why}", remedy)
    elif is_own and settings.kind == "election":
        remedy = "give the election another key, or delete this one"
        if outcome.is_foreign:
            text = f"belongs to another program: its flags are {outcome.foreign_flags}, not a lock's"
            return _right(settings, Level.ERROR, f"{key} {text}", remedy)
        if outcome.was_never_locked:
            text = f"has a value of {len(outcome.value)} bytes, and was never locked: a lock writes over it"
            return _right(settings, Level.WARNING, f"{key} {text}", remedy)
    return _right(settings, Level.OK, f"may read {key}")


def of_write(settings: ItemSettings, key: str, why: str, rule: str = "") -> Finding:
    """Return the finding about the impossible write of ``key``, to which Consul answered ``why``.

    rule: the remedy if the token may not. Blank: the rule of the item's keys.
    """
    if why.startswith("409") and "index is stale" in why:
        return _right(settings, Level.OK, f"may write {key}")
    if why.startswith("403") or (why.startswith("409") and permissions.PERMISSION_DENIED in why):
        why = why.removeprefix("409 ")  # of the transaction, where the log has the 403 of a usual write
        text, rule = f"may not write {key}: Consul answers {why}", rule or _key_rule(settings, key)
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(why) or rule)
    return _unclear(settings, f"write {key}", why)


def of_session(settings: ItemSettings, node: str, impossible: str, outcome: Outcome) -> Finding:
    """Return the finding about a session that cannot be made, because no check has the id ``impossible``."""
    said = _said(outcome)
    if isinstance(outcome, Created) or (isinstance(outcome, Refused) and impossible in said):
        return _right(settings, Level.OK, MAKES_SESSION)
    if isinstance(outcome, Denied):
        rule = f'give the token: session "{node or NODE}" {{ policy = "write" }}'
        text = f"may not make its session: Consul answers {said}"
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or rule)
    if isinstance(outcome, Refused):
        remedy = "change ttl or the checks of its session, or session_ttl_min of Consul's servers"
        text = f"cannot make its session: Consul answers {said}"
        return _right(settings, Level.ERROR, text, permissions.agent_remedy(said) or remedy)
    if isinstance(outcome, Ineligible):
        text = f"cannot make its session now: Consul answers {said}"
        return _right(settings, Level.WARNING, text, "nothing: the node contends once the check passes")
    return _unclear(settings, "make its session", said)


def of_maintenance(settings: ItemSettings, node: str, sees_checks: bool | None) -> Finding:
    """Return the finding about the maintenance mode, which Consul may hide. None: nobody knows."""
    if sees_checks:
        return _right(settings, Level.OK, "may see the maintenance mode")
    rule = f'give the token: node "{node}" {{ policy = "read" }}'
    if sees_checks is None:
        text = "whether it may see the maintenance mode"
        if not node:
            text += ": the agent does not report which node it is"
            rule = 'to find out, give the token: agent_prefix "" { policy = "read" }'
        return _right(settings, Level.UNTOLD, text, rule)
    text = "may not see the maintenance mode: Consul hides the checks of this node"
    return _right(settings, Level.ERROR, text, rule)


def of_dns(settings: ItemSettings, sees: bool | None) -> Finding:
    """Return whether DNS, which asks with the agent's own token, may name the holder. None: nobody knows."""
    assert settings.service is not None
    name = settings.service.name
    rules = f'service "{name}" {{ policy = "read" }} node_prefix "" {{ policy = "read" }}'
    remedy = f"if clients use DNS, give the agent's default token, or the anonymous one: {rules}"
    if sees is None:
        return _right(settings, Level.UNTOLD, f"whether DNS may name {name}", remedy)
    level, may = (Level.OK, "may") if sees else (Level.WARNING, "may not")
    return _right(settings, level, f"DNS {may} name {name}", "" if sees else remedy)


def of_sessions(outcome: Outcome, holders: Collection[str], facts: AgentFacts | None) -> Finding:
    """Return the finding about whether the token may list the sessions of all nodes, as some commands do.

    Consul leaves out a session that the token may not read. Only since 1.11 it reports that. No level is an
    error, because the daemon lists no sessions.
    holders: the sessions that hold a key of the configuration.
    facts: None: the agent did not report them.
    """
    rule, answers = f"give the token: {READS_SESSIONS}", f"Consul answers {_said(outcome)}"
    to_see = f"to see all nodes in members and sessions, {rule}"
    if isinstance(outcome, Denied):
        return Finding("sessions", Level.UNTOLD, f"may not list sessions: {answers}", to_see)
    if not isinstance(outcome, SessionsView):
        return Finding("sessions", Level.UNTOLD, f"whether it may list sessions: {answers}")
    shown = {session.id for session in outcome.sessions}
    if outcome.filtered or not set(holders) <= shown:
        text = "members and sessions do not see all nodes: Consul leaves out what the token may not read"
        return Finding("sessions", Level.UNTOLD, text, to_see)
    reports = facts is not None and versions.numbers(facts.version) >= REPORTS_FILTERED and bool(shown)
    if reports or (facts is not None and facts.debug.get("ACLsEnabled") is False):
        return Finding("sessions", Level.OK, "members and sessions see all nodes")
    text = "whether members and sessions see all nodes: Consul does not report which sessions it leaves out"
    missing = f"nothing, unless a node is missing there: then the token lacks {READS_SESSIONS}"
    return Finding("sessions", Level.UNTOLD, text, missing)


def of_history(prefix: str, read: Outcome, why: str) -> Finding:
    """Return the finding about the keys below ``prefix``. No level is an error: no election depends on it.

    why: Consul's answer to an impossible write of such a key.
    """
    lost, rule = "the history of elections is not kept", f'key_prefix "{prefix}" {{ policy = "write" }}'
    return _of_writes("history", f"below {prefix}", lost, rule, read, why)


def of_shots(key: str, read: Outcome, why: str) -> Finding:
    """Return the finding about the notes of shots; ``why`` as in ``of_history``."""
    lost, rule = "each node that takes over shoots for itself", f'key "{key}" {{ policy = "write" }}'
    return _of_writes("shots", key, lost, rule, read, why)


def _of_writes(what: str, place: str, lost: str, rule: str, read: Outcome, why: str) -> Finding:
    if isinstance(read, KeyView) and why.startswith("409") and "index is stale" in why:
        return Finding(what, Level.OK, f"may read and write {place}")
    if isinstance(read, Denied) or permissions.PERMISSION_DENIED in why:
        text, remedy = f"{lost}: the token may not write {place}", permissions.agent_remedy(why)
        return Finding(what, Level.WARNING, text, remedy or f"give the token: {rule}")
    answers = why if isinstance(read, KeyView) else _said(read)
    return Finding(what, Level.UNTOLD, f"whether it may write {place}: Consul answers {answers}")


def of_orders(place: str, read: Outcome, *, lists: bool) -> Finding:
    """Return the finding about orders for the whole fleet, which no election depends on.

    lists: whether Consul gives the list; with ``enable_key_list_policy`` that is a right of its own.
    """
    if isinstance(read, KeyView) and lists:
        return Finding("orders", Level.OK, f"may read {place}")
    if isinstance(read, KeyView | Denied):
        rule = f'give the token: key_prefix "{place}" {{ policy = "list" }}'
        text = f"may not list {place}, so this node follows no orders"
        return Finding("orders", Level.WARNING, text, rule)
    return Finding("orders", Level.UNTOLD, f"whether it may read {place}: Consul answers {_said(read)}")


def of_fleet(service: str, said: str, present: Sequence[object] | str) -> Iterator[Finding]:
    """Yield the findings about ``fleet``; neither is an error, because no election depends on it.

    said: Consul's answer to an impossible write of the service.
    present: the daemons that the token sees, or why it sees none or not all.
    """
    if "index is stale" in said:
        yield Finding("fleet", Level.OK, f"may register this node as the service {service}")
    else:
        rule = f'give the token: service "{service}" {{ policy = "write" }}'
        text = f"may not write the service {service}, so other nodes do not see this one: {said}"
        yield Finding("fleet", Level.WARNING, text, permissions.agent_remedy(said) or rule)
    if isinstance(present, str):
        yield Finding("fleet", Level.UNTOLD, f"whether members sees all nodes: {present}")


def _unclear(settings: ItemSettings, what: str, said: str) -> Finding:
    """Return the finding about an answer that is neither yes nor no; a 400 is a fault of the request."""
    if not said.startswith("400"):
        return _right(settings, Level.UNTOLD, f"whether it may {what}: Consul answers {said}")
    remedy = permissions.agent_remedy(said) or "change what Consul names"
    return _right(settings, Level.ERROR, f"cannot {what}: Consul answers {said}", remedy)


def _right(settings: ItemSettings, level: Level, text: str, remedy: str = "") -> Finding:
    return Finding("rights", level, text, remedy, settings.name)


def _key_rule(settings: ItemSettings, key: str) -> str:
    access = "write" if settings.contend else "list" if settings.kind == "semaphore" else "read"
    if isinstance(settings, SemaphoreSettings):
        return f'give the token: key_prefix "{settings.prefix}/" {{ policy = "{access}" }}'
    return f'give the token: key "{key}" {{ policy = "{access}" }}'


def _said(outcome: Outcome) -> str:
    """Return the text of Consul's answer, without a remedy, because each finding has its own remedy."""
    said = str(getattr(outcome, "said", "") or getattr(outcome, "why", outcome))
    return said.removesuffix(f": {permissions.agent_remedy(said)}")
