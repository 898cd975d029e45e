"""The transport against real sockets, and against peers that behave badly on purpose."""
