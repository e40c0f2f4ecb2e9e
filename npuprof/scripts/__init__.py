"""Existing scripts: parsing, linting, blocks."""
