"""What `check` says about a configuration: figures, warnings, and what the real Consul answers.

    report.py      figures of the leases, warnings and findings, as text and as JSON
    file_modes.py  warns when other users can read our secrets or replace what we run
    connection.py  check --connect: requests to the real Consul, none of which changes anything
    findings.py    what each of Consul's answers means, with its remedy

The package imports nothing here, because every command pays for what its package imports.
"""
