"""Which nodes take part in each election and semaphore: Consul's keys and its list of sessions, put together.

In an election a waiting node leaves no trace except its session, which is known by its name. In a semaphore
each node has a contender key. Consul records no times, only indexes that grow. Except for ``cluster_now`` the
functions are pure.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from supervisor.adapters.consul.presence import LEFT_OUT, MANUAL, Present
from supervisor.adapters.consul.query import NotReadable, OneOffClient
from supervisor.config import ConsulSettings
from supervisor.config.environment import ANY_TEXT
from supervisor.config.formats.json_values import holder_name
from supervisor.core.actions import Role
from supervisor.core.lease import LOCK_DELAY_MAX_S
from supervisor.core.outcomes import KeyView, ListedSession, SessionsView, SlotsView, View
from supervisor.core.settings import ItemSettings, SemaphoreSettings

DEFAULT_NAMES = "consul-supervisor:"  # how the default of session.name begins
AGAIN_MAX = 2  # readings when a holder has no listed session, because another node may just have taken over
NODE_CHARS_MAX = 256  # of the name that a node gives itself in its value
NOT_RECOGNISED = "session.name is only a variable, so the sessions of waiting nodes cannot be recognised"
_NO_SESSION = (Role.PAUSED, Role.INELIGIBLE, Role.RESTING, Role.OBSERVER, Role.STOPPED)


class Part(StrEnum):
    """A member's part. VANISHED: ``.lock`` names a holder without a live contender key."""

    HOLDER = "holder"
    CANDIDATE = "candidate"
    VANISHED = "vanished"


@dataclass(frozen=True, slots=True)
class Member:
    """One node's part in an election or semaphore, as Consul shows it."""

    part: Part
    session: str
    value: bytes = b""  # of the key or contender key. Empty: a waiting node of an election has none
    listed: ListedSession | None = None  # the session as the list shows it. None: the list does not show it
    slot: int | None = None  # the number of its slot. None: it has none

    @property
    def node(self) -> str:
        """The node's own name, as its value has it. Blank: the value has none."""
        return holder_name(self.value)[:NODE_CHARS_MAX]

    @property
    def consul_node(self) -> str:
        """The node of its session. Blank: the list does not show the session."""
        return "" if self.listed is None else self.listed.node


@dataclass(frozen=True, slots=True)
class Node:
    """One daemon of Consul's catalog, and its part in one item."""

    of: Present
    role: str  # as the daemon told it last. Blank: its meta was cut before this item
    detail: str  # what it tells of the item
    member: Member | None = None  # its session. None: it has none, or none that can be recognised

    @property
    def waits(self) -> bool:
        """Whether it waits, with a session that only its own word shows."""
        return self.member is None and self.role == Role.WAITING and self.of.status != "critical"

    @property
    def consul_node(self) -> str:
        return self.of.consul_node

    @property
    def is_manual(self) -> bool:
        """Whether it waits for an operator's word, so that it takes over from nobody."""
        return self.role == Role.WAITING and self.detail == MANUAL


@dataclass(frozen=True, slots=True)
class Members:
    """All members of one item."""

    settings: ItemSettings
    # The holders, then the candidates in the order in which they came, then the vanished holders.
    members: tuple[Member, ...] = ()
    is_complete: bool = True  # whether all candidates are known
    notes: tuple[str, ...] = ()  # why something is not known, and the faults of the item's keys
    limit: int | None = 1  # how many nodes may hold. None: the record is missing or unusable
    # How long the slot of a holder that vanished stays taken. None: an election, where the lock-delay of the
    # holder's session counts.
    lockout_s: float | None = None
    is_readable: bool = True  # whether the token may read the keys
    nodes: tuple[Node, ...] = ()  # the daemons of Consul's catalog that have, or may have, this item
    is_long: bool = False  # the tenure record of its holder may keep others waiting for more than a minute

    @property
    def is_empty(self) -> bool:
        """Whether nobody holds or waits, as far as Consul shows."""
        return not self.members and not any(node.waits for node in self.nodes)

    def of_part(self, part: Part) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.part is part)

    @property
    def heirs(self) -> tuple[Member | Node, ...]:
        """Those that may take over: the candidates, without nodes that wait for an operator's word."""
        manual = [node.member for node in self.nodes if node.is_manual]
        candidates = (each for each in self.of_part(Part.CANDIDATE) if each not in manual)
        return (*candidates, *(node for node in self.nodes if node.waits and not node.is_manual))


@dataclass(frozen=True, slots=True)
class SupervisorSession:
    """A session of a supervisor, with all that the configuration's items show about it."""

    listed: ListedSession
    parts: Mapping[str, Part]  # its part in each item, by the item's name
    named: tuple[str, ...]  # the items whose session.name it has
    is_known: bool  # whether the token may read all keys that the session may hold by its name
    # Whether it certainly has no part, and its node has another session of this name: one with a part, or a
    # newer one.
    is_orphan: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """The members of several items, and the list of sessions from which they were found."""

    items: tuple[Members, ...]
    sessions: SessionsView

    @property
    def is_hidden(self) -> bool:
        """Whether Consul certainly leaves out sessions that the token may not read."""
        holders = (member for item in self.items for member in item.of_part(Part.HOLDER))
        return self.sessions.filtered or any(member.listed is None for member in holders)


async def cluster_now(
    settings: ConsulSettings, items: Sequence[ItemSettings], service: str | None = None
) -> Cluster:
    """Return the members of these items, by consistent reads, and the daemons of this service.

    An item whose keys the token may not read has a note instead of members, if it is one of several. Raises
    LookupFailed when Consul gives no usable answer, and TokenError when the token file cannot be used.
    """
    async with OneOffClient(settings) as consul:
        views: dict[str, View | NotReadable] = {}
        unread: Collection[ItemSettings] = items
        for _ in range(AGAIN_MAX):
            for each in unread:
                try:
                    views[each.name] = await consul.item(each)
                except NotReadable as error:
                    if len(items) == 1:
                        raise
                    views[each.name] = error
            sessions = await consul.sessions()
            known = {session.id for session in sessions.sessions}
            unread = [each for each in items if not _holders(views[each.name]) <= known]
            if not unread:
                break
        present = [] if service is None else await consul.present(service)
    found = tuple(members_of(each, views[each.name], sessions) for each in items)
    return Cluster(found if service is None else tuple(with_nodes(each, present) for each in found), sessions)


async def leader_now(settings: ConsulSettings, key: str) -> tuple[KeyView, Member | None]:
    """Return the key of an election, and its holder, if any. Raises as ``cluster_now`` does."""
    async with OneOffClient(settings) as consul:
        view = await consul.key(key)
        if not view.session:
            return view, None
        found = (each for each in (await consul.sessions()).sessions if each.id == view.session)
        return view, Member(Part.HOLDER, view.session, view.value, next(found, None))


def _holders(view: View | NotReadable) -> set[str]:
    return set() if isinstance(view, NotReadable) else {holder.session for holder in view.holders}


def members_of(settings: ItemSettings, view: View | NotReadable, sessions: SessionsView) -> Members:
    """Return the members of this item, as its keys and the list of sessions show them."""
    match view:
        case KeyView():
            found = _of_election(settings, view, sessions)
        case SlotsView():
            assert isinstance(settings, SemaphoreSettings), "an election has one key"
            found = _of_semaphore(settings, view)
        case NotReadable():
            return Members(settings, (), False, (str(view),), None, is_readable=False)
    by_id = {session.id: session for session in sessions.sessions}
    members = tuple(replace(member, listed=by_id.get(member.session)) for member in found.members)
    hidden = sessions.filtered or any(
        member.listed is None for member in members if member.part is Part.HOLDER
    )
    if not hidden:
        return replace(found, members=members)
    note = "Consul does not show all sessions to this token"
    is_complete = found.is_complete and settings.kind == "semaphore"
    return replace(found, members=members, notes=(*found.notes, note), is_complete=is_complete)


def with_nodes(found: Members, present: Sequence[Present] | str) -> Members:
    """Return the members with the daemons of Consul's catalog. A text: why the catalog does not show them."""
    if isinstance(present, str):
        return replace(found, notes=(*found.notes, present))
    nodes, left = [], list(found.members)
    for each in present:
        role, detail = each.parts.get(found.settings.name, ("", ""))
        if not role and LEFT_OUT not in each.meta:
            continue
        near = [one for one in left if one.listed is not None and one.listed.node == each.consul_node]
        waits = role == Role.WAITING
        near.sort(key=lambda one: ((one.part is Part.CANDIDATE) is not waits, one.node != each.name))
        member = near[0] if near and role not in _NO_SESSION else None
        if member is not None:
            left.remove(member)
        nodes.append(Node(each, role, detail, member))
    notes = tuple(note for note in found.notes if note != NOT_RECOGNISED)
    return replace(found, nodes=tuple(nodes), notes=notes)


def _of_election(settings: ItemSettings, view: KeyView, sessions: SessionsView) -> Members:
    holders = [Member(Part.HOLDER, holder.session, holder.value) for holder in view.holders]
    pattern = name_pattern(settings.session.name)
    named = (
        session
        for session in sessions.sessions
        if session.id != view.session and pattern is not None and pattern.fullmatch(session.name)
    )
    waiting = [Member(Part.CANDIDATE, each.id) for each in sorted(named, key=_age)]
    notes = []
    if pattern is None:
        notes.append(NOT_RECOGNISED)
    if view.is_foreign:
        notes.append(f"{settings.key} belongs to another program: its flags are {view.foreign_flags}")
    members, is_complete = (*holders, *waiting), pattern is not None
    return Members(settings, members, is_complete, tuple(notes), is_long=view.is_long)


def _of_semaphore(settings: SemaphoreSettings, view: SlotsView) -> Members:
    alive, slot_record = view.all_alive(), view.slot_record
    named, numbers, line = view.named, view.numbers, sorted(alive.values(), key=lambda key: key.create_index)
    holders = [
        Member(Part.HOLDER, key.name, key.value, slot=numbers.get(key.name))
        for key in line
        if key.name in named
    ]
    waiting = [Member(Part.CANDIDATE, key.name, key.value) for key in line if key.name not in named]
    gone = [
        Member(Part.VANISHED, session, slot=numbers.get(session)) for session in named if session not in alive
    ]
    unusable = view.lock is not None and slot_record is None
    notes = (f"cannot tell which nodes have a slot: {view.lock.why}",) if unusable and view.lock else ()
    delays = [settings.prune_delay_s, *(key.prune_delay_s or 0.0 for key in view.contenders)]
    limit = settings.limit
    if slot_record is not None:
        delays.append(slot_record.prune_delay_s or 0.0)
        limit = min(limit, slot_record.limit or limit)
    members = (*holders, *waiting, *gone)
    return Members(settings, members, not unusable, notes, None if unusable else limit, max(delays))


def _age(session: ListedSession) -> int:
    return session.create_index


def name_pattern(name: str) -> re.Pattern[str] | None:
    """Return the pattern that the session names of all nodes match. None: each name would match.

    name: session.name, in which ANY_TEXT stands for each variable.
    """
    parts = name.split(ANY_TEXT)
    if not any(letter.isalnum() for part in parts for letter in part):
        return None
    return re.compile(".*".join(map(re.escape, parts)), re.DOTALL)


def supervisor_sessions(cluster: Cluster, former: Collection[str] = ()) -> list[SupervisorSession]:
    """Return the sessions of supervisors, the oldest first. ``former``: of earlier tenures of this node."""
    parts: dict[str, dict[str, Part]] = {}
    unreadable = {item.settings.name for item in cluster.items if not item.is_readable}
    patterns = {item.settings.name: name_pattern(item.settings.session.name) for item in cluster.items}
    for item in cluster.items:
        for member in item.members:  # except candidates that are known only by the name of their session
            if member.part is not Part.CANDIDATE or item.settings.kind == "semaphore":
                parts.setdefault(member.session, {})[item.settings.name] = member.part
    found = []
    for listed in sorted(cluster.sessions.sessions, key=_age):
        named = tuple(
            name for name, pattern in patterns.items() if pattern and pattern.fullmatch(listed.name)
        )
        if named or listed.id in parts or listed.name.startswith(DEFAULT_NAMES):
            is_known = bool(named) and not unreadable.intersection(named)
            found.append(SupervisorSession(listed, parts.get(listed.id, {}), named, is_known))
    return list(_with_orphans(found, former))


def _with_orphans(found: Sequence[SupervisorSession], former: Collection[str]) -> Iterator[SupervisorSession]:
    """Yield the sessions, with orphans marked: those that no supervisor uses any more.

    A supervisor has one session of a name at a time: the one with a part, else the newest.
    """
    last: dict[tuple[str, str], SupervisorSession] = {}
    for each in found:
        group = (each.listed.node, each.listed.name)
        if each.listed.id not in former and (not (group in last and last[group].parts) or each.parts):
            last[group] = each
    for each in found:
        current = last.get((each.listed.node, each.listed.name))
        unused = each.is_known and not each.parts and current is not each
        yield replace(each, is_orphan=unused or each.listed.id in former)


def consequences(session: SupervisorSession, items: Iterable[Members]) -> list[str]:
    """Return the effect of destroying this session on each item in which it has a part, a line for each."""
    by_name = {item.settings.name: item for item in items}
    lines = [_consequence(by_name[name], part, session.listed) for name, part in session.parts.items()]
    if not session.is_known:
        lines.append(
            "what else it holds is not known: no item has its name, or the token may not read the keys"
        )
    return lines or ["it holds nothing: a supervisor that still waits with it makes another one"]


def _consequence(item: Members, part: Part, listed: ListedSession) -> str:
    name = item.settings.name
    if part is Part.CANDIDATE:
        return f"{name}: it stands in line, and its supervisor has to begin again at the end"
    if part is Part.VANISHED:
        return f"{name}: .lock names it, but it has no contender key; its slot stays taken as it is"
    runs = "its supervisor runs on_lose at once"
    if item.lockout_s is not None:
        late = f"another supervisor may take it {item.lockout_s:g} s after the destroy (the prune delay), "
        return f"{name}: it has a slot; {runs}; {late}`consul lock -n` at once"
    delay_s = min(listed.lock_delay_s, LOCK_DELAY_MAX_S)
    waits = ", and acts once it hears that on_lose has ended, or once the wait by the tenure record is over"
    return (
        f"{name}: it holds {item.settings.key}; {runs}; "
        f"a rival may take it {delay_s:g} s after the destroy (the lock-delay){waits if item.is_long else ''}"
    )
