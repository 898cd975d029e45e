"""The live drill: one real hand-over on the fleet and one back, in which nothing is replaced.

    plan.py       which node hands over to which, and why that is not possible now
    sight.py      one hand-over as a client of Consul sees it
    handovers.py  the hand-over to the other node, and the one back
    report.py     the result as text and as JSON

The nodes hand over by ``step-down --to``, as operators do.
"""
