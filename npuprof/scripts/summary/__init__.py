"""``scan --statistics``: one report of all scripts instead of a finding for each line.

``survey`` counts what scripts set and what a release would touch of it, ``report`` says which findings matter and which tables there
are, and ``forms`` writes them as text and as one page of HTML.
"""
