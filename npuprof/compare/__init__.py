"""Comparison of configs and revisions, and its output formats."""
