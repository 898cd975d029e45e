"""Whole supervisors on a real Consul: what their hooks saw, in which order, and what is left behind."""
