"""The Python API line by line, as in a notebook: shown values and completion."""

from __future__ import annotations

import pickle
from typing import Any
from xml.etree import ElementTree

import pytest

import npuprof

TEXT = '[profile]\nscenario = "training"\n[options]\nhccl_timeot = 1\nprecision_mode_v2 = "fp16"\n'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(
            lambda: npuprof.open_store("builtin:"), "npuprof.open_store('builtin:')", id="a store"
        ),
        pytest.param(lambda: npuprof.loads(TEXT), "Config('<text>', 2 settings)", id="a config"),
        pytest.param(
            lambda: npuprof.loads("options.hccl_timeout = 1"),
            "Config('<text>', 1 setting)",
            id="a config with one setting",
        ),
        pytest.param(
            lambda: npuprof.NpuprofError([npuprof.Finding("NP008", "no preset 'x' in profiles")]),
            "NpuprofError(\"error NP008: no preset 'x' in profiles\")",
            id="an error",
        ),
        pytest.param(
            lambda: npuprof.loads(TEXT).origins("precision_mode_v2"),
            "[<Origin <text>:5, values of <text>>]",
            id="origins",
        ),
        pytest.param(
            lambda: npuprof.check(npuprof.loads(TEXT))[0],
            "Finding(code='NP201', message=\"unknown option 'hccl_timeot'\", "
            "why='The adapter looks up its own list of keys; "
            "one that is not in it is ignored silently.', "
            "hint=\"did you mean 'hccl_timeout'?\", origin=<Origin "
            "<text>:4, values of <text>>, key='hccl_timeot', "
            "profiles=('<text>',))",
            id="a finding",
        ),
        pytest.param(
            lambda: npuprof.diff(npuprof.loads(""), npuprof.loads("options.hccl_timeout = 1"))[0],
            "Change(key='hccl_timeout', kind='added', before=None, after=1, "
            "setting='hccl_timeout', unit='s', risk=('distributed',), "
            "origins=(None, <Origin <text>:1, values of <text>>))",
            id="a change",
        ),
    ],
)
def test_what_is_shown_of_a_value_fits_a_cell(value: object, shown: str) -> None:
    assert repr(value()) == shown  # type: ignore[operator]


#: What is given, the argument that it is blamed on, and what is said.
REFUSED = [
    ({"set": {"precision_mode_v2": "fp17"}}, "set: error NP203", "did you mean"),
    ({"set": {"deterministic": None}}, "set: error NP202", "cannot be of the type NoneType"),
    ({"set": {"a b": 1}}, "set: error NP009", "'a b' is not a key"),
    ({"set": {"profile.scenario": "x"}}, "set: error NP009", "is no setting"),
    ({"unset": ["profile.scenario"]}, "unset: error NP009", "is no setting"),
    ({"unset": ["a b"]}, "unset: error NP009", "'a b' is not a key"),
    ({"unset": ["dump_paht"]}, "unset: error NP924", "did you mean 'dump_path'"),
]


@pytest.mark.parametrize(("arguments", "place", "message"), REFUSED)
def test_what_is_refused_is_blamed_on_the_argument_it_came_by(
    arguments: dict[str, Any], place: str, message: str
) -> None:
    def render() -> str:
        config = npuprof.open_store("builtin:").resolve("bert-training", **arguments)
        return npuprof.render(pickle.loads(pickle.dumps(config)), "session")

    with pytest.raises(npuprof.NpuprofError) as caught:
        render()
    blamed = next(line for line in str(caught.value).splitlines() if place in line)
    assert message in blamed
    assert "--" not in blamed


def test_the_origin_of_a_change_is_its_argument() -> None:
    config = npuprof.loads(
        "options.hccl_timeout = 1\noptions.dump_path = '/x'",
        set={"hccl_timeout": 2},
        unset=["dump_path"],
    )
    assert [str(origin) for origin in config.origins("hccl_timeout")] == ["set", "<text>:1"]
    assert str(config.history("dump_path")[-1].origin) == "unset"


def test_origins_of_what_is_no_text_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match="key must be a str"):
        npuprof.loads("options.hccl_timeout = 1").origins(5)  # type: ignore[arg-type]


def test_what_is_offered_after_a_dot_is_for_users() -> None:
    config, store = npuprof.loads(TEXT), npuprof.open_store("builtin:")
    assert {name for name in dir(store) if not name.startswith("_")} == {"names", "resolve"}
    offered = {name for name in dir(config) if not name.startswith("_")}
    assert {"options", "env", "origins", "digest", "context", "keys"} <= offered
    assert not offered & {"memo", "resolver", "changes", "claims", "policy", "traced_value"}
    assert all(hasattr(config, name) for name in offered)
    assert set(npuprof.__all__) <= set(dir(npuprof))


def test_keys_are_offered_in_a_bracket() -> None:
    config = npuprof.loads(TEXT)
    assert (
        config._ipython_key_completions_() == list(config) == ["precision_mode_v2", "hccl_timeot"]
    )


def read_html(text: str | None) -> ElementTree.Element:
    """Return the elements of some HTML, all of them closed."""
    return ElementTree.fromstring(f"<div>{text}</div>".replace("<br>", "<br/>"))


EVIL = (
    (
        "[profile]\ndescription = '<script>alert(1)</script>'\n[env]\n"
        "OWN = '<img src=x onerror=alert(1)>\u202e'\nLONG = '"
    )
    + "x<&" * 99
    + "'\n"
)


ELEMENTS = {
    "p",
    "strong",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "code",
    "details",
    "summary",
    "br",
}


@pytest.mark.parametrize("text", [TEXT, EVIL, "", "options.hccl_timeout = 1"])
def test_a_notebook_shows_a_config_and_changes_without_script_style_or_colour(text: str) -> None:
    config = npuprof.loads(text)
    for value in (
        config,
        npuprof.diff(npuprof.loads("options.hccl_timeout = 2"), config),
        npuprof.diff(config, config),
    ):
        found = read_html(value._repr_html_())
        assert {element.tag for element in found.iter()} <= {"div", *ELEMENTS}
        assert {name for element in found.iter() for name in element.attrib} <= {"scope", "style"}
        assert {
            element.attrib["style"] for element in found.iter() if "style" in element.attrib
        } <= {"text-align: left"}
        assert "\u202e" not in "".join(found.itertext())
    shown = "".join(read_html(config._repr_html_()).itertext())
    assert [key for key in config if key not in shown] == []
    assert config.description in shown


def test_a_notebook_tells_who_set_a_value_and_whom_that_overruled() -> None:
    config = npuprof.loads("options.hccl_timeout = 1", set={"hccl_timeout": 2}, product="atlas-a2")
    shown = [text for text in read_html(config._repr_html_()).itertext() if text.strip()]
    assert shown[-5:] == ["hccl_timeout", "2", "set", "1", "<text>:1"]
    assert "resolved for product atlas-a2" in (config._repr_html_() or "")


def test_what_differs_is_a_list_all_the_same() -> None:
    changes = npuprof.diff(npuprof.loads(""), npuprof.loads("options.hccl_timeout = 1"))
    assert isinstance(changes, list)
    assert pickle.loads(pickle.dumps(changes)) == changes == list(changes)
    assert "hccl_timeout 1 s" in changes._repr_html_()
    assert (
        npuprof.diff(npuprof.loads(""), npuprof.loads(""))._repr_html_() == "<p>no difference</p>"
    )


def test_ipython_shows_both_as_html() -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, _ = formatters.DisplayFormatter().format(npuprof.loads(TEXT))
    assert shown["text/html"].startswith("<p><strong>&lt;text&gt;</strong></p>")
    assert shown["text/plain"] == "Config('<text>', 2 settings)"
