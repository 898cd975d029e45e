"""Tests of single modules, without a Consul, a daemon or a command; the tree mirrors the package."""
