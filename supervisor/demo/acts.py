"""The two acts: what the supervisors' files say in each, and in which words their hooks' news are told.

Times are short, so that they can be watched: a leader that crashed is followed after at most
2 x ttl + lock_delay = 6 s. Real ones are longer. Pure text; nothing is started here.
"""

import json
from dataclasses import dataclass

LINE_BYTES_MAX = 4096  # a hook's line; it is one write, which a FIFO keeps in one piece

_ELECTION = """\
consul: {{address: "{agent}"}}
elections:
  demo:
    session: {{ttl: 1s, lock_delay: 4s}}
    on_change:
      - {{shell: '{tell}'}}
      - {{webhook: "{webhook}"}}
"""
_SEMAPHORE = """\
consul: {{address: "{agent}"}}
semaphores:
  rebuild:
    limit: 2
    session: {{ttl: 1s}}
    prune_delay: 4s
    on_change:
      - {{shell: '{tell}'}}
"""
_BOTH = """\
    value: "{node}"
    on_acquire:
      - {{shell: '{tell}', kill_after: 100ms}}
    on_lose:
      - {{shell: '{tell}', timeout: 500ms, kill_after: 100ms}}
"""
_TELL = (
    'echo "{node}|$CONSUL_SUPERVISOR_EVENT|$CONSUL_SUPERVISOR_REASON|$CONSUL_SUPERVISOR_FENCING_TOKEN'
    '|$CONSUL_SUPERVISOR_LEADER|$CONSUL_SUPERVISOR_HOLDERS" >"$DEMO_FIFO"'
)


@dataclass(frozen=True, slots=True)
class Act:
    """``template``: of the file. The words: what one says that may, what it stops and gives back, and
    what is said of one or of several that do it."""

    template: str
    may: str
    stops: str
    gives_back: str
    does: tuple[str, str]

    def file(self, node: str, *, agent: str, webhook: str) -> str:
        """The configuration of a node."""
        tell = _TELL.format(node=node)
        return self.template.format(agent=agent, node=node, tell=tell, webhook=webhook)

    def told_of(self, holders: frozenset[str]) -> str:
        """Who leads, or rebuilds."""
        who = " and ".join(sorted(holders)) or "nobody"
        return f"{who} {self.does[len(holders) > 1]}"


ELECTION = Act(_ELECTION + _BOTH, "I lead", "leading", "the key is released", ("leads", "lead"))
SEMAPHORE = Act(
    _SEMAPHORE + _BOTH, "I may rebuild", "rebuilding", "the slot is given back", ("rebuilds", "rebuild")
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a hook was told. ``holders``: who leads, or has a slot."""

    node: str
    event: str
    reason: str
    token: str
    holders: frozenset[str]


def told(line: str) -> Told:
    """A hook's line, taken apart."""
    node, event, reason, token, leader, holders = line.split("|", 5)
    names = {each["value"]["Value"] for each in json.loads(holders)} if holders else {leader} - {""}
    return Told(node, event, reason, token, frozenset(names))
