"""Commands tried with many settings: which of the differing ones make the difference, and what every allowed combination gives.

``search`` and ``speculation`` are pure: which combinations have to be run. ``units`` says what a combination is made of, ``configs`` makes
the config of one, ``processes`` runs commands, ``journal`` keeps what came of them.
"""
