"""Files that may hang, a dead network mount or a pipe without a reader: they must not stop the loop.

    children.py   a child that reads in our place, and may hang there
    executable.py whether the kernel starts a file
    forked.py     a child that is a fork of this process, and calls a function
    mounts.py     which paths lie on disks of this machine, by the kernel's table of mounts
    reading.py    a file read by a child with a time limit
    writing.py    text to a terminal, pipe or socket whose reader may be stuck: never waits, never raises

A path on a local disk is read at once. A child reads any other path, and may be left behind.
"""
