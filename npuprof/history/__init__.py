"""History of presets: the log of resolved values, blame, and the contents of commits
and releases.
"""
