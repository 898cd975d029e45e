"""Tests in a small Debian that is booted for them: `make test-systemd`, as root."""
