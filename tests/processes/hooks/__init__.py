"""Hooks against real processes and real sockets."""
