"""The commands that a person types.

    cli/          commands, options, exit codes: the only package that prints
    lock_command/ one lock around one command, without a configuration, a daemon or a record
    check/        what `check` reports: figures, findings about the real Consul

A package imports only from those after it, and none of the promise imports these.
"""
