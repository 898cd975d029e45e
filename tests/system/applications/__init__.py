"""Real applications under real failover, each set up from the files of its folder in ``examples``.

stage.py           nodes of one application on one machine: programs, supervisors, one real Consul
conftest.py        the stage of one test
postgres_nodes.py  PostgreSQL clusters, the rows that they have confirmed, and their judge
activemq_nodes.py  brokers over shared storage
stomp.py           a client of the brokers
namespaces.py      machines with a network of their own
greeter.py         a server that names the machine on which it runs
"""
