"""The one table of Consul's versions, from which page and warning are made. Pure: text in, text out."""

import re

OLDEST = (1, 8)
# Versions, what is known of them, and what to do: blank where there is nothing to warn of.
TABLE = """\
| 1.8 to 1.14 | the tests hold with 1.8.7 and 1.10.12; published answers of the others are understood | |
| 1.15 and later | not tried with this program; an agent deregisters a service with its own token alone | \
rehearse a failover with it, and give that token `node_prefix "" { policy = "write" }` |
| 1.11.9, 1.12.1 | a quiet watch ends after 7 s (i/o deadline reached) | upgrade to 1.11.10, 1.12.2 or later |
| 1.21.5 | it refuses every key with others than letters, digits and ,_./-?&= | upgrade to 1.21.6 or later |
| 1.22.4 | it closes each request after 30 s, and was withdrawn | upgrade to 1.22.5 or later |
| 2.0.4 | the first write after 5 s of rest fails (rpc error making call: EOF), except at the leader. A node \
repeats its own at once; an agent tells once that a check has expired, so a frozen supervisor is named for \
65 to 74 s, in place of 7.4 s | use 2.0.3, or set `limits { rpc_handshake_timeout = "30s" }` in the servers |
"""
_NUMBERS = re.compile(r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?)")


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version such as ``1.21.5+ent``. Empty: the text begins with none."""
    found = _NUMBERS.match(version)
    return tuple(map(int, found[1].split("."))) if found else ()


def doubt(version: str) -> tuple[str, str]:
    """Return what is to be said against this version, and the remedies. Both blank: nothing is."""
    found, rows = numbers(version), [re.split(r" *\| *", row) for row in TABLE.splitlines()]
    exact = [row for row in rows if row[3] and found in map(numbers, row[1].split(", "))]
    later = [row for row in rows if row[3] and "later" in row[1] and found >= numbers(row[1])]
    return "; ".join(row[2] for row in later + exact), "; ".join(row[3] for row in later + exact)
