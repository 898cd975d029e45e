"""Semaphores from outside: real supervisors, a real Consul, real hooks.

    scene.py          some supervisors on one prefix, their records, and the promises at the end
    consul_lock.py    ``consul lock -n`` on the same prefix
    fleet.py          nodes that all have one of the example files

Scenes, records and hooks are those of ``tests.consul.elections``, where both kinds have them in common.
"""
