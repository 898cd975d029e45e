"""Virtual machines with a watchdog device: is a node that fails reset before another node acts?

The map, one line a module:

    image.py       what a machine boots: a kernel of Debian, and a copy of this Python with the product
    guest/         the programs of a machine: its init, its service manager, its application
    machine.py     one machine: its console, line by line with the time of the host; its end
    lab.py         a Consul on this host, and machines of which two contend
    scenes.py      what happens to a node that holds, as data
    judge.py       who acted when
    __main__.py    all scenes, and a row of figures for each

`make test-watchdog` runs it. pytest collects only the tests of the judge. qemu emulates the machines, so
nothing needs root or KVM.
"""
