"""The parts on which the promise does not rest. A first reading can skip them.

    on_change.py        the hooks of on_change
    candidate_check.py  the attempts of candidate_check
    maintenance.py      the lane of Consul's maintenance mode, for candidate_check
    service.py          the lane of the service that names the holder in Consul
    throttle.py         how long requests wait while Consul accepts no more of them

Each part gets its answers from ``contender/reducer.py``, and begins in ``contender/scheduler.py``.
"""
