"""The functional core: it decides and does nothing else.

No I/O, no clock, no logging, no asyncio, and nothing imported but the standard library
and this package. Time is an argument: seconds of CLOCK_BOOTTIME as a float.

    settings.py         what the file asks for, as values
    lease.py            the safety arithmetic: how long belief may outlive the last news
    events.py           everything that can happen
    actions.py          everything that can be decided, and the order that binds it
    frozen.py           replace, for frozen values: quick, and no copy of what is the same
    asked.py            whether Consul has the session that was asked for
    lane.py             exchanges of one kind, one at a time
    throttle.py         how long requests wait while Consul takes no more of them
    jitter.py           when what is asked regularly is asked next, so that a fleet drifts apart
    machine.py          what the state machines have in common: a table of what may follow what
    session.py          one Consul session: create, renew, acquire, release, destroy; forward only
    sequence.py         a list of hooks, one attempt at a time
    tenure.py           acquire -> on_acquire -> holding -> on_lose -> ended
    on_change.py        the lane of on_change
    candidate_check.py  the lane of candidate_check
    lock/               what is contended for: one key, or a slot below a prefix
    record.py           what is on record of an item, and what a start makes of it
    contender.py        one item of the file: lock, session, tenure; how a tenure begins and ends
    reducer.py          what an event means
    scheduler.py        what is due, and in which order
    step.py             the one way in: lease, then the event, then what is due
    reload.py           what becomes of each item when the file is read again
    contenders.py       all contenders of this process: routes events, one earliest deadline
"""
