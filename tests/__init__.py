"""The tests, by level. Each level may use all levels before it.

    unit/       single modules, without a Consul, a daemon or a command (`make test-unit`, under a minute)
    models/     every order of events, rivals, many contenders, simulated clusters
    processes/  real commands, hooks and children, without a Consul
    consul/     the daemon and its commands on a real Consul: a server, and a client agent
    docs/       the documentation: each block is run, each figure is compared with the code
    system/     booted machines, clusters, other programs, packages, editors

    support/    shared parts: agents, supervisors, proxies, patience
    setup/      installs the requirements of the tests on a machine
    mutants.*   each rule of the core broken once
    stages.*    the stages of a whole run, and which of them a change has to pass

`make test` runs the tests that take up to some 3 s each. A test marked `long` takes longer, because it waits
for real outages and lock-delays, or because it is the long form of a test that `make test` runs shorter.
`make test-long` runs these. `make test-all` runs everything but `make test-orders`, and CI a part of that.
"""
