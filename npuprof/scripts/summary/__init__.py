"""The statistics of ``scan`` over many scripts: the findings that matter first, then counts by kind.

``gathering`` looks at one script after the other, ``ranking`` says which findings matter, ``upgrade`` what a release would touch,
``telling`` which tables the report has; ``plain``, ``data`` and ``page`` write them as text, as JSON and as one page of HTML.
"""
