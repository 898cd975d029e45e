"""Virtual machines with a fence device: does another node act soon after a loss, and never beside the former?

The device switches a machine off by qemu's monitor. The map, one line a module:

    device.py      the device, and the manners in which it fails
    lab.py         machines (tests/system/emulated) of which two or three contend, and a Consul for each scene
    scenes.py      what happens to a node that holds, as data
    judge.py       who acted when, and how the guard of the next holder ended
    __main__.py    all scenes, a row for each, and how long after the loss the other node acted

`make test-fence` runs it. pytest collects only the tests of the judge and of the device.
"""
