"""The surroundings of the product in tests: real peers, and nothing that imitates the product."""
