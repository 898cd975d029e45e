"""Supervisors on a real Consul cluster that is broken on purpose, each node in a network of its own.

``python -m tests.system.cluster`` runs it and needs root; what pytest collects here (the judges) does not.
"""
