"""The classes of other surfaces accept what the catalogue has for the adapter's own options."""

from __future__ import annotations

import pytest

from npuprof import catalog
from npuprof.catalog import attribute_values
from support.recorders import ADAPTERS_OWN, ARGUMENTS, LEAVES, NESTED

CLASSES = catalog.load_config_classes()


def test_every_attribute_is_known_with_what_its_class_takes() -> None:
    assert set(attribute_values.list_attribute_paths()) >= ADAPTERS_OWN[1]
    for path in ADAPTERS_OWN[1]:
        assert set(attribute_values.list_attribute_values(path)) == set(
            LEAVES[path][0] or attribute_values.ANYTHING
        ), path


@pytest.mark.parametrize("name", [name for name in CLASSES if not CLASSES[name].until])
def test_a_class_takes_its_arguments_in_the_order_of_its_signature(name: str) -> None:
    own = [argument for argument in ARGUMENTS[name] if (name, argument) in ADAPTERS_OWN[0]]
    assert list(CLASSES[name].positional) == own
    assert not set(CLASSES[name].formerly) & set(own)
    for argument in (
        *CLASSES[name].required,
        *CLASSES[name].stored,
        *CLASSES[name].exact,
        *CLASSES[name].since,
    ):
        assert argument in own


def test_an_object_is_taken_where_its_class_says() -> None:
    taken = {
        made.taken_as: made.name for made in CLASSES.values() if made.argument and not made.until
    }
    assert taken == NESTED


def test_what_is_written_for_an_option_is_taken_and_read_back() -> None:
    judged = 0
    cases = catalog.options_by_spelling("global_options")
    assert cases
    for path, name in cases.items():
        option = catalog.find_option(name)
        assert option is not None
        for choice in option.choices or ((True, False) if option.field == "b" else ()):
            carried, written = option.write_on("global_options", choice)
            if carried:
                assert attribute_values.is_attribute_value(path, written), (path, written)
                assert attribute_values.read_attribute_value(path, written) == choice
                judged += 1
    assert judged > 60


@pytest.mark.parametrize(
    ("path", "release", "state"),
    [
        ("execute_times", "9.2.0", "Y"),
        ("execute_times", "9.0.0", "Y"),
        ("execute_times", "8.0.0", "?"),
        ("execute_times", "7.0.0", "."),
        ("overflow_flag", "6.0.1", "Y"),
        ("overflow_flag", "6.0.RC1", "."),
        ("precision_mode", "9.0.0", "Y"),
        ("no_such", "9.0.0", "."),
    ],
)
def test_an_attribute_is_there_from_its_release_on(path: str, release: str, state: str) -> None:
    assert attribute_values.find_attribute_release(path, release) == state
