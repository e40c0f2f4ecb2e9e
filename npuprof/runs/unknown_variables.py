"""What vLLM's log line about an unknown variable means: it is also written about valid ones."""

from __future__ import annotations

import re

from npuprof import catalog
from npuprof.catalog import releases
from npuprof.model import did_you_mean

#: vLLM writes it about each variable of its process that begins with VLLM_ and is not its own.
LINE = re.compile(r"Unknown vLLM environment variable detected: (VLLM_\w+)", re.ASCII)


def explain_variable(name: str) -> str:
    """Return whether a variable in such a line is valid, misspelt, or of other releases."""
    record = catalog.find_variable(name)
    section = catalog.load_sections().get(record.framework) if record else None
    if record is None or section is None:
        known = (each for each in catalog.record_names("env") if each.startswith("VLLM_"))
        hint = did_you_mean(name, known, "unset it, unless another program reads it")
        return f"{name} is read by no release of vLLM or vLLM-Ascend in the catalogue: {hint}"
    span = releases.describe_set(record.states, releases.find_axis("env", record))
    if record.framework == "vllm":
        return f"{name} is of vLLM ({span}), and not of the release of this log, which ignores it"
    return f"{name} is valid: {section.title} reads it ({span}); vLLM warns of names not its own"
