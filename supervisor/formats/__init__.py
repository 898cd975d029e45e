"""Text formats that several packages share.

    durations.py         500ms, 15s, 1h30m
    semaphore_record.py  the value of a semaphore's .lock, and of contender keys
    json_depth.py        how deep JSON is nested
    holder_node.py       the node that a holder's value names
    templates.py         webhooks with references to the facts of an event

Functions here turn text into values and back. They must never read or write files.
"""
