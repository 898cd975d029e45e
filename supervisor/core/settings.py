"""The settings of the file, as frozen values with every default filled in.

Outside tests, the loader (``supervisor.config``) alone makes these values. It has refused every setting that
cannot work, so the core trusts them. Nothing here reads a file, the environment or a clock. Fields that may
carry a secret are kept out of ``repr``.
"""

from dataclasses import field
from typing import ClassVar, Literal

from supervisor.core.frozen import dataclass

LOCK_SUFFIX = "/.lock"  # as in Consul's guide to semaphores, and in its own clients
HOOK_EVENTS = {  # each list of hooks, and the event of its hooks
    "on_acquire": "acquire",
    "on_lose": "lose",
    "on_change": "change",
    "on_lose_failure": "lose-failure",
}


@dataclass(frozen=True, slots=True)
class Command:
    """A child process; a hook's ``shell`` text has become ``("/bin/sh", "-c", text)``."""

    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cwd: str | None = None
    user: str | None = None
    group: str | None = None
    kill_after_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Tls:
    """The verification of a peer, and the identity of this node: paths, and never key material."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    server_name: str | None = None
    verify: bool = True
    ca_path: str | None = None  # a folder of authorities, used where ``ca_file`` names none


@dataclass(frozen=True, slots=True)
class Webhook:
    """An HTTP request that reports an event."""

    url: str = field(repr=False)
    method: str = "POST"
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    body: str | None = field(default=None, repr=False)  # the text that is sent. None: the event as JSON
    secret_file: str | None = None
    tls: Tls = Tls()


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook and its limits."""

    name: str  # unique in its item, such as ``on_lose[0]``
    call: Command | Webhook
    timeout_s: float
    retries: int = 0
    retry_delay_s: float = 1.0

    @property
    def kill_after_s(self) -> float:
        """The time between TERM and KILL; 0 for a webhook, which is dropped at once."""
        return self.call.kill_after_s if isinstance(self.call, Command) else 0.0

    @property
    def attempt_s(self) -> float:
        """The longest time that one attempt can take, including the kill."""
        return self.timeout_s + self.kill_after_s


@dataclass(frozen=True, slots=True)
class Run:
    """The child that lives while this node leads."""

    command: Command
    stop_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class CandidateCheck:
    """The check that shows whether this node is fit to lead, begun every ``interval_s``.

    ``rise`` successes of the command in a row make the node fit, ``fall`` failures in a row unfit.
    """

    hook: Hook | None  # the command. None: there is none, and the maintenance mode alone decides
    interval_s: float = 5.0
    rise: int = 2
    fall: int = 3
    maintenance: bool = False  # whether Consul's maintenance mode makes this node unfit


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """A Consul session as this node requests it."""

    name: str
    ttl_s: float | None = 10.0  # None: the session has no TTL
    lock_delay_s: float = 30.0
    behavior: Literal["release", "delete"] = "release"
    node_checks: tuple[str, ...] = ()
    service_checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The instance of a service that names this node in Consul while it holds."""

    id: str  # the instance's id at the local agent, unique for each node and item
    name: str
    port: int = 0
    address: str = ""  # the address that Consul names. Blank: that of the agent's node
    tags: tuple[str, ...] = ()
    meta: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The device that resets this machine when the supervisor does not feed it."""

    device: str
    timeout_s: float = 10.0  # from the newest feed to the reset
    required: bool = True  # without the device this node does not contend


@dataclass(frozen=True, slots=True)
class FenceLimit:
    """How many machines a node may shoot."""

    machines: int  # different ones
    within_s: float


@dataclass(frozen=True, slots=True)
class Fence:
    """How the machine of a holder that vanished is switched off, and who may be sure of that."""

    hook: Hook  # ends well once the machine is off; tried again until the guard ends
    target: str | None = None  # how the other nodes are to name this machine to it. None: as Consul's node
    after_s: float = 2.0  # leaves a former holder that lives the time to say that it is stopping
    exclusive: bool = False  # only supervisors that keep tenure records contend for the key
    required: bool = False  # True: this node never acts because time has passed
    outage_s: float | None = None  # the silence of Consul that a holder surely rides out. None: by lock_delay
    limit: FenceLimit | None = None  # of the file. None: any number
    notes: str = ""  # the key at which the daemons of the fleet tell of their shots. Blank: they do not
    others: tuple[Hook, ...] = ()  # tried in turn where the one before has failed

    @property
    def methods(self) -> tuple[Hook, ...]:
        return (self.hook, *self.others)

    @property
    def asks(self) -> bool:
        """Whether a run has to be granted."""
        return self.limit is not None or self.notes != ""


@dataclass(frozen=True, slots=True)
class ItemSettings:
    """The settings of one item of the file that elections and semaphores share."""

    kind: ClassVar[str]  # the word for this kind of item
    lockout_name: ClassVar[str] = "lock_delay"  # the key of the file that sets ``lockout_s``
    name: str
    key: str
    value: bytes
    session: SessionSettings
    contend: bool = True
    manual: bool = False  # of an election: this node tries only on an operator's word
    on_acquire: tuple[Hook, ...] = ()
    on_lose: tuple[Hook, ...] = ()
    on_change: tuple[Hook, ...] = ()
    on_lose_failure: tuple[Hook, ...] = ()
    run: Run | None = None
    candidate_check: CandidateCheck | None = None
    acquire_failure: Literal["release", "keep"] = "release"
    rejoin_delay_s: float = 10.0
    on_adopt: Literal["none", "acquire"] = "none"
    accept_overlap: bool = False
    # How often a holder confirms its lock by a consistent read. The file has it beside the session's
    # settings, and Consul never sees it. None: as often as ttl and room require.
    confirm_every_s: float | None = None
    service: ServiceSettings | None = None
    watchdog: Watchdog | None = None
    fence: Fence | None = None  # of an election
    group: str = ""  # the items among which an election with a ``busy_delay`` spreads. Blank: all

    @property
    def lockout_s(self) -> float:
        """How long a holder that vanished keeps rivals out."""
        return self.session.lock_delay_s

    @property
    def outage_s(self) -> float | None:
        """How long Consul may be silent without a loss, by ``fence.outage``. None: the file does not say."""
        return None if self.fence is None else self.fence.outage_s

    @property
    def hooks(self) -> tuple[Hook, ...]:
        listed = (hook for name in HOOK_EVENTS for hook in self.hooks_of(name))
        check = () if self.check_hook is None else (self.check_hook,)
        return (*listed, *check, *self.fence_methods)

    @property
    def fence_methods(self) -> tuple[Hook, ...]:
        return () if self.fence is None else self.fence.methods

    def hooks_of(self, name: str) -> tuple[Hook, ...]:
        """Return the list of hooks of this name, which is one of HOOK_EVENTS."""
        hooks: tuple[Hook, ...] = getattr(self, name)
        return hooks

    @property
    def check_hook(self) -> Hook | None:
        """The command of candidate_check; None when there is none."""
        return None if self.candidate_check is None else self.candidate_check.hook


@dataclass(frozen=True, slots=True)
class ElectionSettings(ItemSettings):
    """One election of the file; the leader holds ``key``."""

    kind: ClassVar[str] = "election"
    acquire_delay_s: float = 0.0  # how long this node leaves a free key to other nodes
    busy_delay_s: float = 0.0  # how much longer for each other lock of the group that this node holds
    only_locks: bool = False  # a key with a value that was never locked is left alone, as ``lock`` does
    only_index: int | None = None  # the ModifyIndex of the one state of the key that is tried for. None: any


@dataclass(frozen=True, slots=True)
class SemaphoreSettings(ItemSettings):
    """One semaphore of the file: ``key`` is ``<prefix>/.lock``, ``value`` the body of our contender key."""

    kind: ClassVar[str] = "semaphore"
    lockout_name: ClassVar[str] = "prune_delay"
    limit: int = field(kw_only=True)  # required: by it a record is known as that of a semaphore
    prune_delay_s: float = 30.0

    @property
    def prefix(self) -> str:
        """The prefix of all keys of the semaphore, without the / at its end."""
        return self.key.removesuffix(LOCK_SUFFIX)

    @property
    def lockout_s(self) -> float:
        """The prune delay, because a slot has no lock-delay in Consul and the contenders wait instead."""
        return self.prune_delay_s


Settings = ElectionSettings | SemaphoreSettings


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs. Two boots of one machine differ in ``boot`` alone, but for the journal."""

    machine: str = ""  # machine-id and UUID of the hardware. Blank: not known
    host: str = ""
    boot: str = ""
    journal: str = ""  # the id of the journal that has all tenures of the process. Blank: not known

    def is_same_machine(self, here: "Place") -> bool:
        """Return whether both are one machine for certain. One that has no id is no other's."""
        return bool(self.machine) and self.machine == here.machine and self.host == here.host

    def is_same_boot(self, here: "Place") -> bool:
        return self.is_same_machine(here) and "" != self.boot == here.boot

    def is_over(self, here: "Place") -> bool:
        """Return whether nothing acts any more of a tenure there that the process here does not know.

        The machine has booted since, or such a tenure would be in the journal of the process here.
        """
        if self.is_same_boot(here):
            return "" != self.journal == here.journal
        return self.is_same_machine(here) and "" not in (self.boot, here.boot)


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Wanted:
    """An item of the file, and how this process takes part in it."""

    settings: ItemSettings
    spread: float  # in [0, 1), of this process's own, so that not all nodes of a fleet retry at one time
    # At which part of each interval, in [0, 1), a holder reads, where one query reads the keys of several
    # elections. None: the holder reads its key alone.
    read_offset: float | None = None
    delay_s: float = 0.0  # how long the first session waits, so that a thousand do not begin at once
    unchecked: bool = False  # whether its hooks can start here is not known yet: ``HooksChecked`` follows
    place: Place = NOWHERE  # where this process runs
    # Whether an order of an operator withholds the tries of all nodes. None: ``OrderSeen`` will tell.
    withheld: bool | None = False
