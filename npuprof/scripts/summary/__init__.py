"""What a tree of scripts holds, told in an hour's reading: what matters first, then the counts that it is drawn from.

``gathering`` looks at one script after the other, ``ranking`` says which findings matter, ``upgrade`` what a release would touch,
``telling`` which parts a report has; ``plain``, ``data`` and ``page`` write them as text, as JSON and as one page of HTML.
"""
