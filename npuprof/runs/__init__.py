"""Runs: what a process was given and what became of it, kept as records; and which preset something that is found was made of."""
