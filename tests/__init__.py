"""The tests. `make test` runs those that take up to some 3 s each; they mirror the tree of the package.

A test marked `long` takes longer: it waits for real outages and lock-delays, or it is the long form of a
round that `make test` runs shorter. `make test-long` runs these; `make test-all`, and CI, run everything.
"""
