"""Take presets of other repositories."""
