"""The shell of the core: carries out what it decides, and reports what happened. Part of the promise.

The highest floor first; a package imports from lower floors only.

    journal/      what survives a crash of this process: a file of records for each item
    consul/       Consul's HTTP API: requests of the core as messages, responses as outcomes
    hooks/        runs commands and webhooks: deadline, kill, outcome, output
    transport/    an HTTP client over asyncio, with deadlines; knows no Consul
    runtime/      carries out the steps of the core; the clock and the signals of a process
    filesystem/   files whose file system may not answer
"""
