"""Tests that put ours beside programs of Debian's packages: `make test-programs`."""
