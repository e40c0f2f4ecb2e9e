"""A script moved to another release: what migration does for a preset, on the settings of a script, literal by literal.

``planning`` says which steps are due and what is left to decide, ``literals`` finds the texts to change, ``moving`` changes them and
proves that the result sets what was planned and nothing else.
"""
