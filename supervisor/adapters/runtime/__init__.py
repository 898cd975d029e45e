"""What a process of ours needs in order to run contenders: its clock, its signals, and the steps of the core.

    driver.py        a step: event to the core, its actions and records carried out in order
    watchdogs.py     the watchdog devices, to which is done what the core asks for
    background.py    the tasks that no other code awaits
    clock.py         the clock of the core
    notification.py  the datagrams that systemd gets
    init.py          process 1 of a container: passes signals on, and reaps
    signals.py       signals: blocked before the loop runs, then callbacks of it, of which none is lost

The package imports nothing here, because ``signals`` is needed before any heavy module.
"""
