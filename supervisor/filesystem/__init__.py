"""Files whose file system may not answer: a network mount that hangs must not stop the loop.

    children.py a child that reads in our place, and may hang there
    mounts.py   which paths lie on disks of this machine, by the kernel's table of mounts
    reading.py  a file read by a child with a time limit

A path on a local disk is read at once. A child reads any other path, and may be left behind.
"""
