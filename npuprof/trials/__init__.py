"""Commands tried with many settings: which of the differing ones make the difference, and what every allowed combination gives.

``search`` decides which combinations have to be run and has no side effects. ``combinations`` lists what a combination is made of
and builds its config, ``processes`` runs commands, ``journal`` stores their results.
"""
