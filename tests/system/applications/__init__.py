"""Real applications under real failover, each by the files of its folder in ``examples``.

stage.py           nodes of one application on one machine: programs, supervisors, one real Consul
conftest.py        the stage of one test
writes.py          who accepted a client's writes, and when
redis_nodes.py     Redis servers, and clients that speak to them
postgres_nodes.py  PostgreSQL clusters, and clients that speak to them
activemq_nodes.py  brokers over shared storage
stomp.py           a client of theirs
namespaces.py      machines with a network of their own
greeter.py         a server that says which machine it is on
"""
