"""The transport against real sockets, and against peers that misbehave on purpose."""
