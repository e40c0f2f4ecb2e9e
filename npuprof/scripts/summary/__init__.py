"""``scan --statistics``: one report of all scripts instead of a finding per line.

``survey`` counts settings and what a release changes for them, ``report`` selects findings and
tables, ``forms`` writes them as text and HTML.
"""
