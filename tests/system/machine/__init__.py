"""The product in a small Debian that is booted for it, because some things only a real systemd can show.

The map, one line a module:

    get_debian.sh   the Debian, made once below .cache/machine (needs root)
    wheels.py       the product and its dependencies, as packages for that Debian's Python
    machine.py      one booted machine: commands in it, its reboot, its end
    node.py         the product in it, installed as documented, with Consul and the records of hooks
    pair.py         two machines with a Consul of their own
    fleet.py        two machines with Ansible
    hung.py         a file system that does not answer
    conftest.py     one machine for all tests, which each test finds clean

`make test-systemd` runs it. The machine has a network of its own with nothing but loopback.
"""
