"""Marked blocks in scripts."""
def stale(store):
    return lambda file, data: []
