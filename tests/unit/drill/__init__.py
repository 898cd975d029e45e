"""Tests of the drill's pure parts: durations, bounds, promises, tenures."""
