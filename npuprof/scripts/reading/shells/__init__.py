"""Parses shell scripts to commands and words, and decides which of them apply."""
