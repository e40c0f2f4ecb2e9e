"""The static inspector: a folder of pages that shows a store, and needs neither a network nor a server.

``presets`` and ``past`` read what there is to tell of each preset, ``family`` draws who extends whom, ``catalogue`` and
``compatibility`` hold what the checks know, ``manual`` makes pages of the documentation, ``pages`` fills the templates, ``data`` is what
pages load when they are asked, ``building`` puts all together, ``folder`` writes what has changed.
"""

from __future__ import annotations

#: What brings what the pages are made with.
HOW_TO_INSTALL = "pip install 'npuprof[site]', in a clone pip install '.[site]'"
