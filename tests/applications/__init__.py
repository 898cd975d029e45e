"""Real applications under real failover, each by the files of its folder in ``examples``.

stage.py      nodes of one application on one machine: programs, supervisors, one real Consul
conftest.py   the stage of one test
"""
