"""The tests; `make test` runs them. They mirror the tree of the package.

Marked `long` are the long forms of rounds that `make test` runs shorter: `make test-long`, and CI, run them.
"""
