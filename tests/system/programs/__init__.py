"""Tests that run the supervisor beside programs of Debian's packages: `make test-programs`."""
