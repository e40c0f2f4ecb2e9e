"""Runs: records of commands, verification of their logs, and the preset behind a file."""
