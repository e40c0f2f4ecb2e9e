"""A name that is read before it has a value has none, and no preset says otherwise."""

from __future__ import annotations

import pytest
from importing import HEAD, imported

USE = 'custom_op.parameter_map["precision_mode"].s = mode'


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("mode = 'force_fp32'\nUSE\n", True),
        ("USE\nmode = 'force_fp32'\n", False),
        ("try:\n    USE\nexcept NameError:\n    pass\nmode = 'force_fp32'\n", False),
        ("try:\n    if a:\n        mode = 'force_fp32'\n    USE\nexcept NameError:\n    pass\n", False),
        ("if a:\n    mode = 'force_fp32'\ntry:\n    USE\nexcept NameError:\n    pass\n", False),
        ("try:\n    mode = 'force_fp32'\n    USE\nexcept ValueError:\n    pass\n", True),
        ("mode = 'force_fp32'\ntry:\n    if a:\n        USE\nexcept ValueError:\n    pass\n", True),
        ("if a:\n    mode = 'force_fp32'\nelse:\n    mode = 'force_fp32'\nUSE\n", True),
        ("first = mode\nmode = 'force_fp32'\nmode = first\nUSE\n", False),
        ("for i in things:\n    if i:\n        USE\n    mode = 'force_fp32'\n", True),  # a later turn has it
        ("def main():\n    USE\nmode = 'force_fp32'\nmain()\n", True),
        ("def main():\n    USE\nmain()\nmode = 'force_fp32'\n", False),
        ("def main():\n    USE\ndef start():\n    main()\nstart()\nmode = 'force_fp32'\n", False),
        ("def main():\n    USE\ndef start():\n    main()\nmode = 'force_fp32'\nstart()\n", True),
        ("def main():\n    USE\nif __name__ == '__main__':\n    tf.app.run(main)\nmode = 'force_fp32'\n", False),
        ("class Net:\n    def build(self):\n        USE\nNet().build()\nmode = 'force_fp32'\n", False),
        ("class Net:\n    def build(self):\n        USE\nmode = 'force_fp32'\nNet().build()\n", True),
        ("class Net:\n    USE\nmode = 'force_fp32'\n", False),
        ("@wraps\ndef main():\n    USE\nmode = 'force_fp32'\n", True),  # who needs it may do so at any time after
        ("def main():\n    def put():\n        USE\n    put()\n    mode = 'force_fp32'\nmain()\n", False),
        ("def main():\n    def put():\n        USE\n    mode = 'force_fp32'\n    put()\nmain()\n", True),
    ],
)  # fmt: skip
def test_a_name_that_has_no_value_yet_is_not_carried_over(text: str, known: bool) -> None:
    [one] = [one for one in imported(HEAD + text.replace("USE", USE)).found if one.key == "precision_mode"]
    assert (one.reason == "" and one.value == "force_fp32") is known, one.reason


def test_a_class_that_is_read_before_it_is_there_says_nothing() -> None:
    use, made = 'custom_op.parameter_map["precision_mode"].s = Cfg.mode\n', "class Cfg:\n    mode = 'force_fp32'\n"
    [early] = imported(HEAD + use + made).found
    [late] = imported(HEAD + made + use).found
    assert early.reason == "depends on the class Cfg, which is read before it is there"
    assert (late.value, late.reason) == ("force_fp32", "")
