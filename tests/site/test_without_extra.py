"""``site`` without the libraries of its extra."""

from __future__ import annotations

import sys

import pytest

from support.running import Run, Store


@pytest.mark.parametrize("library", ["jinja2", "markdown_it", "markupsafe"])
def test_a_missing_library_is_named_with_the_extra(
    library: str, monkeypatch: pytest.MonkeyPatch, run: Run, store: Store
) -> None:
    store({"x": "[options]\nhccl_timeout = 600\n"})
    for name in [each for each in sys.modules if each.startswith("npuprof.site.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    done = run("site", "public")
    assert done.code == 2
    assert f"NP981: {library}" in done.err
    assert "pip install 'npuprof[site]'" in done.err
