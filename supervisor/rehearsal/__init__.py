"""Elections without a Consul, to try a file and to learn.

    drill/        three supervisors and the embedded agent: `drill` rehearses a file, `demo` shows a failover
    devagent/     the embedded agent: a pure model of Consul and a server around it

A package imports only from those after it, and none of the promise imports these.
"""
