"""The past of presets: the log of resolved values, blame, and what commits and releases write."""
