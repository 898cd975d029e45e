"""The daemon and its commands on a real Consul: a server, and a client agent."""
