"""The static website of a store: a folder of pages that needs neither network nor server.

``presets`` and ``past`` read the facts about each preset, ``family`` draws the inheritance graph,
``catalogue`` and ``compatibility`` contain check results, ``manual`` converts the documentation,
``pages`` fills the templates, ``data`` is loaded by pages on demand, ``building`` combines
everything, ``folder`` writes the changes.
"""
