"""Teach git to diff and merge presets."""
