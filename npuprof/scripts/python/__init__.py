"""Read settings out of Python scripts by their syntax, never by running them: one visitor, one module for each API."""
