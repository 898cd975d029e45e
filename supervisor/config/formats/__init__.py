"""Text formats that several packages share.

    durations.py         500ms, 15s, 1h30m
    slot_record.py       the value of a semaphore's .lock, and of contender keys
    shot_notes.py        the value of a fleet's key of shots
    tenure_record.py     the value of an election's .tenure
    json_values.py       how deep JSON of other programs is nested, and which node it names
    templates.py         webhooks with references to the facts of an event

Functions here turn text into values and back. They must never read or write files.
"""
