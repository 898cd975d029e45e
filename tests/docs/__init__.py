"""The documentation: each block is run, each figure and table is compared with the code."""
