"""Trials of a command with many settings.

They find decisive differences (bisect), or run every allowed combination (sweep).

``search`` decides which combinations to run and has no side effects. ``combinations`` builds the
config of a combination, ``processes`` runs commands, ``journal`` stores their results.
"""
