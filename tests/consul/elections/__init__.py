"""Whole supervisors on a real Consul: their hooks' records, the order of events, and the end in Consul."""
