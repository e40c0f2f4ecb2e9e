"""Stores in a git repository: objects, trees, tags, revisions of presets, and the commits that
changed them.
"""
