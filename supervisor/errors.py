"""The three kinds of errors that end a command, by whose fault they are.

A package derives its own errors from these. ``cli`` alone knows their exit codes, and prints their text. Any
other exception that reaches ``cli`` is a bug of ours. An error that never ends a command, because a caller
always handles the error, has no kind.
"""


class CommandError(Exception):
    """The base of the three kinds. The text is one line: what cannot be done, why, and the remedy.

    has_places: whether the text has instead one line for each fault, which begins with a place in a file.
    """

    remedy = ""  # the remedy that ``cli`` prints behind the text. Blank: the text contains the remedy
    has_places = False


class OperatorError(CommandError):
    """The operator's fault: the configuration, or a file or folder that it names, cannot be used."""


class PeerError(CommandError):
    """The peer's fault: Consul, the daemon or the network gave no usable answer."""


class NotPossible(CommandError):
    """A state in which the command is not possible, without a fault; it may be possible later."""
