"""History of presets: log of resolved values, blame, contents of commits and releases."""
