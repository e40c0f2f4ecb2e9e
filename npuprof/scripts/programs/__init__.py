"""Parsers of the programs that scripts start, read from their source, which never runs."""
