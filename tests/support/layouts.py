"""Unusual TOML, written and random: comments, blank lines, dotted keys, all forms of tables."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from typing import Any

from npuprof.document import keys

INNER = ["k1", "k2", "k-3", "k 4"]


#: Valid TOML that is easily got wrong: everything the language allows, and no editor expects.
TEXTS = {
    "a sub-table above its table": "[options.modify_mixlist]\nx = 1\n\n[options]\ny = 2\n",
    "a table that only its sub-table names": (
        "# why\n[options.modify_mixlist]\nblack-list = { to-add = ['S'] }\n"
    ),
    "several of them": "[a.b.c.d]\nx = 1\n",
    "tables out of order": "[a.x]\nk = 1\n\n[b]\nk = 1\n\n[a.y]\nk = 2\n[b.z]\nq = 1\n[a]\nt = 1\n",
    "a table after what is deep in it": "[x.y.z.w]\n[x]\nk = 1\n",
    "dotted keys": "a.b.c = 1\na.b.d = 2\na.e = 3\n[t]\nx.y.z = 1\nx.y.w = 2\nx.v = 3\n",
    "dotted keys and a sub-table": (
        "[fruit]\napple.color = 'red'\napple.taste.sweet = true\n"
        "\n[fruit.apple.texture]\nsmooth = true\n"
    ),
    "blanks in keys": "[ a . b ] # c\nx . y  =  1 # d\n\"q r\" . 's' = 2\n",
    "keys in quotes": (
        '["a.b"]\n"c.d" = 1\n\'e"f\' = 2\n"" = 3\n"\\u00e9\\n" = 4\n[a.\'c\']\n"b" = 1\n'
    ),
    "keys like values": "1 = 1\n2.2 = 3\n[3]\n4 = 5\n[true]\ninf = 1\n",
    "an array of tables": "[[a]]\nx = 1\n\n[[a]]\nx = 2\n[a.b]\ny = 1\n[[a]]\n",
    "an array in another": (
        "[[a]]\n[[a.b]]\nx = 1\n[[a.b]]\nx = 2\n[a.b.c]\nz = 1\n[[a]]\nn = 2\n[[a.b]]\nx = 3\n"
    ),
    "an array with a table between": "[[a]]\nx = 1\n\n[o]\nk = 1\n\n[[a]]\nx = 2\n",
    "an array below a table": "[t]\nk = 1\n[[t.l]]\nx = 1\n\n[[t.l]]\nx = 2\n",
    "inline tables": (
        "t = { a = 1, b = { c = [1, { d = 2 }] }, 'e f'.g = 3 }\nu = {}\nv = { }\n"
        "l = [{ a = 1 }, { b = 2 }, ]\n"
    ),
    "lists": (
        "a = []\nb = [ ]\nc = [\n]\nd = [ # c\n  1, # one\n  # two\n  2\n  # end\n]\ne = [1,2\n"
        ",3\n]\nf = [[1, 2], [], [[3]]]\n"
    ),
    "strings of several lines": (
        's = """\n[no header]\nx = 1\n"""\nt = \'\'\'\n'
        '# no comment\n\'\'\'\nu = """a\\\n   b\\"""" \n'
    ),
    "quotes in strings": 'v = """"q""""\nw = "\\"# no comment"\nx = \'"\'\n',
    "brackets in comments": 'a = "[b]" # [c]\n[b] # [d] # ] "\'\nx = 1\n',
    "every type": (
        "i = 0xff\nu = 1_000\nf = 1e3\ng = -inf\nn = nan\nt = 07:32:00\nd = 1979-05-27\n"
        "e = 1979-05-27 07:32:00Z\nz = -0.0\n"
    ),
    "empty tables": "[a]\n[a.b]\n[c.d]\n",
    "no last newline": "[a]\nx = 1",
    "a comment without newline": "[a]\nx = 1\n# end",
    "only a header": "[a]",
    "nothing": "",
    "lines that end in CRLF": (
        '# c\r\n[a]\r\nx = [\r\n  1, # one\r\n  2,\r\n]\r\ns = """a\r\nb"""\r\n\r\n[b]\r\ny = 1\r\n'
    ),
    "lines that end in both": "[a]\r\nx = 1\ny = 2\r\n\n[b]\nz = 3\r\n",
    "what other languages end lines with": (
        "# a\x85b\u2028c\n[a] # \u2029\nx = 'a\x85b\u2028' # \x85\ny = 1\n# \u2028\nz = 2\n"
    ),
    "tabs": "\t[a]\t\n\t\tx\t=\t1\t# c\n\t\ty = 2\n",
    "indents": "[a]\n  x = 1\n  [a.b]\n    y = 2\n    # c\n    z = 3\n  [a.c]\n    y = 2\n",
    "a dotted key that is deep": ".".join(f"k{depth}" for depth in range(100)) + " = 1\n",
    "a list that is deep": "a = " + "[" * 120 + "1" + "]" * 120 + "\nb = 1\n",
    "appended to one table": "[append.options.modify_mixlist]\nx = [1]\n",
    "appended with dotted keys": "append.options.a = [1]\n",
    "appended in both ways": "[append]\noptions.x = [1]\n[append.env]\ny = [2]\n",
    "overrides": (
        "[[override]]\nmatch.product = 'b'\noptions.a = 1\n\n[[override]]\nmatch.cann = 'a'\n"
        "[override.options.deep]\nx = 1\n"
    ),
    "overrides inline": (
        "override = [{ match = { product = 'a' }, options = { a = 1 } }]\n"
        "options = { a = 1, b = [1, 2] } # c\nenv.A = 1\n"
    ),
}


def roll_value(dice: random.Random, depth: int = 0) -> Any:
    """Return a value; tables and lists no deeper than two levels."""
    kind = dice.randrange(8 if depth < 2 else 5)
    if kind < 3:
        return [dice.randrange(5), dice.choice([True, False]), dice.choice([1.5, 2.0])][kind]
    if kind < 5:
        return dice.choice(["a", "b#", "it's", 'q"', "é\n", "c:\\x", "[x]", "a = 1"])
    if kind == 5:
        return [roll_value(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 6:
        return [dice.choice("ABCDE") for _ in range(dice.randrange(5))]
    return {dice.choice(INNER): roll_value(dice, depth + 1) for _ in range(dice.randrange(3))}


def roll_value_text(dice: random.Random, value: Any, indent: str = "") -> str:
    """Return a value as TOML, lists now and then with a line and a comment for each element."""
    if not isinstance(value, list) or not value or dice.random() < 0.5:
        return keys.format_toml_value(value)
    text = "[\n"
    for place, item in enumerate(value):
        if dice.random() < 0.2:
            text += f"{indent}    {roll_comment(dice)}\n"
        comma = "," if place < len(value) - 1 or dice.random() < 0.5 else ""
        beside = f" {roll_comment(dice)}" if dice.random() < 0.3 else ""
        text += f"{indent}    {roll_value_text(dice, item, indent + '    ')}{comma}{beside}\n"
    return f"{text}{indent}]"


def roll_comment(dice: random.Random) -> str:
    """Return a comment that occurs nowhere else."""
    return f"# c{dice.randrange(10**9)} [x] = \"'"


def roll_document(dice: random.Random) -> str:
    """Return random valid TOML: headers and keys in any order, form, indent and line ending."""
    names = ["a", "b", '"d.e"', "'f g'", "options", "append", "override"]
    text = ""
    for _ in range(dice.randrange(1, 14)):
        before = dice.choice(
            [
                "",
                "",
                "",
                "\n",
                f"{roll_comment(dice)}\n",
                f"\n{roll_comment(dice)}\n",
                f"{roll_comment(dice)}\n\n",
            ]
        )
        kind = dice.random()
        key = dice.choice([".", ".", ". ", " ."]).join(
            dice.choices(names, k=dice.choice([1, 1, 2, 3]))
        )
        value = roll_value(dice)
        line = (
            f"{key}{dice.choice([' = ', '=', '  =  '])}{roll_value_text(dice, value)}"
            if kind > 0.35
            else f"[[{key}]]"
            if kind > 0.25
            else f"[ {key}]"
        )
        indent = dice.choice(["", "", "  ", "\t"])
        end = dice.choice(["", f" {roll_comment(dice)}", "  "])
        longer = f"{text}{before}{indent}{line}{end}\n"
        if parse_toml(longer) is not None:
            text = longer
    text += dice.choice(["", "", "\n", f"{roll_comment(dice)}\n", f"\n{roll_comment(dice)}\n\n"])
    endings = dice.choice([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"]])
    text = "".join(line + dice.choice(endings) for line in text.split("\n")[:-1])
    return text.rstrip("\r\n") if dice.random() < 0.15 else text


def parse_toml(text: str) -> dict[str, Any] | None:
    """Return what a text says, None where it is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def list_paths(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a document."""
    if path:
        yield path
    for part, item in (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    ):
        yield from list_paths(item, (*path, part))
