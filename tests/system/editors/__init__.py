"""Beside what people write and check files with: their editors, and pre-commit."""
