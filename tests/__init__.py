"""The tests; `make test` runs them. They mirror the tree of the package."""
