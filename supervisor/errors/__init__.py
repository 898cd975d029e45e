"""The three kinds of errors that end a command, by whose fault they are.

A package derives its own errors from these. ``cli`` alone knows their exit codes, and prints their
text. Any other exception that reaches it is a bug of ours. An error that never ends a command, because
a caller always handles it, has no kind.
"""


class CommandError(Exception):
    """Base of the three kinds. Its text is one line: what cannot be done, why, and what to do.

    remedy: what the operator may do, printed behind the text. Blank: the text says it.
    has_places: whether the text has a line for each fault instead, which begins with its place in a file.
    """

    remedy = ""
    has_places = False


class OperatorError(CommandError):
    """The operator's fault: the configuration, a file or a folder that it names cannot be used."""


class PeerError(CommandError):
    """The peer's fault: Consul, the daemon or the network between gave no usable answer."""


class NotPossible(CommandError):
    """Nobody's fault: the command cannot be carried out as things are now, and perhaps later."""
