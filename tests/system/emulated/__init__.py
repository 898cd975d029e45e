"""Virtual machines for tests: qemu emulates them, so nothing needs root or KVM.

The map, one line a module:

    image.py       what a machine boots: a kernel of Debian, and a copy of this Python with the product
    guest/         the programs of a machine: its init, its service manager, its application
    machine.py     one machine: what its ports say, line by line with the time of the host; its end
    lan.py         the network of the machines
    node.py        a machine with a supervisor, and machines that one scene after another uses
    acts.py        when the application of a machine acted, and whether two acted at once
    play.py        all scenes of a command line, a row of figures for each, and the exit code
"""
