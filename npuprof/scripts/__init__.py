"""Existing scripts: read by their syntax, linted, given blocks."""
