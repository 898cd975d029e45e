"""Text for a terminal: tables, and pages that are drawn again and again.

    table.py   the daemon's status as a table
    text.py    text in columns: escaped, measured, truncated, padded
    screen.py  a page on the terminal, drawn each second; leaves the terminal as it was
    live.py    status --watch: the lines of each page, also while the daemon is silent

Text that the daemon sends is escaped before it is measured, because a terminal obeys what it is sent.
"""
