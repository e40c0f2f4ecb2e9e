"""Stores in a git repository: objects, trees, tags, revisions and commits of presets."""
