"""Sources: presets of other repositories, mirrored in the user's cache."""
