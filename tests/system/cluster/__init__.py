"""Supervisors on a real Consul cluster that is broken on purpose, each node in a network of its own.

``python -m tests.system.cluster`` breaks the cluster and needs root; pytest collects only the tests of the
judges.
"""
