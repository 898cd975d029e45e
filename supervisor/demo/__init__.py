"""The demo: three supervisors, an election with its failover, and a semaphore.

Everything is real except Consul. The embedded agent serves in this process, because it allows lock-delays and
TTLs that are short enough to watch. The supervisors are processes of their own. Their hooks are commands that
write to a FIFO, and one webhook. The demo shows the hooks' reports and decides nothing for the supervisors.

    backstage.py  the folder and the child processes, of which nothing is left behind
    stage.py      the agent, the supervisors, and the reports of their hooks
    play.py       the election and the semaphore, chapter by chapter
"""
