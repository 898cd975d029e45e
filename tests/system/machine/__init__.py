"""The product in a small Debian that is booted for it, because some things only a real systemd can show.

The map, one line a module:

    get_debian.sh   the Debian, made once below .cache/machine (needs root)
    wheels.py       the product and its dependencies, as packages for that Debian's Python
    machine.py      one booted machine: commands in it, its reboot, its end
    node.py         in it the product as the documentation installs it, Consul, and what hooks wrote
    conftest.py     one machine for the tests of a worker; each finds it clean
    group.py        several machines on one bridge, each with a Consul agent
    pair.py         two of them, for the databases of the examples
    fleet.py        two of them, with Ansible before them
    trio.py         three of them, each with a server of Consul, for a rolling upgrade

`make test-systemd` runs it. A machine has a network of its own: loopback, or the bridge of its group.
"""
