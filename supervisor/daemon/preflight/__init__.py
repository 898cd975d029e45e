"""Whether a configuration fits this machine, found out before a hook is due.

    needs.py       the programs, users, folders and files that the hooks of a configuration need
    probes.py      one probe: of a program as its user, or of a file
    probe_run.py   all probes, made by children because a file system may hang
    problems.py    for ``check``: each hook that cannot start, with its place in the file
    monitor.py     for the daemon: probes at the start, after a reload, and from time to time
    file_modes.py  files that other users can read or change

The daemon itself never looks at a program, user or file that a configuration names.
"""
