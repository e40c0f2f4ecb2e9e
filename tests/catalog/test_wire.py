"""The rows of the log and dump output of options: complete, and consistent with the catalogue."""

from __future__ import annotations

from npuprof import catalog
from npuprof.catalog import wire
from npuprof.catalog.wire import NO_KEY, STAGES, load_wires
from npuprof.runs.log_values import ExpectedSetting

#: Options of the catalogue that no adapter we hold the source of has read.
UNREAD = {"op_tune_mode", "es_cluster_config", "mstune_mode"}
FORMS = {
    "b": {"flag", "word"},
    "i": {"number", "clamped"},
    "s": {"text", "mode", "folder"},
    None: {"text", "flag"},
}


def test_every_option_has_a_row_and_every_row_an_option() -> None:
    assert set(load_wires()) == set(catalog.record_names()) - UNREAD


def test_a_form_fits_the_field_that_the_adapter_reads() -> None:
    cases = load_wires()
    assert cases
    for name, row in cases.items():
        option = catalog.find_option(name)
        assert option is not None
        assert row.form in FORMS[option.field], name
        assert set(row.key_forms.values()) <= {"inverted", "closed"}, name
        assert row.source, name


def test_names_of_other_rows_are_rows_and_keys_are_of_one_option() -> None:
    owners: dict[tuple[str, str], str] = {}
    cases = load_wires()
    assert cases
    for name, row in cases.items():
        assert all(
            other in load_wires() for other in (*row.needs, *filter(None, [row.overridden_by]))
        ), name
        for stage in STAGES:
            for key in row.keys(stage):
                assert owners.setdefault((stage, key), name) == name, key


def test_the_attribute_of_tensorflow_2_is_the_one_that_the_option_is_spelled_as() -> None:
    by_option = {
        option: path for path, option in catalog.options_by_spelling("global_options").items()
    }
    assert {name for name, row in load_wires().items() if row.tf2} == set(by_option)
    assert by_option
    for name, path in by_option.items():
        assert load_wires()[name].tf2["leaf"] == path.rpartition(".")[2]


def test_a_default_of_the_catalogue_is_what_stands_there_unset() -> None:
    """Defaults from manuals and those from sources agree, if there are both."""
    odd = []
    for name, row in load_wires().items():
        option = catalog.find_option(name)
        texts = {
            text
            for stage in STAGES
            for key, text in row.keys(stage).items()
            if text not in (NO_KEY, "") and key not in row.key_forms
        }
        if option is None or option.default is None or not texts or row.form == "folder":
            continue
        if ExpectedSetting(row, option.default).plain not in texts:
            odd.append((name, option.default, texts))
    assert odd == []


def test_generations_are_newest_first_and_their_titles_tell_them_apart() -> None:
    names = [generation.name for generation in wire.load_generations() if not generation.tf2]
    assert names == sorted(names, reverse=True)
    titles = [
        title
        for generation in wire.load_generations()
        if not generation.tf2
        for title in (generation.init, generation.session, generation.graph)
        if title
    ]
    assert len(titles) == len(set(titles))
    known = {
        name
        for generation in wire.load_generations()
        for name in (generation.name, *generation.also)
    }
    assert {
        name for row in load_wires().values() for name in (*row.logged_by, *row.unset_in)
    } <= known
    assert {f"TF 2 {name}" for row in load_wires().values() for name in row.tf2_logged_by} <= known
