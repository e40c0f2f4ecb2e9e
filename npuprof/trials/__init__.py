"""Trials of a command with many settings: finds decisive differences (bisect), or runs every
allowed combination (sweep).

``search`` decides which combinations to run and has no side effects. ``combinations`` builds the
config of a combination, ``processes`` runs commands, ``journal`` stores their results.
"""
