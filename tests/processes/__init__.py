"""Real commands, hooks and children, without a Consul."""
