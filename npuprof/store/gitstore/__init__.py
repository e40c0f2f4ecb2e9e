"""Stores in a git repository: its objects, its trees and tags, revisions of presets, and the commits that changed them."""
