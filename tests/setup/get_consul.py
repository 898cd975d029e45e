#!/usr/bin/env python3
"""Give the tests a Consul of version 1.8 or later: link ``.cache/consul/consul`` to it, and print the link.

A Consul on PATH is used if there is one. Otherwise the program takes Debian's package of the suite *bullseye*
from a Debian mirror that this machine's own apt sources name, checks it against the digest below and unpacks
it under ``.cache``. The program runs before the venv exists, so it uses the standard library only. It never
installs anything, contains no address of a mirror, and never lets the tests run without a Consul.
"""

import hashlib
import http.client
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

VERSION_MIN = (1, 8)
PACKAGE_VERSION = "1.8.7+dfsg1-2+b3"
PACKAGE_BYTES_MAX = 32 * 2**20  # the packages have 14 MB
SILENCE_S = 30.0  # seconds without a byte until a mirror counts as not answering
DOWNLOAD_S = 300.0  # 14 MB at 50 kB/s
VERSION_S = 20.0  # `consul version` on a loaded machine; it takes 30 ms on an idle one

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "consul"
LINK = CACHE / "consul"

APT = "/usr/bin/apt-get"
INSTALL = "install Consul 1.8 or newer so that `consul` is on PATH"


class Package(NamedTuple):
    """A package of the suite: its place on a mirror, and the digest of its bytes."""

    path: str
    sha256: str


PACKAGES = {
    "x86_64": Package(
        f"pool/main/c/consul/consul_{PACKAGE_VERSION}_amd64.deb",
        "e4e888bba104daba1d9161f49bfc52649a7e4efd45b1a7ead5bc54f2cb9c89d9",
    ),
    "aarch64": Package(
        f"pool/main/c/consul/consul_{PACKAGE_VERSION}_arm64.deb",
        "7318cfa77a7ba6f71dd096e44353279de246ffc6561216ace42353685dcf8255",
    ),
}


class CannotGet(Exception):
    """A sentence for the person at the terminal that names the obstacle."""


def main() -> int:
    """Print the path of a usable Consul, or one sentence on stderr and 1; argv[1]: apt's folder."""
    apt = Path(*sys.argv[1:2] or ["/etc/apt"])
    try:
        binary = on_path() or cached() or fetched(apt)
        link_to(binary)
    except (CannotGet, OSError, subprocess.CalledProcessError) as error:
        print(f"cannot get Consul for the tests: {error}", file=sys.stderr)
        return 1
    print(LINK)
    return 0


def on_path() -> Path | None:
    """Return the first `consul` of PATH that is new enough and runs."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        candidate = Path(folder, "consul")
        if folder and os.access(candidate, os.X_OK) and usable(candidate):
            return candidate.absolute()
    return None


def cached() -> Path | None:
    """Return the Consul that an earlier run has unpacked."""
    binary = unpacked_path()
    return binary if binary.exists() and usable(binary) else None


def fetched(apt: Path) -> Path:
    """Download, check and unpack Debian's package; other runs may do so at the same time."""
    package = PACKAGES.get(platform.machine())
    if package is None:
        raise CannotGet(f"none on PATH, and no package is known for {platform.machine()}; {INSTALL}")
    data = download(package, mirrors(apt))
    binary = unpacked_path()
    binary.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=binary.parent) as folder:
        unpack(data, Path(folder)).replace(binary)
    if not usable(binary):
        raise CannotGet(f"the binary of Debian's package does not run here; {INSTALL}")
    return binary


def unpacked_path() -> Path:
    return CACHE / PACKAGE_VERSION / "consul"


def usable(binary: Path) -> bool:
    """Return whether the program reports that it is a Consul of at least VERSION_MIN."""
    try:
        said = subprocess.run(
            [binary, "version"], check=False, capture_output=True, text=True, timeout=VERSION_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.match(r"Consul v(\d+)\.(\d+)", said.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= VERSION_MIN


def link_to(binary: Path) -> None:
    """Point LINK at the binary in one step, so that running tests always find it."""
    CACHE.mkdir(parents=True, exist_ok=True)
    if LINK.is_symlink() and os.readlink(LINK) == str(binary):
        return
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        new = Path(folder, "consul")
        new.symlink_to(binary)
        new.replace(LINK)


# --- the mirrors of apt ----------------------------------------------------------------------------


def mirrors(apt: Path) -> list[str]:
    """Return the addresses from which apt takes packages of a component `main`, in apt's order.

    Another distribution's mirror may be among them: it answers 404, and the digest decides.
    """
    argv = [APT, "update", "--print-uris", "-o", f"Dir::Etc={apt}"]
    try:
        told = subprocess.run(argv, check=False, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return []
    entries = re.findall(r"^'(\S+)/dists/\S+/main/binary-", told, re.MULTILINE)
    return list(dict.fromkeys(address for entry in entries for address in expanded(entry)))


def expanded(address: str) -> Iterator[str]:
    """Yield the address, or for `mirror+file:` (Debian's cloud images) those of the file it names."""
    if address.startswith(("http:", "https:", "file:")):
        yield address.rstrip("/")
    elif address.startswith("mirror+file:"):
        listed = Path(urlsplit(address).path)
        if listed.is_file():
            for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.strip() and not line.startswith("#"):
                    yield from expanded(line.split()[0])


# --- the package ------------------------------------------------------------------------------------


def download(package: Package, addresses: list[str]) -> bytes:
    """Return the package's bytes from the first mirror that has them; report every failure."""
    if not addresses:
        raise CannotGet(
            f"none on PATH, and this machine's apt sources name no mirror to take it from; {INSTALL}"
        )
    failures = []
    for address in addresses:
        try:
            data = read(f"{address}/{package.path}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            failures.append(f"{address}: {error}")
            continue
        if hashlib.sha256(data).hexdigest() == package.sha256:
            return data
        failures.append(f"{address}: the package's bytes have another sha256 than Debian's")
    told = "; ".join(failures)
    raise CannotGet(
        f"none on PATH, and no mirror in this machine's apt sources gave Debian's package ({told}); {INSTALL}"
    )


def read(url: str) -> bytes:
    """Read the body, within DOWNLOAD_S and PACKAGE_BYTES_MAX; proxies are those of the environment."""
    give_up_at = time.monotonic() + DOWNLOAD_S
    parts = []
    size = 0
    with urllib.request.urlopen(url, timeout=SILENCE_S) as response:
        while part := response.read(2**16):
            size += len(part)
            if size > PACKAGE_BYTES_MAX:
                raise ValueError(f"more than {PACKAGE_BYTES_MAX} bytes")
            if time.monotonic() > give_up_at:
                raise TimeoutError(f"not done after {DOWNLOAD_S:.0f} s")
            parts.append(part)
    return b"".join(parts)


def unpack(data: bytes, folder: Path) -> Path:
    """Unpack the package in the folder, and return its binary."""
    (folder / "consul.deb").write_bytes(data)
    subprocess.run(["dpkg-deb", "--extract", "consul.deb", "."], cwd=folder, check=True)
    return folder / "usr" / "bin" / "consul"


if __name__ == "__main__":
    sys.exit(main())
