"""A name's addresses, looked up by a child that can be killed.

``getaddrinfo`` blocks a thread until the name servers answer. So a child runs ``getent ahosts NAME``, which
returns the addresses that getaddrinfo would return (hosts file, DNS, as set in nsswitch.conf). This module
must never call getaddrinfo for a name.
"""

import asyncio
import os
import resource
import signal
import socket
from contextlib import suppress
from functools import partial
from typing import Any

from supervisor.adapters.filesystem.children import Child, spawn
from supervisor.adapters.filesystem.mounts import program_of
from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind, os_reason

Address = tuple[int, tuple[Any, ...]]  # the family, and the argument of connect()

ANSWER_FRESH_S = 10.0  # saves a child of 1.6 ms for each renewal, and still notices a moved name soon
ANSWER_REST_S = 1.0  # after a failure, so that not each retry starts a child
STALE_PATIENCE_S = 0.3  # while an old answer is known, because the shortest exchange has 1 s in all
LOOK_UP_S = 20.0  # the resolver's own limit with two dead servers (resolv.conf: 5 s, 2 attempts)
CLOSE_S = 1.0  # for a killed child to end, which takes less than 1 ms
ADDRESSES_MAX = 8  # because one deadline leaves no time to try more
ANSWER_BYTES_MAX = 65536  # of getent, which writes into memory: the kernel ends one that writes more
GETENT_ENVIRONMENT = ("PATH", "LOCALDOMAIN", "RES_OPTIONS", "HOSTALIASES")  # gives the child no secret


def _spawn_bounded(argv: list[str], environment: dict[str, str], out: int, err: int) -> int:
    pid = spawn(argv, environment, out, err)
    with suppress(OSError):  # it has ended
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (ANSWER_BYTES_MAX, ANSWER_BYTES_MAX))
    return pid


def literal_addresses(host: str, port: int) -> tuple[Address, ...]:
    """Return the address that ``host`` is, without a look-up. Empty: ``host`` is a name."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    try:
        found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=flags)
    except socket.gaierror:
        return ()
    return tuple((family, sockaddr) for family, _, _, _, sockaddr in found)


class Resolver:
    """The addresses of one host, with at most one look-up at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._known = literal_addresses(host, port)
        self._fresh_until = float("inf") if self._known else 0.0  # loop time
        self._failure: ExchangeFailed | None = None
        self._look_up: asyncio.Task[None] | None = None

    async def addresses(self) -> tuple[Address, ...]:
        """Return one address or more, the best first. After a slow or failed look-up: the last good ones.

        Raises ExchangeFailed (resolve) if no look-up has succeeded yet.
        """
        loop = asyncio.get_running_loop()
        if loop.time() >= self._fresh_until:
            if self._look_up is None:
                self._look_up = loop.create_task(self._renew())
            await asyncio.wait([self._look_up], timeout=STALE_PATIENCE_S if self._known else None)
        if not self._known:
            assert self._failure is not None
            raise ExchangeFailed(self._failure.kind, str(self._failure))
        return self._known

    def doubt(self) -> None:
        """Look the name up again, at most once a second, because no address could be connected."""
        if self._fresh_until != float("inf"):
            rested = asyncio.get_running_loop().time() + ANSWER_REST_S
            self._fresh_until = min(self._fresh_until, rested)

    def prefer(self, address: Address) -> None:
        """Try this address first next time, because it could be connected."""
        if address != self._known[0] and address in self._known:
            self._known = (address, *(other for other in self._known if other != address))

    async def close(self) -> None:
        if self._look_up is not None:
            self._look_up.cancel()
            await asyncio.wait([self._look_up], timeout=CLOSE_S)

    async def _renew(self) -> None:
        try:
            found = self._parse(await self.getent())
            preferred = self._known[:1]
            self._known = found
            if preferred:
                self.prefer(preferred[0])
        except ExchangeFailed as failure:
            self._failure = failure
        finally:
            self._look_up = None
            # Also after a failure, because not each exchange may wait for a dead name server.
            fresh_s = ANSWER_FRESH_S if self._known else ANSWER_REST_S
            self._fresh_until = asyncio.get_running_loop().time() + fresh_s

    async def getent(self) -> bytes:
        """Return the lines of getent. The first one ends with the name's own form, mostly with its domain."""
        environment = {name: os.environ[name] for name in GETENT_ENVIRONMENT if name in os.environ}
        try:
            argv = [program_of("getent", environment.get("PATH", os.defpath)), "ahosts", self._host]
            child = Child(f"getent {self._host}", partial(_spawn_bounded, argv, environment))
        except OSError as exc:
            raise self._failed(f"cannot run getent: {os_reason(exc)}") from exc
        try:
            if not await child.comes_to_end(LOOK_UP_S):
                raise self._failed(f"no answer within {LOOK_UP_S:g} s")
            if (code := child.wait()) != 0:
                raise self._failed(f"the name is not known (getent exit {code})")
            return child.result()
        except BaseException:
            if not child.ended:
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
                await child.comes_to_end(CLOSE_S)
            raise
        finally:
            child.close()

    def _parse(self, answers: bytes) -> tuple[Address, ...]:
        found: dict[Address, None] = {}
        for line in answers.decode("ascii", "replace").splitlines():
            match line.split():
                case [host, "STREAM", *_]:
                    found.update(dict.fromkeys(literal_addresses(host, self._port)))
        if not found:
            raise self._failed("getent named no address")
        return tuple(found)[:ADDRESSES_MAX]

    def _failed(self, why: str) -> ExchangeFailed:
        return ExchangeFailed(FailureKind.RESOLVE, f"cannot look up {self._host}: {why}")
