"""What `check` reports about a configuration: figures, warnings, and findings about the real Consul.

    report.py      figures of the leases, warnings and findings, as text and as JSON
    plan.py        the inverse of the figures: the session block that meets an operator's wishes
    policy.py      the rights that a configuration needs, as the rules of a policy
    connection.py  check --connect: requests to the real Consul, none of which changes anything
    findings.py    a finding, which says what is the case, with its remedy
    agent.py       the findings about the agent and the servers of Consul
    rights.py      the findings about what the token may
    relied_on.py   what a quick file relies on in Consul's own configuration

This module imports nothing, because a command that needs one module should not wait for the other modules.
"""
