"""What `check` says of a configuration: figures, warnings, and what the real Consul answers.

    report.py      figures of the leases and all findings, as text and as JSON
    file_modes.py  which other users can read our secrets or replace what we run
    connection.py  check --connect: questions to the real Consul, none of which changes anything
    findings.py    the meaning of each of Consul's answers, with its remedy

The package imports nothing here, because every command pays for what its package imports.
"""
