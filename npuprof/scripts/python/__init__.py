"""Reads settings from Python scripts by parsing, never executing: one visitor, and one
module per API.
"""
