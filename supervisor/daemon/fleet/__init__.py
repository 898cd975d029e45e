"""What the daemons of a fleet tell each other and people through Consul. No election depends on it.

    presence.py   this node in Consul's catalog, kept as this process is
    tenures.py    the tenures of an election as Consul keeps them: a document and a tenure in, a document out
    history.py    tells Consul of each tenure, after everything urgent

Nothing here may grant a try or prolong a belief.
"""
