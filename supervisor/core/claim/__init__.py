"""Who may be acting, with a fence: the tenure record, which is a key in Consul beside that of the lock.

    record.py      the content of that key
    claim.py       what a contender knows of it and owes to it: reads, watches and writes it, one at a time
    correction.py  what is written in the place of a record that was read
    memory.py      what is known of a record of more than a minute, in case that Consul loses it
    notes.py       what is known of a shot, and told to the fleet
    grants.py      which runs of the fence may begin, by fence_limit and the fleet
    shots.py       one run of the fence for all guards of this process behind one boot of a machine
    guard.py       what a node waits for that has acquired over another's record, and when it shoots

An acquire writes our record, an orderly release takes it away. So who acquires over the record of another
session knows that its holder did not end in order, and guards. A guard ends when that holder says that it has
ended, when the fence has switched its machine off, when its lease is surely over, by an operator's word, or
because the record is our own, of an acquire whose answer was lost.

*Who may be shot.* The machine that the record names, if it is neither this one nor named to the fence as
this one; not before ``after``, which counts from when this node saw the key
free, else from its acquire; not before its on_lose must have
ended, once it says that it stops; never by a record that has vanished; and only behind a look at the record.

*A guard.* The machine of the rival is lost. Each line is a step, as in the docstring of the core.
``WatchTenure(0)`` is a look, and ``WatchTenure(6)`` waits for a change of the record after index 6.

    Tick -> CreateSession, WatchKey(0, consistent)
    CreateSession: Created -> RenewSession s, record session s
    recorded -> -
    RenewSession: SessionAlive -> WatchTenure(0)
    WatchTenure: acting rival -> -
    WatchKey: key of rival, guarded -> WatchKey(9), ReadSession rival, HintKey(0)
    Tick -> WatchTenure(0)
    WatchTenure: acting rival -> -
    WatchKey: key of nobody, guarded -> Acquire s over
    Acquire: Won -> WatchTenure(0), WatchKey(11, consistent), became acquiring
    WatchTenure: acting rival -> WatchTenure(6), became acquiring
    Tick -> WatchTenure(0)
    WatchTenure: acting rival -> start fence#1, WatchTenure(6)
    fence ended well -> Rewrite s with record
    Rewrite: Done -> record tenure s
    recorded -> start up#1, WatchTenure(0), became acquiring
    up ended well -> record holding s, became holding
    recorded -> -

"""
