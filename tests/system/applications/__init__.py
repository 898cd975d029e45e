"""Real applications under real failover, each set up from the files of its folder in ``examples``.

stage.py           nodes of one application on one machine: programs, supervisors, one real Consul
conftest.py        the stage of one test
database.py        a writing client, a probe of each node, and their judge
writes.py          which node accepted a client's writes, and when
redis_nodes.py     Redis servers and the connections to them
postgres_nodes.py  PostgreSQL clusters and the connections to them
activemq_nodes.py  brokers over shared storage
stomp.py           a client of the brokers
namespaces.py      machines with a network of their own
greeter.py         a server that names the machine on which it runs
"""
