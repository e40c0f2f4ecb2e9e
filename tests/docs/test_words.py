"""A hundred mistakes that people make, and the words that help: what is wrong, where, and what to do."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from support.lanes import rest_at_night
from support.repositories import Repo
from support.running import Run

BERT = '[profile]\nscenario = "training"\n\n[options]\nprecision_mode_v2 = "mixed_float16"\nhccl_timeout = 600\n'

#: What is typed, the exit code, and what has to be said.
TYPED = [
    # a verb or an option by another name
    ("shwo bert", 2, "No such command 'shwo'", "show"),
    ("help chnagelog", 2, "did you mean 'changelog'?"),
    ("help NP202", 2, "npuprof rule CODE"),
    ("check --json", 2, "--format"),
    ("show bert --soc Ascend910B2", 2, "--product"),
    ("render bert --out x.py", 2, "--output"),
    ("list --filter x", 2, "--where"),
    ("migrate bert --to 9.0.0", 2, "--cann"),
    ("log bert --limit 3", 2, "--number"),
    ("diff --revision HEAD", 2, "--rev"),
    # what cannot be a name, and hints that can be followed
    ("new 'my preset'", 2, "write my-preset"),
    ("new ../x", 2, "write x"),
    ("rename bert 'a b'", 2, "write a-b"),
    ("show 'bert + held'", 2, "write bert+held"),
    ("show bert+", 2, "names no preset on one side of a +", "write bert"),
    ("show @HEAD", 2, "bert-training@HEAD", "check --rev HEAD"),
    ("show 'be rt'", 2, "did you mean 'bert'?"),
    ("commit 'my message'", 2, "'my message' cannot be the name of a profile"),
    ("diff bert..held", 2, "no preset 'bert..held'"),
    ("show bert:1.0.0", 2, "there is no source 'bert'", "written bert@VERSION"),
    ("list --where 'hccl_timeout > 600 && hccl_timeout < 700'", 2, "write 'hccl_timeout > 600 and hccl_timeout < 700'"),
    ("list --where 'hccl_timeout == 1 || dump_path == \"a || b\"'", 2, "hccl_timeout == 1 or dump_path == \"a || b\"'"),
    ("list --where '!(hccl_timeout == 1)'", 2, "write 'not (hccl_timeout == 1)'"),
    ("new bert --extends bert", 2, "bert.toml exists already"),
    ("new BERT --extends nothing", 2, "there is a preset 'bert' already"),
    ("show bert --set profile.scenario=x", 2, "'profile.scenario' is no setting", "npuprof set NAME profile.scenario=VALUE"),
    # one thing in the place of another
    ("check train.py", 2, "npuprof scan train.py"),
    ("run -- sh x.sh", 2, "no preset stands before the command 'sh'", "npuprof run NAME -- sh x.sh"),
    ("list --store https://git.example.org/x.git", 2, "npuprof source add NAME URL"),
    ("unset bert hccl_timeout hcl_timeout", 2, "neither sets nor inherits hcl_timeout"),
    # something left out
    ("set bert", 2, "hccl_timeout=600"),
    ("migrate bert", 2, "--cann", "9.0.0"),
    ("run bert", 2, "no command to run", "npuprof run NAME -- python train.py"),
    ("run bert python train.py --epochs 3", 2, "--epochs", "The command stands behind --"),
    ("inject train.py", 2, "which preset is to go into train.py?"),
    ("show bert@", 2, "the revision behind @ is missing", "NAME@HEAD"),
    ("restore bert", 2, "names no revision", "bert@HEAD"),
    ("verify bert", 2, "npuprof verify --tags bert"),
    # a name of another section
    ("explain bert HCCL_CONNECT_TIMEOUT", 0, "env.HCCL_CONNECT_TIMEOUT is not set"),
    ("explain bert soc_version", 0, "atc.soc_version is not set"),
    ("explain held MY_VAR", 0, "env.MY_VAR = 1"),
    ("unset held MY_VAR", 2, "write env.MY_VAR"),
    ("list --where MY_VAR==1", 2, "write env.MY_VAR"),
    ("log held MY_VAR", 2, "has never set 'MY_VAR'", "variables are env.NAME"),
    ("log held HCCL_CONNECT_TIMEOUT", 0, "never set env.HCCL_CONNECT_TIMEOUT"),
    # what belongs to another flag
    ("env bert --to bash", 2, "--shell"),
    ("show bert --product a3", 2, "atlas-a3"),
    # names of presets, files, revisions
    ("show brt", 2, "no preset 'brt'", "did you mean 'bert'?"),
    ("show bert.toml", 2, "did you mean the preset 'bert'?", "without .toml"),
    ("show gone.toml", 2, "there is no file 'gone.toml'"),
    ("show bert@nope", 2, "unknown revision 'nope'", "git log --oneline"),
    ("show bert@9.9.9", 2, "no released version 9.9.9", "npuprof release bert"),
    ("list bert", 2, "npuprof show NAME"),
    ("new bert", 2, "profiles/bert.toml exists already"),
    ("new ../x", 2, "cannot be the name of a profile"),
    ("log gone", 2, "no commit has a profile 'gone'", "npuprof list"),
    ("log draft", 2, "commit it first: npuprof commit draft"),
    ("diff HEAD", 2, "'HEAD' is a revision, and no preset", "npuprof diff --rev HEAD", "NAME@HEAD"),
    ("diff HEAD..HEAD", 2, "npuprof diff --rev HEAD..HEAD"),
    ("scan gone.py", 2, "gone.py", "no such file", "0 files scanned"),
    ("scan profiles/bert.toml", 0, "no script", "npuprof check profiles/bert.toml"),
    ("import gone.py", 2, "gone.py", "no such file"),
    ("list --store .", 2, "'.' is no store of presets: those are in profiles", "--store profiles"),
    ("list --store gone", 2, "the store 'gone' is not a folder", "npuprof init"),
    ("list --store empty", 0, "there is no preset in empty", "npuprof init", "npuprof new NAME"),
    ("check --store empty", 2, "nothing was checked", "npuprof init"),
    ("show bert --store empty", 2, "empty holds no preset yet", "npuprof new bert"),
    ("init", 2, "exists already", "npuprof init --ci NAME"),
    # keys
    ("explain bert hccl_timeot", 2, "the catalogue does not know it", "did you mean 'hccl_timeout'"),
    ("option hccl_timeot", 2, "did you mean 'hccl_timeout'"),
    ("log bert misspelt", 2, "has never set 'misspelt'", "npuprof options"),
    ("unset bert gone", 2, "neither sets nor inherits gone", "npuprof show bert"),
    ("set bert products=atlas-a2", 2, "products belongs below [profile]", "profile.products"),
    ("set bert HCCL_CONNECT_TIMEOUT=600", 2, "HCCL_CONNECT_TIMEOUT belongs below [env]"),
    ("set bert env.hccl_timeout=600 --dry-run", 0, "hccl_timeout is a session option: it belongs below [options]"),
    ("set bert env.HCCL_CONECT_TIMEOUT=600 --dry-run", 0, "did you mean 'HCCL_CONNECT_TIMEOUT'?"),
    ("set bert hcom_paralel=true", 2, "did you mean 'hcom_parallel'?"),
    ("show bert --set misspelt=1", 0, "unknown option 'misspelt'"),
    ("set bert hccl_timeout", 2, "'hccl_timeout' is not KEY=VALUE", "write KEY=VALUE without blanks"),
    ("list --where hccl_timeout", 2, "hccl_timeout is set"),
    ("list --where hccl_timeout=600", 2, "write 'hccl_timeout == 600'"),
    ("list --where \"hccl_timeout == '600'\"", 2, "holds a whole number", "write 'hccl_timeout == 600'"),
    ("list --where \"hcom_paralel == true\"", 2, "hcom_paralel", "did you mean 'hcom_parallel'"),
    # values
    ("set bert precision_mode_v2=fp17", 2, 'did you mean "fp16"?', "profiles/bert.toml:5"),
    ("set bert deterministic=yes", 2, "write deterministic = 1"),
    ("set bert precision_mode=force_fp16", 2, "precision_mode and precision_mode_v2 are both set"),
    ("render bert --set hccl_timeout=-5", 2, "--set", "out of range"),
    ("show bert --product 910B2", 2, "did you mean 'Ascend910B2', a chip of 'atlas-a2'?"),
    ("show bert --product ascend-910b", 2, "or 'Ascend910B', a chip of"),
    ("show bert --product gpu", 2, "known are", "Ascend910B2"),
    ("show bert --cann 99.0", 2, "unknown CANN release '99.0'", "9.0.0"),
    ("render bert --to tf2", 2, "known are", "global-options"),
    ("env bert --shell csh", 2, "did you mean 'tcsh'"),
    ("env bert -o folder/", 2, "folder/: it names a folder", "name a file in it"),
    ("check --format xml", 2, "known are text, json"),
    ("release bert 1.0", 2, "'1.0' is not a version", "1.2.0"),
    ("run bert -- gone-command", 127, "there is no such command", "PATH"),
    ("unset bert hccl_timeout --dry-run", 0, "would remove hccl_timeout"),
    # a value with something around it
    ("set bert hccl_timeout=05", 2, "write hccl_timeout = 5"),
    ("set bert hccl_timeout=600,", 2, "write hccl_timeout = 600"),
    ("set bert 'hccl_timeout=5 // note'", 2, "write hccl_timeout = 5, and the remark behind #"),
    ("set bert \"precision_mode_v2='fp17',\"", 2, 'did you mean "fp16"?'),
    ("set bert atc.framework=3,", 2, "takes a whole number", "atc.framework has no meaning for training"),
    ("set bert 'estimator.save_checkpoints_steps=100 // x'", 2, "write save_checkpoints_steps = 100, and the remark"),
    # a revision, a source or a path where a preset stands
    ("check HEAD", 2, "'HEAD' is a revision, and no preset", "npuprof check --rev HEAD", "NAME@HEAD"),
    ("show main", 2, "'main' is a revision, and no preset", "NAME@main"),
    ("render HEAD..HEAD", 2, "is a revision, and no preset", "npuprof diff --rev HEAD..HEAD"),
    ("env bert+./other/d.toml@HEAD", 2, "a path takes no revision", "git show HEAD:./other/d.toml > old.toml"),
    ("show profiles/bert.toml@HEAD", 0, "hccl_timeout = 600"),
    ("show profiles/bert", 2, "did you mean 'bert'?"),
    # versions
    ("yank bert@1.0.0", 2, "Missing option '--why'", "npuprof yank bert-training@1.2.0 --why"),
    ("yank bert-training@1.0.0 --why x", 2, "bert-training has no released version 1.0.0", "released are held@1.0.0"),
    ("yank held@1.0.0 --reason x", 2, "--why"),
    ("yank held@1.0.0 --why x --undo", 2, "git tag -d NAME/vX.Y.Z.yanked"),
    ("release bert major", 2, "'major' is not a version", "without one npuprof proposes the next"),
    ("release bert --message x", 2, "npuprof release bert-training 2.0.0 gives it"),
    # the family of sources, and that of git
    ("source add https://x.example.org/a.git", 2, "Missing argument 'GIT-URL'", "npuprof source add team https://"),
    ("source add it file:///gone --version 2", 2, "--rev"),
    ("source update team --to 2.0", 2, "what rev says in npuprof.toml"),
    ("source vendor team vendor/team", 2, "npuprof source vendor takes NAME, and --into"),
    # names of what is new
    ("rename bert profiles/new", 2, "write new"),
    ("rename profiles/bert.toml nlp/bert", 2, "'profiles/bert.toml' cannot be the name", 'write "bert"'),
    # scripts
    ("import train.py", 2, "there is nothing to make a preset of in train.py", "npuprof import --format text train.py"),
    ("import profiles/bert.toml", 2, "is a preset already", "npuprof check profiles/bert.toml"),
    ("inject profiles/bert.toml bert", 2, "is a preset, and no script", "npuprof inject train.py NAME"),
    ("scan empty", 0, "there is no script in empty", "npuprof check"),
    ("inject train.py gone", 2, "no preset 'gone'", "npuprof list"),
    ("inject", 2, "npuprof inject train.py bert-training"),
    # what takes no words, and what other tools call otherwise
    ("review main..HEAD", 2, "npuprof diff --rev BRANCH...HEAD"),
    ("--install-completion csh", 2, "takes no word", "npuprof --install-completion"),
    # values and keys that are written otherwise
    ("set bert hccl_timeout = 700", 2, "write KEY=VALUE without blanks"),
    ("set hccl_timeout=700", 2, "which preset is to be changed?", "npuprof set NAME hccl_timeout=700"),
    ("unset bert hccl_timeout=700", 2, "'hccl_timeout=700' is not a key", "write hccl_timeout, without a value"),
    ("set bert hccl_timeout=ten", 2, "hccl_timeout takes a whole number", "bert.toml:6:1"),
    ("unset bert precision_mode", 2, "did you mean 'precision_mode_v2'?"),
    ("option hccl", 2, "the catalogue has no 'hccl'", "npuprof options hccl lists those with it in their names"),
    ("options --product 910", 2, "or 'Ascend910', a chip of"),
    ("check --select 203", 2, "did you mean 'NP203'?"),
    ("check --severity high", 2, "known are error, warning, info"),
    # words in another order
    ("new fresh bert", 2, "npuprof new NAME --extends PARENT", "npuprof copy PRESET NAME"),
    ("help render session", 2, "there is no topic"),
    # a flag in the place of a value
    ("run bert --record -- true", 2, "--record has no DIR: -- stands in its place"),
    ("render bert -o --inline", 2, "-o has no PATH: --inline stands in its place"),
    # what a shell takes away
    ("set bert 'dump_path=\"/tmp/x'", 2, "the quote before the value of dump_path is not closed", "dump_path=/tmp/x"),
    # hints that are taken as they are
    ("list --where 'precision_mode_v2 = fp16'", 2, "write 'precision_mode_v2 == \"fp16\"'"),
    ("list --where 'hccl_timeout=600 && deterministic = 1'", 2, "write 'hccl_timeout == 600 and deterministic == 1'"),
    ("list --where 'hccl_timeout => 600'", 2, "write 'hccl_timeout >= 600'"),
    ("show bert --unset env", 2, "--unset: error NP009", "section.name"),
    ("options hcll", 2, "did you mean 'hccl'?"),
    ("show builtin/bert-training", 2, "no preset 'builtin/bert-training'"),
    ("show builtin:bert", 2, "did you mean 'bert-"),
    ("sweep bert --vary deterministic=0,1 --devices " + "9" * 5000 + " -- true", 2, "names no devices"),
    ("show bert --set HCCL_EXEC_TIMEOUT=5", 0, "on a command line it is env.HCCL_EXEC_TIMEOUT"),
    ("release held 1.0.0", 2, "the tag held/v1.0.0 exists already"),
    ("release held", 2, "to release it all the same: npuprof release held 1.0.1"),
    ("blame bert hccl_timeout", 2, "npuprof log bert-training KEY the commits that changed one"),
    # a verb that is meant for something else
    ("new b --from bert", 2, "No such option: --from", "--extends"),
    ("commit -a", 2, "npuprof commit takes every preset that differs"),
    ("import profiles/bert.toml", 2, "is a preset already", "npuprof copy"),
    ("inject train.py bert --check", 1, "has no block of bert; npuprof inject train.py bert writes one"),
    ("scan bert", 2, "for a preset: npuprof check bert"),
    ("adopt profiles", 0, "nothing in the scripts is written by hand"),
    ("verify held@1.0.0", 2, "npuprof verify --tags held@1.0.0"),
    # a revision with a blank, or further back than a clone knows; a version asked for by a short flag
    ("show 'bert @1.0.0'", 2, "'bert @1.0.0' holds blanks", "write bert@1.0.0"),
    ("log 'held@ HEAD'", 2, "holds blanks", "write held@HEAD"),
    # a preset where a key stands, and a key where a preset does
    ("option bert", 2, "the catalogue has no 'bert'"),
    ("list profiles", 2, "--store FOLDER another store"),
    ("log bert held", 2, "bert has never set 'held'"),
    # what a shell would have said otherwise
    ("scan 'src/**/*.py'", 2, "src/**/*.py: warning NP801", "check the path"),
    ("log -5 bert", 2, "--number"),
    ("show bert -f json", 2, "--format"),
    # a folder as the new name, a list without parentheses, a source without a name
    ("rename bert nlp/", 2, "write nlp"),
    ("list --where 'hccl_timeout in 600,700'", 2, "ends before the first comma", "write 'hccl_timeout in (600,700)'"),
    ("list --where 'hccl_timeout in 600, 700 and deterministic == 1'", 2, "write 'hccl_timeout in (600, 700) and deterministic == 1'"),
    ("source add", 2, "npuprof source add team https://"),
    # versions by other words
    ("show bert@latest", 2, "unknown revision 'latest'", "git log --oneline"),
    ("show held/v1.0.0", 2, "'held/v1.0.0' is a revision, and no preset"),
    ("release held 1.0", 2, "write 1.0.0"),
    ("release held 0.9.0", 2, "held is at 1.0.0", "the next is 1.0.1"),
    # what holds a release, a version, a value
    ("show bert --cann CANN-9.0.0", 2, "write 9.0.0"),
    # what is varied, and what is not about it
    ("sweep bert --vary nosuch=1 -- true", 2, "--vary: error NP201"),
    ("sweep bert --vary profile.cann=1 -- true", 2, "--vary: error NP009"),
    ("sweep bret --vary hccl_timeout=1,2 -- true", 2, "error NP008: no preset 'bret'"),
    ("restore held@2.0.0", 2, "held has no released version 2.0.0", "released are 1.0.0"),
]  # fmt: skip


def test_a_preset_is_found_by_the_last_part_of_its_name(folder: Path, run: Run) -> None:
    (folder / "profiles/nlp").mkdir()
    (folder / "profiles/nlp/gpt.toml").write_text(BERT)
    assert "did you mean 'nlp/gpt'?" in run("show", "gpt").err
    (folder / "profiles/child.toml").write_text('[profile]\nextends = ["gpt"]\n')
    assert "did you mean 'nlp/gpt'?" in run("check", "child").out


@pytest.mark.parametrize("text", ["[]", "5", '"x"', "null", '{"schema": "npuprof.baseline/1", "findings": 5}',
                                  '{"schema": "npuprof.baseline/1", "findings": [5]}'])  # fmt: skip
def test_what_is_no_baseline_is_told_without_words_of_python(folder: Path, run: Run, text: str) -> None:
    Path("base.json").write_text(text)
    result = run("check", "--baseline", "base.json")
    assert (result.code, "base.json is no baseline\n" in result.err) == (2, True), result.err


#: The same beside a source, ``team``, that has a preset ``bert``.
TYPED_BESIDE_A_SOURCE = [
    ("show team:", 2, "no preset 'team:'", "npuprof list --store team:"),
    ("trust nope", 2, "the store 'nope' is not a folder", "STORE is the folder of a store, or a source"),
    ("trust team", 2, "write team: for the store of that source"),
    ("list --store team", 2, "It was named by --store", "write team: for the store"),
]


@pytest.fixture
def folder(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo.commit({"bert": BERT, "x": BERT, "held": "[env]\nMY_VAR = 1\n"})
    repo.release("held", "1.0.0")
    (repo.folder / "profiles/draft.toml").write_text(BERT)
    (repo.folder / "other").mkdir()
    (repo.folder / "other/d.toml").write_text(BERT)
    (repo.folder / "other/d.txt").write_text("x = 1\n")
    (repo.folder / "empty").mkdir()
    (repo.folder / "train.py").write_text("import tensorflow as tf\n")
    monkeypatch.chdir(repo.folder)
    return repo.folder


@pytest.mark.parametrize(("typed", "code", "said"), rest_at_night(2, [(typed, code, said) for typed, code, *said in TYPED]))
def test_a_mistake_on_the_command_line_is_answered_in_words(folder: Path, run: Run, typed: str, code: int, said: list[str]) -> None:
    result = run(*shlex.split(typed))
    assert result.code == code, result.err
    told = result.out + result.err
    assert not [words for words in said if words not in told], told
    assert "Traceback" not in result.err


@pytest.mark.parametrize(("typed", "code", "said"), [(typed, code, said) for typed, code, *said in TYPED_BESIDE_A_SOURCE])
def test_a_mistake_beside_a_source_names_it(folder: Path, tmp_path: Path, run: Run, typed: str, code: int, said: list[str]) -> None:
    team = Repo(tmp_path / "team")
    team.commit({"bert": BERT})
    assert run("source", "add", "team", team.folder.as_uri()).code == 0
    result = run(*shlex.split(typed))
    assert (result.code, [words for words in said if words not in result.out + result.err]) == (code, []), result.err


#: A text, the line and column of what is wrong, and what has to be said.
WRITTEN = [
    ("[options]\nhccl_timeout = 600,\n", 2, 19, '"," stands behind the value', "take the , out"),
    ("[options]\ngraph_run_mode = 01\n", 2, 18, "a number begins with 0", "write 1"),
    ("[options]\nhccl_timeout = 600s\n", 2, 16, "600s is no value", "write 600, in the unit of the option"),
    ("[options]\nhccl timeout = 600\n", 2, 6, "write hccl_timeout = ...", "a key with blanks in it needs quotes"),
    ("[options]\r\nhccl_timeout = 1\r", 2, 17, "the line ends with a lone carriage return", "line feed"),
    ("[profile]\nname = 'bert'\n", 2, 1, "a preset is called as its file is", "npuprof rename"),
    ("[profile]\nversion = '1.0'\n", 2, 1, "a version is a tag that npuprof release makes"),
    ("[profile]\ncann = 8.0\n", 2, 1, "'cann' must be text", 'write cann = "8.0"'),
    ("[profile]\ncann = '>=8.0 <9'\n", 2, 1, "is no range of releases", 'write ">=8.0,<9"'),
    ("[profile]\ncann = '8.0+'\n", 2, 1, 'write ">=8.0"'),
    ("[profile]\ncann = '8.0 - 9.0.0'\n", 2, 1, 'write ">=8.0,<=9.0.0"'),
    ("[profile]\ncann = '^8.1'\n", 2, 1, 'write ">=8.1,<9"'),
    ("[profile]\ncann = 'newest'\n", 2, 1, 'write ">=8.0,<10"'),
    ('[options]\na = "abc\nb = 1\n', 2, 5, "a string is not closed", 'end it with "'),
    ('[options]\na = """abc\nb = 1\n', 2, 5, "a string of several lines is not closed", 'end it with """'),
    ("[options]\nhccl_timeout = 1\n\nhccl_timeout = 2\n", 4, 1, '"hccl_timeout" stands twice in [options], first in line 2', "keep one"),
    ("[options]\na = 1\n[env]\n[options]\nb = 1\n", 4, 2, "[options] stands twice, first in line 1", "into the table of line 1"),
    ('[profile]\nextends = ["be rt"]\n', 2, 12, "did you mean 'bert'?"),
    ('[profile]\nextends = ["sub\\\\bert"]\n', 2, 12, "npuprof list shows the names there are"),
    ("[options]\ndump_path = None\n", 2, 13, '"None" is no value: TOML has none that means nothing', "leave the key out", "profile.unset"),
    ("[env]\na = null\n", 2, 5, '"null" is no value', "leave the key out"),
    ("a = [1, NULL]\n", 1, 9, '"NULL" is no value', "leave it out of the list"),
    ("[options]\na = fp16\n", 2, 5, '"fp16" is no value', 'text needs quotes: "fp16"'),
    ("[options]\na = True\n", 2, 5, '"True" is no value', "write true"),
    ("[options]\na =\n", 2, 4, "a key without a value"),
    ("[options]\na: 1\n", 2, 2, "TOML has no colon there"),
    ("[options]\na\n", 2, 2, "write key = value"),
    ("[options]\na = 1 b = 2\n", 2, 7, '"b = 2" stands behind the value', "one key = value on a line"),
    ("[options]\na = [1, 2\nb = 3\n", 3, 1, "a list is not closed, or lacks a comma"),
    ("[options]\na = [1 2]\n", 2, 8, "separate the elements with commas"),
    ("[options]\na = { b = 1\n", 2, 12, "a table in braces is not closed on its line"),
    ('[options]\na = "C:\\dir"\n', 2, 10, "a backslash that escapes nothing", "single quotes"),
    ("[options\na = 1\n", 1, 9, "the name of a table is not closed", "[table]"),
    ("[options]\na = 1\n[options.a]\n", 3, 11, "a key stands twice"),
    ("[options]\na = { b = 1 }\na.c = 2\n", 3, 8, "a table in braces is complete"),
    ("<<<<<<< ours\n[options]\n", 1, 1, "a merge conflict is not resolved", "keep one side"),
    ("[options]\na\u00a0= 1\n", 2, 2, "U+00A0 looks like a blank and is none", "write a blank in its place"),
    ("[options]\na = \u201cfp16\u201d # x\n", 2, 5, "its quotes are not straight ones", 'write "fp16"'),
    ('{"options": {"a": 1}}\n', 1, 1, "it looks like JSON", "write [options], and key = value below it"),
    ("// x\n[options]\n", 1, 1, "a comment begins with #"),
    ("[environment]\nHCCL_EXEC_TIMEOUT = 1800\n", 1, 2, "unknown table or key 'environment'", "write [env]"),
    ('[profile]\nextends = "bert, held"\n', 2, 1, "'extends' must be a list of names", 'write extends = ["bert", "held"]'),
    ('[profile]\nextends = ["it"]\n', 2, 1, "A preset cannot extend itself", "remove it from extends in profiles/it.toml:2"),
    ('[options]\nprecision_mode_v2 = ["fp16"]\n', 2, 1, "not a list", 'write precision_mode_v2 = "fp16"'),
    ("hccl_timeout = 1\n", 1, 1, "options go below [options]"),
    ('[profile]\nextends = "base"\n', 2, 1, "'extends' must be a list of names", 'extends = ["base"]'),
    ('[profile]\nextends = ["../x/bert"]\n', 2, 12, "'../x/bert' cannot be the name of a profile"),
    ('[profile]\nscenario = "train"\n', 2, 1, "unknown scenario 'train'", "did you mean 'training'?"),
    ('[profile]\nproducts = ["910B"]\n', 2, 13, "or 'Ascend910B', a chip of"),
    ("[profile]\nlocked = [\"hcom_paralel\"]\n", 2, 11, "did you mean 'hcom_parallel'?"),
    ("[options]\nproducts = [\"atlas-a2\"]\n", 2, 1, "products belongs below [profile]"),
    ('[profile]\nextends = ["x.toml"]\n', 2, 12, 'write "x"'),
    ('[[override]]\nmatch.product = "atlas-a3"\nunset = "hccl_timeout"\n', 3, 1, 'write unset = ["hccl_timeout"]'),
    ("[profile]\nhccl_timeout = 5\n", 2, 1, "options go below [options]"),
    ('description = "x"\n', 1, 1, "description belongs below [profile]"),
    ("[options]\nenable_exception_dump = yes\n", 2, 25, "write true, or 1 where the option takes a number"),
    (f"[options]\nx = '['\ny = {'[' * 1500}{']' * 1500}\n", 3, 5, "the brackets are nested too deeply"),
    (f"[options]\n{'.'.join('a' * 150)} = 1\n", 2, 1, "a key has too many parts"),
    ('[[override]]\noptions = { hccl_timeout = 1 }\n', 1, 3, "match"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "said"), [(row[0], row[1], row[2], row[3:]) for row in WRITTEN])
def test_a_mistake_in_a_file_is_answered_where_it_stands(
    folder: Path, run: Run, text: str, line: int, column: int, said: tuple[str, ...]
) -> None:
    Path("profiles/it.toml").write_text(text)
    result = run("check", "it")
    assert f"profiles/it.toml:{line}:{column}: error" in result.out + result.err, result.out + result.err
    missing = [words for words in said if words not in result.out + result.err]
    assert not missing, result.out + result.err


def test_a_ci_sample_joins_a_store_that_is_there(folder: Path, run: Run) -> None:
    words = ("init", "--ci", "gitlab", "--install", f"git+https://git.example.org/npuprof@{'0' * 40}")
    result = run(*words)
    assert (result.code, result.out) == (0, ".gitlab/presets.yml\n")
    assert run(*words).code == 2


def test_init_says_what_commit_leaves_behind(repo: Repo, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo.folder)
    (repo.folder / "new").mkdir()
    result = run("init", "new")
    assert result.code == 0
    assert "to commit these files: git -C new add" in result.err
    assert ".gitattributes" in result.err


@pytest.mark.parametrize(("key", "said"), [("scenario", 'profile.scenario = "training"'), ("profile.cann", "profile.cann is not set")])
def test_what_a_preset_is_for_is_explained_too(folder: Path, run: Run, key: str, said: str) -> None:
    assert said in run("explain", "bert", key).out


@pytest.mark.parametrize("path", ["other/d.txt", "program", "program.py", "nosuch.py"])
def test_why_a_script_cannot_be_read_is_one_message(folder: Path, run: Run, path: str) -> None:
    for program in ("program", "program.py"):
        (folder / program).write_bytes(b"\x7fELF\2\1\1" + bytes(200))
    result = run("import", path)
    assert (result.code, result.err.count("NP8")) == (2, 1), result.err
    assert ("binary" in result.err) == path.startswith("program"), result.err


@pytest.mark.parametrize("words", [["x"], ["x", "1.0.0"]])
def test_a_tag_without_a_message_is_no_release_and_in_the_way_of_one(folder: Path, repo: Repo, run: Run, words: list[str]) -> None:
    repo.git("tag", "x/v1.0.0")
    result = run("release", *words)
    assert (result.code, "the tag x/v1.0.0 exists already, and is no release\n" in result.err) == (2, True), result.err
    assert "delete it with git tag -d x/v1.0.0, or give another number" in result.err


def test_a_sweep_of_what_is_not_there_says_so_alone(folder: Path, run: Run) -> None:
    told = run("sweep", "bret", "--vary", "hccl_timeout=1,2", "--", "true").err
    assert (told.count("error NP"), "no combination" in told) == (1, False), told


def test_a_word_that_the_catalogue_has_is_not_offered_in_its_own_place(folder: Path, run: Run) -> None:
    told = run("options", "hccl", "--since", "9.2.0", "--risk", "numerics").err
    assert ("leave a filter out" in told, "did you mean" in told) == (True, False), told
