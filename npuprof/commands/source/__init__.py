"""Use presets from other repositories."""
