"""Virtual machines with a watchdog device: is a node that fails reset before another node acts?

The map, one line a module:

    lab.py         a Consul on this host, and machines (tests/system/emulated) of which two contend
    scenes.py      what happens to a node that holds, as data
    judge.py       who acted when
    __main__.py    all scenes, and a row of figures for each

`make test-watchdog` runs it. pytest collects only the tests of the judge.
"""
