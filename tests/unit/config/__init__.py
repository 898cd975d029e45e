"""The configuration: what is accepted, what it means, and every refusal."""
