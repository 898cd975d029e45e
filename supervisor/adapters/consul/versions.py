"""Versions of Consul: those that the tests cover, and those with known faults. Pure: text in, text out."""

import re

OLDEST = (1, 8)
TRIED = "1.8.7"  # the version of the real Consul that the tests run
RECORDED = ((1, 9), (1, 11), (1, 12), (1, 13), (1, 14), (1, 15), (1, 21))  # the tests have their answers
_NO_WATCH = "on a client agent each quiet watch of a key ends after 7 s with an error (i/o deadline reached)"
BROKEN = {
    "1.11.9": (_NO_WATCH, "upgrade it to 1.11.10 or later"),
    "1.12.1": (_NO_WATCH, "upgrade it to 1.12.2 or later"),
    "1.21.5": (
        "it refuses every key whose name has other characters than letters, digits and ,_./-?&=",
        "upgrade it to 1.21.6 or later",
    ),
    "1.22.4": ("it closes each request after 30 s, and was withdrawn", "upgrade it to 1.22.5 or later"),
    "2.0.4": (
        "the first write after 5 s of rest fails (rpc error making call: EOF), except at the leader",
        'use 2.0.3, or set limits { rpc_handshake_timeout = "30s" } in the configuration of its servers',
    ),
}
_NUMBERS = re.compile(r"v?((\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?)")


def numbers(version: str) -> tuple[int, int] | None:
    """Return the first two numbers of a version such as ``1.21.5+ent``. None: the text begins with none."""
    found = _NUMBERS.match(version)
    return None if found is None else (int(found[2]), int(found[3]))


def doubt(version: str) -> tuple[str, str]:
    """Return the doubt about this version, and its remedy. Both blank: the tests cover the version."""
    found = _NUMBERS.match(version)
    if found is None:
        return "", ""
    if found[1] in BROKEN:
        fault, remedy = BROKEN[found[1]]
        return f"Consul {version} is known to be broken: {fault}", remedy
    if numbers(version) in (numbers(TRIED), *RECORDED):
        return "", ""
    text = f"this program was not tried with Consul {version}: its tests know {TRIED} and recorded answers"
    return text, "rehearse a failover with it before you rely on it"
