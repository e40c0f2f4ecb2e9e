"""Which edits of a text leave a setting alone: only what is certain without a parser."""

from __future__ import annotations

import pytest

from npuprof.history.plain_edits import leaves_setting_alone

TEXT = (
    '[profile]\nscenario = "training"\n[options]\nhccl_timeout = 1 # s\nop_wait_timeout = 2\ndump_mode = "all"\n[env]\nhccl_timeout = "a"\n'
)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ("= 2", "= 30", True), ("= 2", "= true # yes", True), ('"all"', '"input"', True), ('"a"', '"b"', True), ("= 2", "= 2", True),
        ("= 1", "= 9", False), ("# s", "# seconds", False), ("training", "online-inference", False), ("= 2", "= [2]", False),
        ("= 2", "= 2\n", False), ('"all"', r'"\u0061"', False), ("op_wait", "op_execute", False), ("= 2", "= { a = 1 }", False),
        ("[env]", "[atc]", False), ("dump_mode = \"all\"", "modify_mixlist = \"all\"", False),
        ("[options]", "[[override]]", False), ("= 2", '= """', False),
    ],
)  # fmt: skip
def test_a_setting_is_left_alone_by_plain_values_of_others_only(was: str, now: str, expected: bool) -> None:
    for old, new in ((TEXT, TEXT.replace(was, now, 1)), (TEXT.replace(was, now, 1), TEXT)):
        assert leaves_setting_alone("hccl_timeout", old.encode(), new.encode()) is expected


@pytest.mark.parametrize("header", ["[options.modify_mixlist]", "[override.options]", "[profile.versions]", "[torch_npu]", '["options"]'])
def test_values_below_other_headers_are_left_to_the_parser(header: str) -> None:
    old, new = (f"{header}\na = {number}\n".encode() for number in (1, 2))
    assert not leaves_setting_alone("hccl_timeout", old, new)
