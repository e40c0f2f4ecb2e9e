"""Sources: presets of other repositories, each kept as a mirror in the user's cache."""
