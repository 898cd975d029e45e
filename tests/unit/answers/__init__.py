"""Each request of the product with each answer of Consul: its outcome, and how the core goes on after it.

replies.py     the answers to any request, and those that only one request gets
stories.py     lives of an election and of a semaphore, in which each request is pending
recorded.toml  answers of other versions of Consul, with the public source of each
python -m tests.unit.answers  prints the table of requests and answers
"""
