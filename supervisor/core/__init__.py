"""The functional core: it decides, and does nothing else.

The core has no I/O, no clock, no logging and no asyncio. It imports the standard library and itself alone.
Time is an argument: seconds of CLOCK_BOOTTIME as a float.

    settings.py         the settings of the file, as values
    lease.py            the safety arithmetic: how long belief lasts after the newest contact
    times.py            the two times that no clock shows
    watchdog.py         the rule by which the machine's watchdog is fed
    requests.py         every request to Consul
    outcomes.py         every meaning of an answer
    events.py           everything that can happen
    actions.py          everything that the core can decide, and its order
    frozen.py           dataclass and replace, for frozen values: quick, and no copy of an equal value
    jitter.py           when regular requests are sent, so that a fleet drifts apart
    machines/           the state machines that a contender is made of
    lock/               the lock: one key, or a slot below a prefix
    claim/              who may be acting, with a fence: a key beside that of the lock
    contender/          one item
    beside/             what the promise does not rest on; a first reading can skip it
    reload.py           the effect on each item when the file is read again
    devices.py          the watchdog devices of all items, and what is due for each
    contenders.py       all contenders of this process: routes events, one earliest deadline

Theory of operation
-------------------

The promise is that two holders never act at once, because on_lose has ended before a rival may hold the lock.
The core is built for this promise and against one fact: Consul may apply a write seconds after this process
gave up on it.

*A step.* ``step(contender, event, now)`` returns the new contender and a tuple of actions. A step has three
parts, always in this order. First, a belief whose lease is over and a rest whose time has come end. Then the
reducer applies the event. Last, the scheduler begins everything that is due. Belief ends before the event is
looked at, so a late answer cannot prolong it. The scheduler looks at the contender and never at the event, so
only one place decides what begins. The shell carries the actions out in their order, and answers each request
and each start by exactly one event.

*A hand-over.* A waiter takes over from a rival, and steps down later. Each line is a step: an event, and the
actions that follow. The record is written within the step that needs it, and ``recorded`` is the step after
that. ``WatchKey(9)`` waits for a change after index 9; up and down are hooks of on_acquire and on_lose, and
#1 is an attempt. ``claim`` has such a transcript of a guard, ``lock.semaphore`` that of a slot.

    Tick -> CreateSession, WatchKey(0, consistent)
    CreateSession: Created -> RenewSession s, record session s
    recorded -> -
    RenewSession: SessionAlive -> -
    WatchKey: key of rival -> WatchKey(9), ReadSession rival
    WatchKey: key of nobody -> Acquire s
    Acquire: Won -> record tenure s
    recorded -> start up#1, WatchKey(11, consistent), became acquiring
    up ended well -> record holding s, became holding
    recorded -> -
    StepDownAsked -> record losing s, start down#1, became losing
    recorded -> -
    down ended well -> record session s
    recorded -> Release s, became resting
    Release: Done -> -
    Tick -> DestroySession s
    DestroySession: Done -> record none
    recorded -> -

*Words for "I hold".* Each is another question, from Consul's side to ours. Whether to try is another
question, ``may_try``. The last one is for who looks from outside, such as `holds`:

    lock.has_entry(session)     does the newest answer show a key with this session? A place in line counts
    view.find_hold(session)     does this answer show the lock with this session, and since which index?
    contender.has_lock          is the lock still ours as far as this node knows? True also while it loses
    tenure.believes             may this node still hold, so that its application need not stop?
    contender.may_act(now)      is on_acquire done and the lease valid, so that the application may act?

A *token* is the fencing token of a tenure; Consul's is always called its ACL token or ``consul.token``. A
watchdog is *armed* for a tenure. A *record* is what the journal keeps of a contender, and the *tenure record*
is a key in Consul. A *guard* is the wait of a node behind the tenure record of another one. The *lockout* is
how long rivals are kept out after a holder has vanished: the lock-delay of an election, the prune delay of a
semaphore. What may not exist is None, such as the session that holds a key. A text for people, hooks or
records is blank where there is nothing to say.

*Four machines.* A contender has a session, a claim, a tenure while it holds, and a role.

    session   serves one tenure. Its writes only go forward, because a late acquire must never be applied
              after the release. The destroy closes its life.
    tenure    lasts from Consul's word that our session holds to the end of the last on_lose. It decides
              which hook runs, and never sends a request to Consul.
    claim     stands for what the session owes to the tenure record, also once it is destroyed.
    role      appears in status and log. It follows from the others, and decides nothing.

The tables ``TRANSITIONS`` name the cause of every edge of the first three, and ``become`` follows them.
``Contender.role`` derives the last.

*The lanes.* A lane sends one exchange at a time. Each contender has six lanes: ``watch`` (a blocking query
that returns changes), ``read`` (a consistent read), ``details`` (a read of the holder's session or of one
key), ``renew``, ``write``, and that of its claim. With ``candidate_check: {maintenance: true}`` it has one
more, which reads Consul's maintenance mode, and with ``service`` one that keeps an instance of that service.
Beside the lanes, hooks run in two sequences, that of the tenure and that of on_change, and candidate_check
runs one attempt at a time. Lanes do not wait for each other. A lane whose exchange began before the present
state marks the answer as stale: a stale read can confirm what is known, and never contradict it, and a stale
watch or look tells nothing.

*What expires first.* A holder counts from ``contact``, the send time of the newest request whose consistent
answer showed it as holder: a read, a watch, or the write that won. Belief ends at ``contact + room``. Then
the holder kills on_acquire and the run child, and runs on_lose and on_lose_failure, which takes ``lose_time``
at most. A margin follows, and only then comes ``contact + lock_delay``, before which Consul lets no rival in.
The sum needs neither Consul nor the network at its end, and the TTL has no part in it, because Consul may
keep a session for longer than the TTL. A semaphore has no lock-delay in Consul, so there the contenders
themselves wait for the prune delay.

*What ends a belief.* Each is a call of ``Tenure.lose``, and there is no other:

    LEASE_EXPIRED       no contact came in time                                        step.py
    as the verdict has  what a read or a watch shows                                   reducer.py
    UNHEALTHY           candidate_check has failed                                     reducer.py
    MAINTENANCE         this node is in Consul's maintenance mode                      reducer.py
    ACQUIRE_FAILED      no record, no watchdog, no right to write a tenure record      reducer.py
    ACQUIRE_FAILED      on_acquire has failed                                          phases.py
    SESSION_ALTERED     Consul has made another session than was asked for             lifecycle.py
    STEP_DOWN           an operator asks for it                                        lifecycle.py
    as the stop has     a stop, a reload                                               lifecycle.py
    RUN_EXITED          the run child has ended                                        tenure.py

*Silence is never news.* A request without an answer may have been applied or not. So a contender treats
silence neither as a loss nor as a win. A holder goes on until its belief ends. A waiter whose acquire has no
answer reads before it tries again, and a release is repeated until Consul answers it.

*A session is a candidate.* Operators and other nodes take each session for a node that can take over. So a
node without a tenure has a session only while it may come to hold. An observer, a resting, a paused and an
unfit node have none.

*The record.* A process that crashes leaves its tenure to the next one. So three things wait for the record:
the first acquire of a session, the first hook of a tenure except a fence, and the release after its last
hook. A loss goes on record before on_lose while the lock is still ours and the lease leaves time for that;
otherwise on_lose begins first.

*Which rule lives where.*

    how long a holder may believe           lease.py
    whether news is fresh enough to act     machines/phases.py
    which answer counts, when a try may win lock/
    whether this node may try now           contender/state.py: may_try
    whether it can hold, and wants to       contender/state.py: is_fit, may_come_to_hold
    the effect of an answer on a tenure     lock/ returns a verdict, and contender/reducer.py applies it
    how a tenure begins, ends, is released  contender/lifecycle.py
    who may be acting, and be shot          claim/
    what begins first                       contender/scheduler.py
    the facts that must survive a crash     machines/record.py
    what a reload does to each item         reload.py
    until when the watchdog may be fed      machines/tenure.py: reset_by, and watchdog.py
    how long refused requests wait          beside/throttle.py
"""
