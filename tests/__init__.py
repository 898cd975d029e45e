"""The tests, by level. Each level may use all that the levels before it use.

    unit/       single modules, without a Consul, a daemon or a command (`make test-unit`, under a minute)
    models/     every order of events, rivals, many contenders, simulated clusters
    processes/  real commands, hooks and children, without a Consul
    consul/     the daemon and its commands on a real Consul: a server, and a client agent of it
    docs/       the documentation: each block is run, each figure is compared with the code
    system/     booted machines, clusters, other programs, packages, editors

    support/    what tests share: agents, supervisors, proxies, patience
    setup/      what a machine needs before the tests can run
    mutants.*   each rule of the core broken once

`make test` runs the tests that take up to some 3 s each. A test marked `long` takes longer, because it waits
for real outages and lock-delays, or because it is the long form of a test that `make test` runs shorter.
`make test-long` runs these; `make test-all`, and CI, run everything.
"""
