"""The agent, three supervisors with one item, and their tenures. Each ends with this process."""

import json
import os
import pickle
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from supervisor.config import Config, ConsulSettings, ControlSettings, LogSettings
from supervisor.config.formats import tenure_record
from supervisor.config.formats.slot_record import InvalidRecord, body, decoded
from supervisor.config.lease_checks import lease_on_record
from supervisor.config.places import PATH_BYTES_MAX
from supervisor.core.claim.record import TENURE_SUFFIX
from supervisor.core.lease import Lease
from supervisor.core.settings import ItemSettings, SemaphoreSettings
from supervisor.errors import NotPossible
from supervisor.rehearsal.devagent.agent import DevAgent
from supervisor.rehearsal.drill import NODES
from supervisor.rehearsal.drill.agents import NodeAgent, ask
from supervisor.rehearsal.drill.backstage import Supervisors
from supervisor.rehearsal.drill.promises import Judge, Line
from supervisor.rehearsal.drill.recorders import CHECK, FENCE, RecordedRun, Recorders
from supervisor.rehearsal.drill.tenures import OF_TENURE, ObservedTenure

STOP_S = 5.0  # for a supervisor to end, beyond the time that its hooks may take


class DrillCluster(Judge):
    """The agent, the supervisors and the tenures of one item. The caller must close it."""

    def __init__(
        self,
        folder: Path,
        item: ItemSettings,
        configs: Mapping[str, Config],
        *,
        real: bool,
        environ: Mapping[str, str],
    ) -> None:
        """Prepare a stage in an empty folder, for the item as the drill runs it."""
        self._folder, self.item, self._configs, self._real = folder, item, configs, real
        if real:
            folder.chmod(0o711)  # so that hooks of other users reach their recorders
        self._supervisors = Supervisors(folder, environ)
        self.agent = DevAgent()
        self._recorders = Recorders(folder, self._hook_began, self._hook_ended)
        self.cue, self.clear = self._recorders.cue, self._recorders.clear
        self.agents = {node: NodeAgent(self.agent, node, self._on_answer) for node in NODES}
        self._crashed: set[str] = set()
        self._node_of: dict[str, str] = {}
        self.renewed: dict[str, float] = {}  # when each session was last renewed
        self.answered: dict[
            str, float
        ] = {}  # when each node, since its start, got its last answer from Consul
        self.tenures: list[ObservedTenure] = []
        self.checks: list[RecordedRun] = []  # the attempts of candidate_check
        self.changes: list[RecordedRun] = []  # the attempts of on_change
        self.begin()

    def begin(self) -> None:
        """Begin a play: time line and counts start from here."""
        self.began_at = time.monotonic()
        self.lines: list[Line] = []
        super().__init__()  # no promise is judged yet
        self.guard: ObservedTenure | None = None  # the first that had to wait
        self.fences: list[RecordedRun] = []  # the attempts of fence
        self.disorder: list[str] = []  # the nodes that released before on_lose had ended
        self.most = 0  # how many nodes acted at once at most
        self._count()

    async def open(self) -> None:
        """Let the nodes join, and write the configuration of each. Raises NotPossible."""
        for node, agent in self.agents.items():
            self.agent.model.join(node, time.monotonic())
            await agent.open()
            socket = self.socket(node)
            if len(os.fsencode(socket)) > PATH_BYTES_MAX:
                raise NotPossible(f"cannot make a socket in {self._folder}: set TMPDIR to a shorter path")
            config = replace(
                self._configs[node],
                consul=ConsulSettings(agent.url),
                log=LogSettings("info", "json"),
                items=(self._recorders.recorded(self._own(node), node, real=self._real),),
                state_dir=str(self._folder / f"{node}.state"),
                control=ControlSettings(str(socket), configured=True),
                http=None,
                warnings=(),
                positions=None,
            )
            path = self._folder / f"{node}.config"
            path.touch(0o600)
            path.write_bytes(pickle.dumps(config))

    def _own(self, node: str) -> ItemSettings:
        (own,) = (item for item in self._configs[node].items if item.name == self.item.name)
        session = replace(self.item.session, name=own.session.name)
        value = own.value
        if isinstance(self.item, SemaphoreSettings):
            value = body(json.loads(value), self.item.prune_delay_s)
        return replace(self.item, value=value, session=session)

    def socket(self, node: str) -> Path:
        return self._folder / f"{node}.sock"

    async def close(self) -> None:
        """End everything that was started: in order where that is possible, else by force.

        Where real hooks run, a supervisor that was killed comes back first, so that its on_lose runs.
        """
        try:
            for node in sorted(self._crashed if self._real else ()):
                self.start(node)
            self._recorders.clear("on_acquire[0]")
            self._recorders.clear("on_lose[0]")
            self._recorders.clear(FENCE)
            for agent in self.agents.values():
                agent.thaw()
            await self._supervisors.stop_all(self.stop_s)
        finally:
            self._supervisors.close()
            self._recorders.close()
            for agent in self.agents.values():
                await agent.close()
            await self.agent.close()

    @property
    def stop_s(self) -> float:
        return STOP_S + self.lease.lose_time_s

    @property
    def lease(self) -> Lease:
        """The lease of the item, by the code whose figures ``check`` prints."""
        return lease_on_record(self.item)

    @property
    def limit(self) -> int:
        return self.item.limit if isinstance(self.item, SemaphoreSettings) else 1

    @property
    def running(self) -> tuple[str, ...]:
        return self._supervisors.running

    def start(self, node: str) -> None:
        """Start the supervisor of a node. A tenure that Consul still shows may be adopted."""
        self._crashed.discard(node)
        self.answered.pop(node, None)
        for tenure in self.tenures:
            if tenure.node == node and tenure.is_held and tenure.session in self.sessions:
                tenure.is_dead = False
        config = str(self._folder / f"{node}.config")
        self._supervisors.start(node, "supervisor.rehearsal.drill.node", config, node)
        self.mark(node, "its supervisor starts")

    async def stop(self, node: str) -> int:
        self.mark(node, "is stopped with TERM")
        return await self._supervisors.stop(node, self.stop_s)

    def kill(self, node: str, *, with_hooks: bool) -> None:
        """End a supervisor as a crash does. ``with_hooks``: as a crash of the machine does."""
        for tenure in self.tenures:
            tenure.is_dead = tenure.is_dead or tenure.node == node
        self._crashed.add(node)
        self._supervisors.kill(node)
        if with_hooks:
            self._recorders.kill_all(node)

    def command(self, *arguments: str, node: str) -> subprocess.Popen[bytes]:
        self.mark(node, f"`consul-supervisor {' '.join(arguments)}`")
        return self._supervisors.command(node, [*arguments, "--socket", str(self.socket(node))])

    @property
    def sessions(self) -> dict[str, str]:
        return {session.id: session.node for session in self.agent.model.store.sessions.sorted()}

    async def destroy(self, session: str) -> None:
        await ask(self.agent, "PUT", f"/v1/session/destroy/{session}")
        self.look()

    def _holders(self) -> set[str]:
        entry = self.agent.model.store.kv.get(self.item.key)
        if entry is None:
            return set()
        if not isinstance(self.item, SemaphoreSettings):
            return {entry.session} - {""}
        try:
            return set(decoded(entry.value).holders)
        except InvalidRecord:
            return set()

    def _on_answer(self, node: str, method: str, target: str) -> None:
        """Note an answer to a request of a node's supervisor."""
        now = self.answered[node] = time.monotonic()
        _, is_renewal, session = target.partition("/v1/session/renew/")
        if is_renewal:
            self.renewed[session.partition("?")[0]] = now
        self.look(written_by=node if method == "PUT" else "")

    def look(self, written_by: str = "") -> None:
        """Compare the holders in Consul with those of the last time.

        written_by: the node whose write Consul has just carried out. Blank: none.
        """
        self._node_of |= self.sessions
        holders, now = self._holders(), time.monotonic()
        for tenure in self.tenures:
            if tenure.is_held and tenure.session not in holders:
                self._recorders.drain()
                tenure.freed_at = now
                released = tenure.node == written_by and tenure.session in self.sessions
                unfinished = tenure.is_running or (tenure.has_begun and not tenure.has_lost)
                if released and unfinished and not tenure.is_dead:
                    self.disorder.append(tenure.node)
                self.mark(tenure.node, "has released" if released else "is no longer holder in Consul")
        known = {tenure.session for tenure in self.tenures}
        for session in sorted(holders - known):
            if (node := self._node_of.get(session, "")) not in NODES:
                continue
            if not self._guards(session):
                self.tenures.append(ObservedTenure(self.item, node, session, now))
                self.mark(node, "is holder in Consul")
                self._count()
            elif self.guard is None:
                self.guard = ObservedTenure(self.item, node, session, now)
                self.mark(node, "has the key in Consul, and waits for the former holder's end")

    def _guards(self, session: str) -> bool:
        """Return whether this holder still waits for a former one, which the tenure record names."""
        if self.item.fence is None:
            return False
        entry = self.agent.model.store.kv.get(self.item.key + TENURE_SUFFIX)
        return entry is None or tenure_record.decoded(entry.value, 0).session != session

    def mark(self, node: str, text: str) -> None:
        self.lines.append(Line(time.monotonic() - self.began_at, node, text))

    @property
    def holding(self) -> list[ObservedTenure]:
        return [tenure for tenure in self.tenures if tenure.holds and tenure.session in self.sessions]

    @property
    def candidates(self) -> list[str]:
        """The running nodes that have a session and no tenure."""
        busy = {tenure.session for tenure in self.tenures}
        return [
            node for session, node in self.sessions.items() if session not in busy and node in self.running
        ]

    def since(self, at: float) -> list[ObservedTenure]:
        return [tenure for tenure in self.tenures if tenure.since > at]

    def _count(self) -> None:
        self.most = max(self.most, len({tenure.node for tenure in self.tenures if tenure.acts}))

    def _hook_began(self, attempt: RecordedRun) -> None:
        if attempt.list not in (*OF_TENURE, FENCE):
            (self.checks if attempt.place == CHECK else self.changes).append(attempt)
            return
        own = [tenure for tenure in self.tenures if tenure.node == attempt.node]
        if attempt.place == FENCE:
            self.fences.append(attempt)
        elif own:
            own[-1].attempts.append(attempt)
        self.mark(attempt.node, f"{_title(attempt)} begins{_why(attempt)}")
        self._count()

    def _hook_ended(self, attempt: RecordedRun) -> None:
        if attempt.list in (*OF_TENURE, FENCE):
            self.mark(attempt.node, f"{_title(attempt)}: {attempt.ending}")

    def why_none(self) -> str:
        """Return why a node does not hold, as far as is known: its last hook that failed."""
        reasons = []
        for node in NODES:
            own = [one for tenure in self.tenures if tenure.node == node for one in tenure.attempts]
            checks = [one for one in self.checks if one.node == node]
            failed = [one for one in (*checks, *own) if one.has_failed]
            reasons += [f"{_title(one)} of {node}: {one.ending}" for one in failed[-1:]]
        return "; ".join(reasons)

    def last_problem(self, node: str) -> str:
        for line in reversed(self._supervisors.log(node)):
            try:
                found = json.loads(line)
            except ValueError:
                return line
            if found.get("level") in ("warning", "error"):
                return f"{found.get('event')} {found.get('why', '')}".strip()
        return ""


def _title(attempt: RecordedRun) -> str:
    return attempt.place if attempt.name == attempt.place else f"{attempt.place} {attempt.name}"


def _why(attempt: RecordedRun) -> str:
    return f" ({attempt.reason})" if attempt.list in ("on_lose", FENCE) and attempt.reason != "-" else ""
