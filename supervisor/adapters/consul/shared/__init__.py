"""One query for many keys, for more elections than connections.

Consul closes connections of one address beyond 200, and a watch keeps one connection for itself. So beyond
``WATCHES_MAX`` elections a recursive query covers all keys that begin alike. This package must never decide
what an answer means: the request for one key is answered as if that key had been queried alone.

    grouping.py  which keys share a query
    listing.py   all keys below a prefix as one answer shows them
    query.py     the queries for all keys below a prefix, and the requests that wait for their answers
"""
