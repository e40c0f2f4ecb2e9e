"""Set up git to merge and diff presets."""
