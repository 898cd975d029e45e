"""Why an exchange has no answer.

One error class covers each failure between a request and its answer. Its kind shows which side has to act.
Its text goes into logs, so it must never contain a header, a body, a URL's path or any other part of a
message, because those may be secret.
"""

import errno
import os
import re
import ssl
from enum import StrEnum

from supervisor.core.settings import Tls


class FailureKind(StrEnum):
    """The kind of a failure, as far as callers distinguish kinds."""

    LOCAL = "local"  # on our side: descriptors used up, no permission for the socket, an unsendable request
    RESOLVE = "resolve"  # the name has no address, or the look-up failed
    REFUSED = "refused"  # no program listens there, or there is no route
    TLS = "tls"  # one side does not trust the other, because of its configuration
    RESET = "reset"  # the peer closed or reset the connection before its answer was complete
    TIMEOUT = "timeout"  # the deadline came first
    PROTOCOL = "protocol"  # the answer is not HTTP/1.1
    TOO_LARGE = "too-large"  # the answer is larger than the limits, or than what arrives in its time


class ExchangeFailed(Exception):
    """An exchange without an answer. The peer may or may not have acted on the request.

    The text is one line with the action of this side, the peer and the reason.
    """

    def __init__(self, kind: FailureKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind


LOCAL_ERRNOS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EACCES, errno.EPERM})
NO_TLS = Tls()
EXPIRED, OTHER_NAME = 10, (62, 64)  # X509_V_ERR_: CERT_HAS_EXPIRED, HOSTNAME_ and IP_ADDRESS_MISMATCH
RESET_ERRNOS = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED, errno.ENOTCONN})


def connect_failure(peer: str, exc: OSError, tls: Tls) -> ExchangeFailed:
    """Return the failure for the error of a connect or of the TLS handshake after it."""
    if isinstance(exc, ssl.SSLError) and not is_tls_eof(exc):
        return ExchangeFailed(FailureKind.TLS, f"cannot reach {peer}: {tls_reason(exc, tls)}")
    if is_tls_eof(exc) or isinstance(exc, ConnectionResetError | ConnectionAbortedError):
        return ExchangeFailed(FailureKind.RESET, f"cannot reach {peer}: it closed the connection at once")
    if isinstance(exc, TimeoutError):
        return ExchangeFailed(FailureKind.TIMEOUT, f"cannot reach {peer}: no answer to connect")
    kind = FailureKind.LOCAL if exc.errno in LOCAL_ERRNOS else FailureKind.REFUSED
    return ExchangeFailed(kind, f"cannot reach {peer}: {os_reason(exc)}")


def lost_failure(peer: str, exc: Exception | None, has_received: bool, tls: Tls) -> ExchangeFailed:
    """Return the failure of an exchange whose connection was lost. ``exc`` None: the peer closed it."""
    if isinstance(exc, ssl.SSLError) and not is_tls_eof(exc):
        return ExchangeFailed(FailureKind.TLS, f"no answer from {peer}: {tls_reason(exc, tls)}")
    when = "in the middle of its answer" if has_received else "before it answered"
    if isinstance(exc, TimeoutError):
        return ExchangeFailed(FailureKind.TIMEOUT, f"{peer} stopped receiving {when}")
    if isinstance(exc, OSError) and exc.errno not in RESET_ERRNOS and not is_tls_eof(exc):
        return ExchangeFailed(
            FailureKind.RESET, f"the connection to {peer} was lost {when}: {os_reason(exc)}"
        )
    verb = "closed" if exc is None or is_tls_eof(exc) else "reset"
    return ExchangeFailed(FailureKind.RESET, f"{peer} {verb} the connection {when}")


def is_tls_eof(exc: BaseException) -> bool:
    """Return whether this TLS error only means that the peer closed the connection."""
    return isinstance(exc, ssl.SSLEOFError | ssl.SSLZeroReturnError)


def os_reason(exc: OSError) -> str:
    """Return the system's text of the error, without the addresses that asyncio adds."""
    return os.strerror(exc.errno).lower() if exc.errno else str(exc)


def tls_reason(exc: ssl.SSLError, tls: Tls = NO_TLS) -> str:
    """Return OpenSSL's text of the error, with a remedy when the error suggests one."""
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"TLS: its certificate is not trusted: {exc.verify_message}; {_trust_remedy(exc, tls)}"
    words = (exc.reason or "handshake failed").lower().replace("_", " ")
    if "wrong version" in words or "http request" in words:
        return f"TLS: {words}: it does not speak TLS there (http:// instead of https://?)"
    if "alert" in words:
        return f"TLS: it refused the handshake: {words}; {_alert_remedy(tls)}"
    return f"TLS: {words}"


def _trust_remedy(exc: ssl.SSLCertVerificationError, tls: Tls) -> str:
    if exc.verify_code in OTHER_NAME:
        asked = "" if tls.server_name is None else f" instead of {tls.server_name}"
        return f"set server_name to a name that it bears{asked}"
    if exc.verify_code == EXPIRED:
        return "renew it on that side"
    if tls.ca_path is not None:
        return f"a file in {tls.ca_path} (CONSUL_CAPATH) must have the authority that has signed it"
    if tls.ca_file is None:
        return "set ca_file to the authority that has signed it, because the system does not know it"
    return f"ca_file {tls.ca_file} must have the authority that has signed it"


def _alert_remedy(tls: Tls) -> str:
    if tls.cert_file is None:
        return "it may want a client certificate: set cert_file and key_file"
    return f"cert_file {tls.cert_file} may have expired, or be signed by an authority that it does not trust"


def protocol_reason(text: str) -> str:
    """Return h11's text without quotations, because a peer may echo a secret that we sent."""
    words = re.split(r"[:'\"{]|\bb['\"]|bytearray", text, maxsplit=1)[0].strip()
    return words.replace("request line", "status line") or "malformed"
