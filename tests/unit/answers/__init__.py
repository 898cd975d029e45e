"""Each request of the product with each answer of Consul: and its outcome.

replies.py     the answers to any request, and those that only one request gets
recorded.toml  answers of other versions of Consul, with the public source of each
python -m tests.unit.answers  prints the table of requests and answers
"""
