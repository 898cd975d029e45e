"""``lock`` on a real Consul: one lock around one command.

lockers.py         the processes of one test, and what their commands record
test_command.py    exit codes, signals, standard streams, process 1, KILL
test_waiting.py    --wait, faults, and silence of Consul
test_exclusion.py  beside `consul lock`, an election, and other `lock` processes
test_loss.py       the session ends, the key is deleted, Consul is silent: the command ends in time
test_semaphore.py  -n
test_terminal.py   the terminal, Ctrl-C and Ctrl-Z
"""
