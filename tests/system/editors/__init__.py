"""The programs with which people write and check files: their editors, and pre-commit."""
