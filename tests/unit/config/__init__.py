"""The configuration: the files that are accepted, their meaning, and every refusal."""
