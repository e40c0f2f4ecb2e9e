"""Verbs and flags of an earlier release: each exits with 2 and names its replacement.

Nothing else mentions them.
"""

from __future__ import annotations

import pytest

from npuprof.commands.framework.usage import FLAGS, VERBS
from support.running import Run, Store


@pytest.mark.parametrize("verb", VERBS)
def test_a_removed_verb_exits_with_2_and_names_its_replacement(verb: str, run: Run) -> None:
    done = run(verb)
    assert done.code == 2, done.err
    assert done.out == "", done.err
    assert f"was removed in 0.2.0: use {VERBS[verb]}" in done.err, done.err


@pytest.mark.parametrize(("verb", "flag"), FLAGS)
@pytest.mark.parametrize("value", ["", "=1"])
def test_a_removed_flag_exits_with_2_and_names_its_replacement(
    value: str, verb: str, flag: str, run: Run, store: Store
) -> None:
    store({"a": "[options]\nhccl_timeout = 600\n"})
    done = run(verb, "a", f"{flag}{value}")
    assert done.code == 2, done.err
    assert done.out == "", done.err
    assert f"was removed in 0.2.0: use {FLAGS[verb, flag]}" in done.err, done.err


#: Words that are no verbs, and what is printed after the words that say so.
UNKNOWN = {
    "delete": (
        "\ngit rm profiles/NAME.toml deletes a preset, "
        "npuprof unset NAME KEY takes a value out of one."
    ),
    "push": "\nnpuprof release NAME",
    "undo": "\nundo was removed",
    "chek": " Did you mean 'check'?\n",
    "source upd": " Did you mean 'update'?\n",
    "print": " npuprof --help lists the commands.\n",
    "delte": " npuprof --help lists the commands.\n",
    "version": "\nnpuprof --version prints",
    "completion": "\nnpuprof --install-completion",
    "source lock": " Known are add, list, remove, sync, update, vendor.\n",
}


@pytest.mark.parametrize("arguments", UNKNOWN)
def test_a_word_that_is_no_verb_brings_the_verb_that_is_meant_or_one_spelt_almost_so(
    arguments: str, run: Run
) -> None:
    done = run(*arguments.split(), "x")
    after = done.err.partition(f"Error: No such command {arguments.split()[-1]!r}.")[2]
    assert done.code == 2, done.err
    assert after.startswith(UNKNOWN[arguments]), done.err
    assert after.count("Did you mean") == UNKNOWN[arguments].count("Did you"), done.err
