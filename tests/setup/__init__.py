"""Steps that ``make`` runs before there is a venv: POSIX shell, and Python's standard library alone."""
