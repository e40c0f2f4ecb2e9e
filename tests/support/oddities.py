"""Odd things to be given: values, words, specs, revisions, conditions and expressions. None names a place outside of a folder."""

from __future__ import annotations

#: What TOML can hold, and what it cannot, as it is written.
VALUES = (
    "true", "0", "1", "-1", "9" * 5000, "9" * 4301, "0x" + "f" * 4000, "1e400", "nan", "-inf", "-0.0", '""', '"\\u0000"', '"\\ud7ff"', "[]",
    "{}", "[[]]", '[1, "a"]', "{ a = { b = [1] } }", "1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", f'"{"x" * 70_000}"', "'''\n'''",
    '{ launcher = "rank" }', "{ launcher = 1 }", "9223372036854775807", "9223372036854775808", "-9223372036854775809", '"${A}"', '"a\\nb"',
    '"\\u001b[31m"', '"é"', '"\\U0001F600"', '"32:1,2;3"', '"0,1"', "[[-1, 2], [3]]", '"1;2"', '"../x"', '"/nowhere/a b"', '"fp16"',
    '"mixed_float16"', "[" * 120 + "]" * 120, "{a=" * 120 + "1" + "}" * 120, "{" + ".".join("a" * 150) + "=1}", "yes", "", "=", '"1,"',
    '":"', '"{}"', '"[1,2"', f"[[{'9' * 4301}, 1], [2, 3]]", '"' + "9" * 4301 + '"', '"' + "1," * 3000 + '"', '{ "" = 1 }',
    "[{ a = 1 }, { a = 2 }]", '"-1"', '"1e999"',
)  # fmt: skip
WORDS = (
    "", "-", "--", "@", ":", ".", "*", "é", "\udcff", "a b", "a\nb", "\x1b[31m", "x" * 300, "a/" * 300 + "a", "9" * 4301, "-1", "0", "{}",
    "[]", "%s", "$HOME", "'", '"', "\\", "None", "a+b", "+", "a@", "@a", "a@b@c", "a:b", "=", "a=", "=a", "a.b.c", "CON", "nan", "\u202e",
)  # fmt: skip
SPECS = (
    "base", "leaf", "mixed", "mixed+leaf", "odd", "odd+leaf", "leaf+odd", "base@HEAD", "leaf@1", "leaf@1.0.0", "odd@HEAD~1", "odd@main",
    "leaf@9", "base@{1}", "./odd.toml", "profiles/odd.toml", "profiles", "-", "builtin:bert-training", "builtin:odd", "team:odd", "nope",
    "leaf@", "odd.toml", "a/../leaf", "leaf+leaf", "leaf@HEAD..", "HEAD", "profiles/odd.toml@HEAD", "builtin:bert-training@1",
    "mixins/profiling",
)  # fmt: skip
REVISIONS = (
    "HEAD", "HEAD~1", "HEAD~1..HEAD", "main", "HEAD..", "..", "...", "@", "HEAD^{tree}", "HEAD:profiles", "-x", "0000000", "leaf/v1.0.0",
)  # fmt: skip
CONDITIONS = (
    "hccl_timeout > 1800", "hccl_timeout", "'a'", "not x", "not " * 300 + "x", "((" * 200, "a is set", "a is 1", "1 < 2 < 3",
    "precision_mode == 1", "a.b.c == 'x'", "a.b.c", "not a.b", "a.b or hccl_timeout == 1", "product.x", "scenario.x == 1", "env",
    "options.x.y", "a.b in ('x',)", "a.b is set and c.d.e", "env.X == 1", "env == 1", "(a) is set", "a * b > 1", "a in (1, 2)", "a in 1",
    "-a == 1", "-'a' == 1", "a == -True", "a[0] == 1", "a == (b,)", "scenario", "a = 1", "lambda: 1", "a == b''", "a == ...", "a == 1j",
    "9" * 4301 + " == a", "a == 1e999", "x is unset and", "\0", "hccl_timeout in ('a', 1)", "dynamic_dims == ((1,),)", "a == b == c",
    "f'{a}' == 1", "options.hccl_timeout > 1", "not (a == 1)", "product == 'x'",
)  # fmt: skip
EXPRESSIONS = (
    "1", "'fp16'", "b'fp16'", "9" * 4301, "0x" + "f" * 3573, "0b" + "1" * 20_000, "-0x" + "f" * 3600, "[0x" + "f" * 3600 + "]",
    "{'a': 0x" + "f" * 3600 + "}", "10 ** 1000", "10 ** 2000", "-" * 80 + "1", "10 ** 10 ** 10", "'a' * 10 ** 10", "1 << 10 ** 9",
    "str(" * 60 + "1" + ")" * 60, "FLAGS.x", "os.environ['A']", "'%s' % 1", "'%d' % 'a'", "'{}'.format()", "f'{x!r:>{10**9}}'", "1 / 0",
    "1 % 0", "0 ** -1", "-'a'", "[1][5]", "{}['a']", "'a'[9]", "int('x')", "int('9' * 5000)", "str(10 ** 5000)", "b'\\xff'", "'\\ud800'",
    "1e400", "1j", "...", "None", "True", "lambda: 0", "x if y else z", "[i for i in range(10**9)]", "','.join(['a'] * 10**8)",
    "range(10 ** 12)", "(yield)", "await x", "{**a}", "tf.compat.as_bytes('a')", "tf.compat.as_bytes()", "str()", "int()",
    "'a'.encode('x')", "json.dumps({'a': 1})", "os.path.join('a', 1)", "~'a'", "not 1", "1 < 'a'", "'é' * 3", "' '.join(1)",
    "'a'.join('b')", "'%(a)s' % {}", "round(1e999)", "10.0 ** 400", "max()", "len(5)", "'%*d' % (10 ** 9, 1)", "format(1, '9999999999d')",
    "'a'.ljust(10 ** 10)", "bytes(10 ** 10)", "1e308 * 10", "2 ** -1075", "hash", "(1).real",
)  # fmt: skip
VERSIONED = ("leaf@1.0.0", "leaf@1", "leaf@v1.0.0", "leaf@2.0.0", "base@1.0.0", "v1.0.0", "@1.0.0", "leaf@1.0.0-rc.1", "leaf@")
NEW_NAMES = (
    "new", "nlp/new", "base", "BASE", "leaf/x", "base.toml", "profiles/x", "../x", "/x", ".x", "a//b", "HEAD", "new@1", "team:x", "é",
    "x" * 300,
    "a/" * 130 + "a", "npuprof", "base/base", "",
)  # fmt: skip
#: Addresses of sources: none leads out of the folder, and none is reached over a network.
ADDRESSES = (
    ".", "./.git", "nope", "file:///nonexistent", "file://.", "", "-x", "--upload-pack=x", "ext::sh -c x", "file:///nonexistent/a b", "é",
    "file:///nonexistent/\udcff", "fd::1", "x" * 3000, "file:///nonexistent?a#b",
)  # fmt: skip
