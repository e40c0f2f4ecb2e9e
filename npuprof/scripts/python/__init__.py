"""Reads settings from Python scripts by parsing: one visitor, and one module per API."""
