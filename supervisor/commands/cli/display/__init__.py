"""Text for a terminal: tables, and lines for events.

    table.py        the daemon's status as a table
    members.py      members of elections and semaphores, and sessions, as a table and as JSON
    event_lines.py  a line for each event of the node
    grid.py         rows of cells in columns that fit the terminal
    text.py         text in columns: escaped, measured, truncated, padded

Text of Consul and of the daemon is escaped before it is measured, because a terminal obeys what it is sent.
"""
