"""Who may be acting, with a fence: the tenure record, which is a key in Consul beside that of the lock.

record.py   the content of that key
guard.py    what a node waits for that has acquired over another's record
"""
