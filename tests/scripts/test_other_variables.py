"""Variables of other programs: ``import`` carries over or lists every exported variable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npuprof.scripts.preset import build_drafts, format_draft
from npuprof.scripts.preset_text import explain_nothing
from support.importing import imported

#: Of the catalogue, of torch_npu, one letter from a known one, of Ascend and unknown, of other
#: programs, unknown, never in a preset.
NAMES = (
    "HCCL_CONNECT_TIMEOUT",
    "ASCEND_GLOBAL_LOG_LEVEL",
    "TASK_QUEUE_ENABLE",
    "CPU_AFFINITY_CONF",
    "PYTORCH_NPU_ALOC_CONF",
    "HCCL_OP_BASE_FFTS_MODE",
    "RANK_ID",
    "OMP_NUM_THREADS",
    "LD_LIBRARY_PATH",
    "PATH",
    "FOO_X",
    "MY_TOKEN",
    "HOME",
    "NPUPROF_STORE",
)
#: A value that is constant, and one that is not, in each language.
SHELL_VALUES = ("1800", "$1", "${X:-2}", "'a b'")
#: A line of a file that sets one variable.
LINES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "x.sh": (
        "#!/bin/bash\n",
        (
            "export {}={}",
            "declare -x {}={}",
            "env {}={} python t.py",
            "{}={} python t.py",
            "[ $1 ] && export {}={}",
            "docker run -e {}={} img",
            "srun --export={}=1 python t.py",
            "bash -c 'export {}=1; python t.py'",
        ),
        SHELL_VALUES,
    ),
    "Dockerfile": (
        "FROM x\n",
        ("ENV {}={}", "ENV {} {}", "RUN export {}={}"),
        ("1800", "'a b'", "$y"),
    ),
    "x.env": ("# variables\n", ("{}={}", "export {}={}"), ("1800", "'a b'", "$y")),
    "compose.yaml": (
        "services:\n  a:\n    image: x\n    environment:\n",
        ("      - {}={}",),
        ("1800", "${y}"),
    ),
    "pod.yaml": (
        "kind: Pod\nspec:\n  containers:\n    - name: a\n      env:\n",
        ("        - {{name: {}, value: {}}}",),
        ('"1800"', "1800", '"$(y)"'),
    ),
    "x.py": (
        "import os, sys\n",
        (
            'os.environ["{}"] = {}',
            'os.environ.setdefault("{}", {})',
            'os.putenv("{}", {})',
            'os.environ.update({{"{}": {}}})',
            "os.environ.update({}={})",
        ),
        ('"1800"', "sys.argv[1]", "5"),
    ),
}


@given(st.data())
def test_what_is_carried_over_and_what_is_listed_are_all_assignments_of_a_file(data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(LINES)))
    head, forms, values = LINES[kind]
    names = data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True))
    lines = [
        data.draw(st.sampled_from(forms)).format(name, data.draw(st.sampled_from(values)))
        for name in names
    ]
    text = head + "".join(f"{line}\n" for line in lines)
    wanted = {(name, head.count("\n") + place) for place, name in enumerate(names, 1)}
    found = imported(text, kind)
    made = build_drafts(found)
    listed = [
        *(note.setting for draft in made for note in draft.notes),
        *(made[0].other_variables if made else found.other_variables),
    ]
    carried = [origin for draft in made for origin in draft.origins.values()]
    assert sorted((setting.name, setting.line) for setting in (*carried, *listed)) == sorted(
        wanted
    ), text
    report = "".join(map(format_draft, made)) if made else explain_nothing(found, made, True)
    assert not [name for name in names if name not in report], report


SCRIPT = """\
MODEL=bert
export HCCL_CONNECT_TIMEOUT=1800
export FOO_X=1 MY_TOKEN=hf_secret
export PATH=/opt/bin:$PATH
for step in 1 2; do
  while IFS= read -r line; do env FOO_X=2 python $MODEL.py; done < list
done
export MODEL
unset MY_TOKEN
"""


def test_variables_of_other_programs_are_listed_by_reason_with_lines_and_no_values() -> None:
    (draft,) = build_drafts(imported(SCRIPT, "x.sh"))
    _, listed = format_draft(draft).split("# Not carried over:\n")
    assert listed == (
        "# x.sh: unknown to the catalogue: MODEL (line "
        "1), FOO_X (line 3, line 6), MY_TOKEN (line 3)\n"
        "# x.sh: not read by software for Ascend: PATH (line 4)\n"
    )


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ('os.environ[sys.argv[1]] = "1"', "its name depends on sys.argv: a computed name (line 3)"),
        (
            'for name in ("FOO_A", "FOO_B"):\n    os.environ[name] = "1"',
            "unknown to the catalogue: FOO_A (line 4), FOO_B (line 4)",
        ),
        ('os.environ["HOME"] = "/x"', "not allowed in a preset: HOME (line 3)"),
    ],
)
def test_a_python_script_lists_names_that_it_computes(line: str, listed: str) -> None:
    (draft,) = build_drafts(imported(f'import os, sys\nos.environ["HCCL_ALGO"] = "x"\n{line}\n'))
    assert format_draft(draft).partition("# Not carried over:\n")[2] == f"# x.py: {listed}\n"
