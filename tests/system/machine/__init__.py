"""The product in a small Debian that is booted for it: what only a real systemd can show.

The map, one line a module.

    get_debian.sh   the Debian, made once below .cache/machine (needs root)
    wheels.py       the product and what it needs, as packages for that Debian's Python
    machine.py      one booted machine: commands in it, its reboot, its end
    node.py         in it the product as the documentation installs it, Consul, and what hooks wrote
    conftest.py     one machine for all tests; each finds it clean

`make test-systemd` runs it. The machine has a network of its own with nothing but loopback.
"""
