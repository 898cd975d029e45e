"""Whole systems: booted machines, clusters, other programs, packages, editors."""
