"""Semaphores from outside: real supervisors, a real Consul, real hooks.

    scene.py          some supervisors on one prefix, what they did, and what must hold of it at the end
    judges.py         at most so many at once, tokens that grow
    consul_lock.py    ``consul lock -n`` on the same prefix
    beside.py         a program: for how long both act when one of ours crashes beside that
    fleet.py          nodes that all have one of the example files
    round.py          twenty supervisors, three slots, and whoever makes faults; ``__main__`` plays it
    verdict.py        what such a round must hold, by the hooks' own lines

Scenes, records and hooks are those of ``tests.consul.elections``, as far as both kinds have them in common.
"""
