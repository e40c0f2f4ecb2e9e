"""The surfaces of Python, and the words that a file has to contain to be worth parsing."""

from __future__ import annotations

from npuprof.scripts.reading.surfaces import env, global_options, run_config, session

SURFACES = (session, run_config, global_options, env)
WORDS = tuple(dict.fromkeys((*(word for surface in SURFACES for word in surface.HOT), *session.HELPERS)))
