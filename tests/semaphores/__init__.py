"""Semaphores from outside: real supervisors, a real Consul, real hooks.

scene.py     some supervisors on one prefix, what they did, and what must hold of it at the end
judges.py    at most so many at once, tokens that grow
records of the hooks are those of ``tests.elections``
round.py, faults.py, verdict.py, __main__.py
             twenty supervisors and three slots for some minutes, with all that can go wrong
beside.py    how long both act, beside ``consul lock -n``
"""
