"""An SSLContext that follows its files.

A new connection uses the certificates that are on disk when it is opened, so that rotated certificates need
no restart. While the files cannot be used, the last good ones stay in use. Key material never leaves OpenSSL.
This module must never prompt a terminal for a passphrase.
"""

import os
import re
import ssl
from collections.abc import Callable, Iterator

from supervisor.adapters.filesystem.reading import Pulse
from supervisor.adapters.transport.failure import ExchangeFailed, FailureKind, tls_reason
from supervisor.core.settings import Tls

PULSE_S = 0.25  # how long the loop stands still, once, when a file system does not answer
CA_PATH_CHARS_MAX = 4 * 1024 * 1024  # of all files; Debian's /etc/ssl/certs has half a megabyte
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[\x00-\x7f]+?-----END CERTIFICATE-----")
Signature = tuple[tuple[int, int, int], ...]


class TlsContext:
    """The SSLContext of one set of TLS settings.

    Loading a CA bundle blocks for some milliseconds, at first and after each change of the files.
    """

    def __init__(self, tls: Tls, warn: Callable[[str], None] = lambda text: None) -> None:
        """Load nothing yet. ``warn``: called once for each new fault of files that were good before."""
        self._tls = tls
        self._warn = warn
        self._context: ssl.SSLContext | None = None
        self._signature: Signature = ()
        self._fault = ""
        paths = (path for path in (tls.ca_file, tls.ca_path, tls.cert_file, tls.key_file) if path is not None)
        self._pulses = {path: Pulse(path) for path in paths}

    def close(self) -> None:
        """End each check of a file system that is under way."""
        for pulse in self._pulses.values():
            pulse.close()

    def current(self) -> ssl.SSLContext:
        """Return the context of the files as they are now, or of the last good ones.

        Raises ExchangeFailed, which names the setting and the unusable file, when no files were good yet.
        """
        try:
            signature = self._files_signature()
            if self._context is None or signature != self._signature:
                self._signature = signature  # also of bad files, so that not each connection loads them
                self._context = _context_of(self._tls)
                self._fault = ""
        except ExchangeFailed as failure:
            if self._context is None:
                raise
            if str(failure) != self._fault:
                self._fault = str(failure)
                self._warn(f"{failure}; the last good ones stay in use")
        return self._context

    def _files_signature(self) -> Signature:
        found = []
        for setting in ("ca_file", "ca_path", "cert_file", "key_file"):
            path = getattr(self._tls, setting)
            if path is not None:
                try:
                    self._pulses[path].check(PULSE_S)
                    stat = os.stat(path)
                except OSError as exc:
                    raise _unusable(setting, path, exc) from exc
                found.append((stat.st_ino, stat.st_ctime_ns, stat.st_size))
        return tuple(found)


def _context_of(tls: Tls) -> ssl.SSLContext:
    authorities = None if tls.ca_path is None else _authorities_in(tls.ca_path)
    try:
        context = ssl.create_default_context(cafile=tls.ca_file, cadata=authorities)
    except OSError as exc:
        if tls.ca_path is not None:
            raise _no_authorities(tls.ca_path, "a certificate in it cannot be read") from exc
        raise _unusable("ca_file", tls.ca_file or "the system's", exc) from exc
    # Consul's own client, written in Go, verifies like this. Python's defaults differ from 3.13 on.
    context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_file is not None:
        _load_certificate(context, tls.cert_file, tls.key_file)
    return context


def _authorities_in(folder: str) -> str:
    """Return the certificates of all files below the folder, as Consul's command line reads CONSUL_CAPATH.

    Each file must contain certificates in PEM, under any name. Raises ExchangeFailed (tls).
    """
    found: list[str] = []
    try:
        for path in _files_below(folder):
            with open(path, encoding="latin-1") as file:
                text = file.read(CA_PATH_CHARS_MAX)
            certificates = _CERTIFICATE.findall(text)
            if not certificates:
                raise _no_authorities(path, "it has no certificate in PEM")
            found += certificates
            if sum(map(len, found)) >= CA_PATH_CHARS_MAX:
                raise _no_authorities(folder, f"it holds {CA_PATH_CHARS_MAX} bytes or more")
    except OSError as exc:
        raise _no_authorities(exc.filename or folder, (exc.strerror or str(exc)).lower()) from exc
    if not found:
        raise _no_authorities(folder, "it has no file")
    return "\n".join(found)


def _files_below(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders.sort()
        yield from (os.path.join(parent, name) for name in sorted(names))


def _no_authorities(path: str, why: str) -> ExchangeFailed:
    return ExchangeFailed(FailureKind.TLS, f"cannot use CONSUL_CAPATH, {path}: {why}")


def _load_certificate(context: ssl.SSLContext, cert_file: str, key_file: str | None) -> None:
    for setting, path in (("cert_file", cert_file), ("key_file", key_file or cert_file)):
        try:
            open(path, "rb").close()  # because OpenSSL would not name the file that it cannot read
        except OSError as exc:
            raise _unusable(setting, path, exc) from exc
    is_locked = False

    def passphrase() -> str:
        nonlocal is_locked  # because OpenSSL would prompt a terminal, and its error does not name the reason
        is_locked = True
        return ""

    try:
        context.load_cert_chain(cert_file, key_file, password=passphrase)
    except OSError as exc:
        if is_locked:
            locked = key_file or cert_file
            why = f"cannot use key_file {locked}: it has a passphrase, and nobody is there to enter it"
            remedy = f"take it off with openssl pkey -in {locked} -out NEW, and let the mode guard the file"
            raise ExchangeFailed(FailureKind.TLS, f"{why}; {remedy}") from exc
        files = f"{cert_file}, {key_file or cert_file}"
        raise _unusable("cert_file and key_file", files, exc) from exc


def _unusable(setting: str, path: str, exc: OSError) -> ExchangeFailed:
    if isinstance(exc, ssl.SSLError):
        why = tls_reason(exc) if exc.reason else "one of them holds no PEM of its kind"
        if exc.reason == "NO_CERTIFICATE_OR_CRL_FOUND":
            remedy = f"openssl x509 -inform DER -in {path} -out NEW"
            why = f"it has no certificate in PEM; if it is in DER: {remedy}"
    else:
        why = (exc.strerror or str(exc)).lower()
    named = "CONSUL_CAPATH," if setting == "ca_path" else setting
    return ExchangeFailed(FailureKind.TLS, f"cannot use {named} {path}: {why}")
