"""A script gone through as it would run, as far as configuration objects go, and what follows for its settings."""
