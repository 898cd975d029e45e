"""What the daemons of a fleet tell each other and people through Consul. No election depends on it.

    presence.py   this node in Consul's catalog, kept as this process is
    tenures.py    the tenures of an election as Consul keeps them: a document and a tenure in, a document out
    history.py    tells Consul of each tenure, after everything urgent
    order.py      orders for the whole fleet as keys of Consul, and what a node has seen of them
    orders.py     follows what an operator orders for the whole fleet
    catalog.py    all nodes as Consul's catalog shows them, for whoever asks this daemon
    fleet.py      these parts as one

Nothing here may grant a try or prolong a belief.
"""
