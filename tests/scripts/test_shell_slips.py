"""Slips in scripts that start programs, as fixes in public trees show them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from npuprof.model import Context
from npuprof.scripts.lint import check_script
from npuprof.scripts.reading import import_script
from npuprof.scripts.scanning import scan_scripts

START = "torchrun --nproc_per_node 8 train.py --lr 1"


def slips(text: str, name: str = "run.sh") -> list[tuple[str, str, int, int]]:
    """Return code, certainty, line and column of the slips in a script."""
    found = check_script(import_script(name, text.encode()), Context())
    codes = ("NP801", "NP813", "NP843", "NP844", "NP845")
    return [
        (each.code, each.certainty, each.line or 0, each.column or 0)
        for each in found
        if each.code in codes
    ]


#: What bash says of a flag or an override as a command, and of a here-document without an end.
COMPLAINTS = re.compile(r"(?:--\w+|\w\.\w=\d): (?:command not|No such)|delimited by end-of-file")


def run_bash(text: str) -> str:
    """Return what bash complains of in a script whose programs do nothing."""
    programs = "torchrun() { :; }; deepspeed() { :; }; python() { :; }\n"
    done = subprocess.run(["bash"], input=programs + text, capture_output=True, text=True)
    return done.stderr


CUT = [
    # examples/run_text_generation_server_345M.sh of Megatron-LM before a9e4437c
    pytest.param("torchrun t.py  /\n   --lr 1  /\n   --bf16\n", (2, 4), id="slash"),
    pytest.param("torchrun t.py \\\n  --lr 1\n  --bf16\n", (3, 3), id="no backslash"),
    pytest.param("torchrun t.py \\\n  --lr 1 \\ \n  --bf16\n", (3, 3), id="blank behind it"),
    pytest.param("torchrun t.py \\\n  --lr 1 \\\n  # --bf16 \\\n  --wd 1\n", (4, 3), id="comment"),
    pytest.param("python -m verl.trainer.main_ppo \\\n  a.b=1\n  +a.c=2\n", (3, 3), id="verl"),
    # examples/scripts/train_sft_llama.sh of OpenRLHF before 13cac871
    pytest.param("read -r c <<EOF\nt.py \\\n  --lr 1 \\\nEOF\ndeepspeed $c\n", (1, 1), id="end"),
]


@pytest.mark.parametrize(("text", "place"), CUT)
def test_a_command_that_the_shell_cuts_is_an_error(text: str, place: tuple[int, int]) -> None:
    assert slips(text) == [("NP844", "certain", *place)]
    assert COMPLAINTS.search(run_bash(text))


@pytest.mark.parametrize(
    "text",
    [
        "torchrun t.py \\\n  --lr 1 \\\n  --bf16\n",
        'ARGS="\n  --lr 1\n  --bf16\n"\ntorchrun t.py $ARGS\n',
        "ARGS=(\n  --lr 1\n  --bf16\n)\ntorchrun t.py ${ARGS[@]}\n",
        "case $1 in\n  --help) exit;;\n  --lr)\n  shift;;\nesac\ntorchrun t.py\n",
        "cat <<EOF\n--lr 1\nEOF\ntorchrun t.py\n",
        "cat <<'EOF'\n--lr 1 \\\nEOF\ntorchrun t.py\n",
        'for ((i = 1; i < 3; i++)); do torchrun t.py --seed "$i"; done\n',
        "if [ $X = 1 ]; then torchrun t.py; fi\n",
    ],
)
def test_what_a_shell_joins_is_no_slip(text: str) -> None:
    assert slips(text) == []
    assert COMPLAINTS.search(run_bash(text)) is None


@pytest.mark.parametrize(
    ("text", "certainty", "place"),
    [
        # examples/finetune/run_classifier_gpu_new.sh of mindformers before e732daf0
        ("python -u -m a/b/c.py --lr 1\n", "certain", (1, 14)),
        # examples/pretrain/pretrain_bert.sh of mindformers before e2f64bcf
        ("python t.py --config./a/b.yaml\n", "certain", (1, 13)),
        # examples/scripts/train_reinforce_baseline_llama_ray_hybrid_engine.sh of OpenRLHF
        ("torchrun t.py --init_kl_coef 1e-3 --lr 1 --init_kl_coef=1e-4\n", "likely", (1, 42)),
        # examples/gpt3/train_gpt3_175b_distributed.sh of Megatron-LM before 1b6ae270
        # scripts of step3_rlhf_finetuning of DeepSpeedExamples
        ("A=$1\nB=$2\nC=${3}\nOUT=$2\necho $A $B $C $OUT\n", "likely", (4, 1)),
        # scripts of slime with FSDP before eb6a9c1b
        ("torchrun t.py --size 512 * 1024 --lr 1\n", "certain", (1, 26)),
        ("CHECKPOINT_PATH=$0 # path\ntorchrun t.py --save $CHECKPOINT_PATH\n", "likely", (1, 1)),
    ],
)
def test_a_word_that_no_program_can_mean_is_found(
    text: str, certainty: str, place: tuple[int, int]
) -> None:
    assert slips(f"{text}{START}\n") == [("NP844", certainty, *place)]


@pytest.mark.parametrize(
    "text",
    [
        "python -m torch.distributed.launch t.py --lr 1\n",
        "python t.py -m a/b.pth; python t.py -m=a/b.pth\n",
        "git commit -m a/b; mkdir -m 755 a/b; docker run --device=a --device=b torchrun t.py\n",
        "torchrun t.py --lr 1 --other 2 --lr 1\n",
        # scripts/train/tulu3/grpo_fast_8b.sh of allenai/open-instruct
        "torchrun t.py --lr True --wd 1 --lr true\n",
        # research/deeplab/local_test.sh of tensorflow/models
        "torchrun t.py --rate=6 --rate=12 --rate 18 --rate 24\n",
        # run_standalone_train.sh of ibnnet in mindspore/models, and others there
        "A=$1\nB=$2\nDEVICEID=$3\nRANK_ID=$3\nexport A=$1\necho $A $B $DEVICEID\n",
        "accelerate launch --config_file a.yaml t.py --config_file b.yaml\n",
        "torchrun t.py --lr 1 $MORE --lr $LR --bf16 --bf16 --n -1 --n -2\n",
        "X=$(( 1 + 2 )); Y=${X:1:2}; Z=${X:Y}; V=${X:-'a'}\ntorchrun t.py --lr $X $Y $Z $V\n",
        'X=12; W=${X:"1"}\ntorchrun t.py --lr $W\n',
        "if [ 1 ]; then torchrun t.py \\\n  --lr 1; else torchrun t.py; fi; echo else\n",
        "A=$1\nB=$2\nNAME=$1\necho $A $B $NAME\n",
        "A=$1\nB=$2\nif [ $# = 9 ]; then\n  B=$1\nfi\necho $A $B\n",
        "torchrun t.py * --lr 1; torchrun t.py '*' 2; torchrun t.py *.json 2\n",
        # miscs/script.sh of EvolvingLMMs-Lab/lmms-eval: a table behind a command
        "torchrun t.py\n|----|---:|\n",
        # eval/sample.sh of hpcaitech/Open-Sora
        'C="python t.py"\neval $C --lr 1 \\\n  --wd 1\neval "$C" "--lr 1" \\\n  "--wd 1"\n',
        "C=python\neval python t.py --lr 1 \\\n  a.b=1\neval $C my-key=1\n",
        "SCRIPT=$0\ntorchrun t.py --file=./a/b --other /c\necho $SCRIPT\n",
    ],
)
def test_a_word_that_a_program_may_mean_is_no_slip(text: str) -> None:
    assert slips(f"{text}{START}\n") == []


@pytest.mark.parametrize(
    ("text", "found", "complaint"),
    [
        # autotest/utils/ci_run_rl.sh of InternLM/xtuner
        (
            "if [ a ]; then\n  torchrun t.py \\\nelse\n  torchrun t.py\nfi\n",
            ("NP844", "certain", 3, 1),
            "",
        ),
        # scripts/agent of rllm-org/rllm
        ("<<<<<<< HEAD\ntorchrun t.py\n", ("NP844", "certain", 1, 1), "unexpected token"),
        # examples/codellama of alibaba/Pai-Megatron-Patch
        ("X=$( ${A:=5} - 2)\nY=$( ${A} - 2 )\n", ("NP844", "likely", 2, 3), "5: command not found"),
        # examples/multi_cn/s0/run.sh of wenet
        ('A=b\nif $A = "b"; then\n  X=1\nfi\n', ("NP844", "likely", 2, 4), "b: command not"),
        # test/train_8p_performance.sh of StreamPETR in DrivingSDK
        ("A=5\nF= $A * 2 / 3\n", ("NP844", "likely", 2, 4), "5: command not found"),
        # test/pretrain_full_nm_np_sdxl.sh of sd-scripts-xl in ModelZoo-PyTorch
        ("A=$(echo 5) | cat\necho $A\n", ("NP844", "certain", 1, 1), ""),
        ("echo 5 | A=$(cat)\necho $A\n", ("NP844", "certain", 1, 10), ""),
        # modelarts/train_1p.sh of Hourglass in ModelZoo-PyTorch
        ("A=&4\necho $A\n", ("NP844", "certain", 1, 1), "4: command not found"),
        # examples/gigaspeech/s0/run.sh of wenet
        ("echo 5 | \\\n  < $0 | \\\n  cat\n", ("NP844", "certain", 2, 5), ""),
        (":\n< /dev/null | cat\n", ("NP844", "certain", 2, 3), ""),
        # examples/diffusers/sd3 of MindSpeed-MM
        ("accelerate t.py --lr 1\n", ("NP844", "certain", 1, 12), ""),
        # test/train_performance_8p.sh of XLM_ID0740 in ModelZoo-PyTorch before 143bf9f9
        ("let A ++\n", ("NP844", "certain", 1, 7), "operand expected"),
        # egs/gigaspeech/KWS/run.sh of icefall before 42de4591
        ("for x in small, medium; do echo $x; done\n", ("NP844", "likely", 1, 10), ""),
        # test/train_performance_8p.sh of Pix2Pix_ID1467 in ModelZoo-TensorFlow
        ("B=1\n$A=$B\n", ("NP844", "likely", 2, 1), "=1: command not found"),
        # test/train_full_1p.sh of stackgan_ID0760 in ModelZoo-TensorFlow
        ('A=b\nif [[$A == ""]]; then A=1; fi\n', ("NP844", "certain", 2, 4), "[[b: command"),
        # egs/audioset/AT/prepare.sh of icefall
        ("if [! -e $0 ]; then A=1; fi\n", ("NP844", "certain", 1, 4), "[!: command not"),
        # slurm/evaluate.slurm of open-r1
        ('[ -z "$0"] && A=1\n', ("NP844", "certain", 1, 1), "missing `]'"),
        # test/train_full_1p.sh of Yolov5_ID1720 in ModelZoo-TensorFlow
        ("if [ 1 > 0 ]; then A=1; fi\n", ("NP844", "certain", 1, 10), ""),
        # examples/aishell/rnnt/run.sh of wenet before a7931ac2
        ("torchrun --nnodes=$# \\\n  python t.py --lr 1\n", ("NP844", "certain", 2, 3), ""),
        ("deepspeed python -m t --lr 1\n", ("NP844", "certain", 1, 11), ""),
        ("accelerate launch --a b python t.py\n", ("NP844", "certain", 1, 25), ""),
        # official/cv/CTPN/scripts/eval_res.sh of mindspore-ai/models
        ("python t.py \u2013g=1\n", ("NP844", "certain", 1, 13), ""),
        # test/train_performance_8p.sh of Se-ResNext-50-32x4d in ModelZoo-PyTorch before eb12e519
        ("wai\n", ("NP844", "likely", 1, 1), "wai: command not found"),
        # test/train_full_8p.sh of BERT-NER in ModelZoo-PyTorch before c4945a92
        ("A=$(data +%s)\n", ("NP844", "likely", 1, 5), "data: command not found"),
        # examples/longcat/vllm/run_vllm.sh of EasyInfer, egs/gp/s1/run.sh of kaldi
        ("if true; then ccho a; fi\n", ("NP844", "likely", 1, 15), "ccho: command not"),
        ("ehco a\n", ("NP844", "likely", 1, 1), "ehco: command not found"),
        # examples/models/vlm/qwen35_vl/slurm_peft.sh of Megatron-Bridge before d8da6fc4
        ("set -e\n# a\n#SBATCH -N 1\n#SBATCH -n 1\n", ("NP844", "certain", 1, 1), ""),
        # examples/slurm/submit_multicpu.sh of accelerate
        ("if [ a ]; then\n  A=1\n", ("NP801", "certain", 1, 1), "end of file"),
        ("A=1\ndone\n", ("NP801", "certain", 2, 1), "unexpected token `done'"),
        # examples/language/gpt/run.sh of hpcaitech/ColossalAI
        ("X={$Y:-2}\n", ("NP845", "likely", 1, 3), ""),
        ("X=${Y:'const'}\n", ("NP845", "likely", 1, 3), ""),
        ("X=${Y:False}\n", ("NP845", "likely", 1, 3), ""),
        # examples/aishell/s0/run.sh of wenet before 3ff867cd, bicif_paraformer/finetune.sh of
        # FunASR before 4071879e
        ('echo ${Y: "--a $Y"}\n', ("NP845", "likely", 1, 6), ""),
        ("X=${Y: 26669}\n", ("NP845", "likely", 1, 3), ""),
        # slurm/train.slurm of open-r1 before 44cb13d4
        (
            'set -x -e\nA=$(grep :: $0)  # b\n\nif [ -n "$A" ]; then B=1; fi\n',
            ("NP844", "likely", 2, 1),
            "",
        ),
        # slurm/sft.slurm of open-r1 before 43cb6a0e
        ('"""Usage:\n\n"""\n', ("NP844", "likely", 1, 1), "command not found"),
        # tests/test_qwen3-0.6B_fsdp_colocated_2xGPU.sh of slime before eb6a9c1b
        ("A=(\n  --a 512 * 1024\n)\n", ("NP844", "certain", 2, 11), ""),
        # scripts of glore_res, posenet and mobilenetv2 in mindspore-ai/models before c0266a38
        (
            "DATA_PATH=$(realpath ${2:-a})\nDATA_PATH=$(echo $2)\nset -- -n $2 $DATA_PATH\n",
            ("NP844", "likely", 3, 7),
            "",
        ),
        ("RANK_TABLE_FILE=$2\necho a --device_num $2\n", ("NP844", "likely", 2, 7), ""),
        (
            "a()\n{\n  if [ $2 -eq 1 ]; then A=1; fi\n  CONFIG_FILE=../$2\n}\n",
            ("NP844", "likely", 3, 8),
            "",
        ),
    ],
)
def test_what_a_shell_takes_for_something_else_is_found(
    text: str, found: tuple[str, str, int, int], complaint: str
) -> None:
    assert slips(f"{text}{START}\n") == [found]
    assert complaint in run_bash(text)


@pytest.mark.parametrize(
    "text",
    [
        "echo this is \\\n  done\n",
        # what ends with its pipe, or stays in the script
        "A=1 | cat\nB=$(echo 1 | cat) || B=2; A=1 true | echo $B > /dev/null\n",
        "(A=1; echo $A) 2>&1 < /dev/null | cat\n{ cat; } < /dev/null | cat\n",
        "for a in 1; do cat; done < /dev/null | cat\ncat | cat < /dev/null | cat\n",
        "> /dev/null\ncat < /dev/null | cat\n: | cat <(echo) | cat\n",
        "printf '%s\\n' \\\n  else\n",
        '[[ a = "$A" && $B = "" ]] || A=1; F= A=1\n',
        "remove() { for x in $*; do [ $x ] && A=1; done }\n",
        "A=1; let A++ A=A+1 'A = 2'; let -- A++\nfor x in a, b, ; do A=1; done\n",
        "A=1; (( $A == 1 )); (($A=1)) 2> /dev/null || A=1; [[ $A && ($A == 1) ]]\n",
        '[ "$A" = "]" ] 2> /dev/null || [ ] || A=1; [[ 1 < 2 ]]; [ a \\> b ] || A=1\n',
        # the usual test for a number
        'if [ "$A" -eq "$A" 2>/dev/null ] || [ "$A" -gt 1 2> /dev/null ]; then A=1; fi\n',
        # egs/gp/s1/install.sh of kaldi: the target is that of the parentheses
        "( [ 1 ] ) > /dev/null 2>&1\n( if [ 1 ]; then A=1; fi; [ 1 ] ) > /dev/null\n",
        "data() { date; }\nA=$(data)\n",
        "wai() { :; }\nwai; data=1; hash cat; A=wai; echo wai \u2013a\n",
        "torchrun --no-python --nnodes=1 python t.py; torchrun t.py python x.py\n",
        "#SBATCH -N 1\nA=1\n##SBATCH -n 1\n# SBATCH -n 1\n",
        # scripts/cpt of pjlab-sys4nlp/llama-moe: a note of an older job
        "#SBATCH --job-name=a\nA=1\n#SBATCH --job-name=b\n",
        "cat << END > /dev/null\n#SBATCH -N 1\nEND\nA='\n#SBATCH -N 1\n'\n",
        "A() { if [ 1 ]; then { A=1; } fi }\nfor ((i = 0; i < 2; i++)); do A=1; done\n",
        "for ((i = 0; i < 2; i++)); do\n  {\n    A=1\n  } &\ndone\nwait\n",
        "for step in start \\\n  done; do echo $step; done\n",
        "cat <<'END'\n<<<<<<< HEAD\n=======\n>>>>>>> topic\nEND\n",
        # tools/extras/check_dependencies.sh of kaldi
        "if [ 1 ]; then\n  X=$(\n    # a user's distribution\n    A=1\n  )\nfi\n",
        "X=$(case a in b) A=1 ;; a) A=2 ;; esac)\n[ $X ] || A=1\n",
        # egs/swbd/s5c/local/chain/tuning/run_tdnn_2e.sh of kaldi: notes below the last command
        "exit 0\nb01:s5c: for l in y 2b; do grep Sum $l; done\n",
        "if ! { A=1; }; then A=2; fi\n! if [ ]; then A=1; fi\n",
        "for ((i = 0; i < 2; i++)) { A=1; }\nfor i in 1 2\n{\n  A=1\n}\n",
        "cat <<! > /dev/null\nfi\n!\n",
        "[ ] && bash -c 'if true; then'\neval '[ ] && for i in a; do :; done'\n",
        "A=abcd; B=1; A=${A: -2} B=${A: 0:3} C=${A: B} D=${A: 1}\n",
        'set -e; A=$(grep -c :: /dev/null || true)\nif [ -n "$A" ]; then B=1; fi\n',
        'A=$(grep :: /dev/null)\nif [ -n "$A" ]; then B=1; fi\n',
        'set -e\nset +e\nA=$(grep :: /dev/null)\nif [ -n "$A" ]; then B=1; fi\n',
        'set -e\nA=$(grep A /dev/null | tail -n 1)\nif [ -n "$A" ]; then B=1; fi\n',
        'A="\n--a 1\n" B=$A\n: """\nusage\n"""\n',
        "A=(2 '*' 3) B=(--env a --lr 1 --env b)\n",
        "a() {\n  A_FILE=$2; echo $A_FILE\n}\nb() {\n  [ $2 -eq 1 ] || A=1\n}\n",
        'case "$1" in\n  -d) A_DIR="$2" ;;\n  -n) NUM="$2" ;;\nesac\n',
    ],
)
def test_words_and_marks_in_texts_are_no_slips(text: str) -> None:
    assert slips(f"{text}{START}\n") == []
    assert run_bash(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        # examples/wav2vec/unsupervised/scripts of fairseq has scripts of zsh
        "#!/usr/bin/env zsh\nfor f (a b) { A=1 }\nrepeat 3 do A=1; done\n",
        "#!/bin/tcsh\nif ($#argv > 0) then\n  set lr = $lr\nendif\n",
        "#!/usr/bin/env fish\nif test 1\n  set -x lr $lr\nend\n",
        '#!/usr/bin/env bats\n@test "a" {\n  run true\n  echo $output\n}\n',
        "#!/bin/bash\n<% if (nodes) { %>\nA=1\n<% } %>\n",
    ],
    ids=["zsh", "tcsh", "fish", "bats", "template"],
)
def test_blocks_and_variables_of_other_shells_are_no_slips(text: str) -> None:
    assert slips(f"{text}{START}\n") == []


def test_a_default_that_is_none_leaves_the_variable_without_it() -> None:
    for value in ("{$Y:-2}", "${Y:False}"):
        assert run_bash(f'X={value}\n[ "$X" = 2 ] || echo without it >&2\n') == "without it\n"


# test/train_8p_performance.sh of StreamPETR in DrivingSDK starts a program by another script
def test_commands_of_all_scripts_are_judged_and_variables_of_those_that_start_a_program() -> None:
    assert slips("python t.py \\\n  --lr 1\n  --wd 2\n") == [("NP844", "certain", 3, 3)]
    assert slips("tools/train.sh\nF= $A * 2\n") == [("NP844", "likely", 2, 4)]
    assert slips("tools/train.sh\necho $RANK $MODEL_ARGS $loss\n") == []
    assert slips("```bash\ntools/train.sh\nF= $A * 2\n```\n", "guide.md") == []
    assert slips("F= $A * 2\n", "job.env") == []


# test/train_performance_8p.sh of YOLOX_Dynamic_ID4069_for_PyTorch in ModelZoo-PyTorch
@pytest.mark.parametrize(
    ("end", "hint"),
    [
        ("do/ne", "did you mean done in line 3?"),
        ("dnoe", "did you mean done in line 3?"),
        ("main", "add the missing keyword"),
        ("done_all", "add the missing keyword"),
        ("echo doen", "add the missing keyword"),
    ],
)
def test_a_block_without_an_end_names_what_looks_like_one(end: str, hint: str) -> None:
    text = f"for i in 1 2; do\n  A=1\n{end}\n{START}\n"
    found = check_script(import_script("run.sh", text.encode()), Context())
    assert [(each.line, each.hint) for each in found if each.code == "NP801"] == [(1, hint)]


# PyTorch/built-in/nlp/XLM_ID0740_for_PyTorch of ModelZoo-PyTorch before e5454479
def test_blanks_around_an_assignment_are_an_error() -> None:
    assert slips(f"RANK =0\n{START} --rank $RANK\n") == [("NP813", "certain", 1, 1)]
    assert slips(f"tool =0\n{START}\n") == [], "nothing uses it"
    assert slips(f"export MASTER_ADDR = localhost\n{START}\n") == [("NP813", "certain", 1, 8)]
    assert slips(f"export HCCL_BUFFSIZE = 200\n{START}\n") == [("NP813", "certain", 1, 8)]
    assert slips(f"export\n{START}\n") == []


# examples/librispeech/s0/run.sh of wenet sources a file of another repository
def test_an_unread_file_may_set_what_resembles_nothing(tmp_path: Path) -> None:
    end = "data_set=a\ntorchrun t.py --lr 1 $data_set"
    for name, lines in (("data_se", [3]), ("model", []), ("DATA_PATH", [])):
        (tmp_path / "run.sh").write_text(f". /none/a.sh\n{end} ${name}\n")
        found = scan_scripts([str(tmp_path)], Context(), None, None).findings
        assert [each.line for each in found if each.code == "NP845"] == lines


# tools/datasets/llava_onevision/make_llava_ov_wds.sh of FlagScale before 1011644a
def test_a_name_with_hyphens_is_no_variable() -> None:
    assert slips(f"A-B-C=1\n{START}\n") == [("NP813", "certain", 1, 1)]
    assert "A-B-C=1: command not found" in run_bash("A-B-C=1\n")
    assert slips(f"torchrun --a-b=1 t.py\nenv-run A-B=1\n{START}\n") == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("export HCCL_BUFFSIZE = 200", "write export HCCL_BUFFSIZE=200"),
        ("export HCCL_BUFFSIZE =200", "write export HCCL_BUFFSIZE=200"),
        ("export HCCL-BUFFSIZE=200", "write export HCCL_BUFFSIZE=200"),
        ('export HCCL_ALGO = "$A b"', 'write export HCCL_ALGO="$A b"'),
        ("export MASTER_ADDR = localhost", "write export MASTER_ADDR=localhost"),
        ("MASTER_PORT = 6000", "write MASTER_PORT=6000"),
        ("export HCCL_EXEC_TIMEOUT= 300", 'write HCCL_EXEC_TIMEOUT="300"'),
        ("export TASK_QUEUE_ENABLE=on", "write TASK_QUEUE_ENABLE=1"),
        ("export HCCL_BUFFSIZE=200MB", "write HCCL_BUFFSIZE=200"),
    ],
)
def test_a_hint_of_a_shell_is_the_line_to_write(line: str, hint: str) -> None:
    text = f"{line}\n{START} --master_port $MASTER_PORT\n"
    found = check_script(import_script("run.sh", text.encode()), Context())
    assert hint in [finding.hint for finding in found]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        # PyTorch/built-in/cv/detection/DB_ID0706_for_PyTorch of ModelZoo-PyTorch before 93901c3b
        (f"model_path=a\necho $model_path\n{START} --data ${{mdoel_path}}/x\n", (3, 52)),
        (f"BatchSize=1\n{START} --b $BatchSize\necho $Batch_Size\n", (3, 6)),
        (f"data_dir=1\n{START} --data $data_dirs\n", (2, 52)),
        # scripts/msrun_launcher.sh of mindformers before 2cedbc03
        (f"WORK_PATH=/a\nexport LOG_DIR=WORK_PATH/logs\n{START} --d $WORK_PATH\n", (2, 16)),
        (f'CMD="{START}"\neval "$CMD" --run $train_data\n', (2, 19)),
        # scripts/nq_hotpotqa/v0.2/train_grpo.sh of Search-R1 before ceee7b89
        (f"{START} --run ${{train_data}}-em\n", (1, 51)),
        # examples/pytorch/language-modeling/run_mlm_cn.sh of transformers in ModelZoo-PyTorch
        (f"export PYTHONPATH=${{pwd}}/src\n{START}\n", (1, 19)),
        # examples/librispeech/s0/run.sh of wenet, whose options set what they find, and its loops
        (f"wave_data=a\neval $1=2\n{START} --d $wave_data --e $wave_dat\n", (3, 64)),
        (f"for i in 1 2; do\n{{\n{START} --d $loss\n}} &\ndone\n", (3, 49)),
        # skyrl-train/examples/text_to_sql/run_sql_fsdp.sh of SkyRL before 5cc0f8ed
        (f"{START} data.train_data=$train_data\n", (1, 61)),
        (f"{START} --run $run\n", (1, 51)),
        # scripts/v1_5/release/13b/3_sft.sh of VILA before 3a3be9fe
        (f"STAGE2_PATH=$1\n{START} --model $BASE_MODEL_PATH\n", (2, 53)),
        # examples/qwen3vl/finetune_qwen3vl_8B.sh of MindSpeed-MM before f83b2638
        ("torchrun $DISTRIBUTED_ARGS train.py\n", (1, 10)),
    ],
)
def test_a_variable_that_nothing_sets_is_likely_a_slip(text: str, place: tuple[int, int]) -> None:
    assert slips(text) == [("NP845", "likely", *place)]


@pytest.mark.parametrize(
    "text",
    [
        f"{START} --data $DATA_PATH --rank $RANK\n",  # of the environment
        f"{START} $EXTRA_ARGS --proxy $http_proxy\n",
        # internvl_chat/shell of OpenGVLab/InternVL: a site may set them
        f"srun ${{SRUN_ARGS}} {START}\n",
        f"awk '{{ print $loss; $lr }}' log\n{START}\n",
        f"cat <<'END'\n$some_value\nEND\n{START}\n",
        f"bash -c 'echo $loss'\n{START}\n",
        f"while read -r loss; do {START} --lr $loss; done\n",
        f"{START} ${{MODEL_ARGS:-}}\n",
        f"read -r MODEL_ARGS\n{START} $MODEL_ARGS\n",
        f"DATA_DIR=DATA/a\n{START} --d $DATA_DIR\n",
        f"for MODEL_ARGS in a b; do {START} $MODEL_ARGS; done\n",
        f"# $MODEL_ARGS\n{START}\n",
        f"DATA_DIR=1\n{START} --data $DATA_DIR --log $DATE_DIR\n",
        # workspace/T32_tilelang_rescue/sglang_2step_real_wrapper.sh of zhshgmail/easyr1-npu
        f"NET=$(docker inspect --format '{{{{range $k, $v := .Nets}}}}{{{{$k}}}}')\n{START} $NET\n",
        f'for A in "$@"; do\n  K=${{A%%=*}}\n  export "$K"="${{A#*=}}"\ndone\n{START} $loss\n',
        f'for a in "$@"; do eval "$a"; done\n{START} $loss\n',
        f'eval "$(python read.py)"\n{START} $loss\n',
        # training/tensor_parallel/hf_integration/run.sh of deepspeedai/DeepSpeedExamples
        f'N_A=$1\nsed "s/\\${{n_a}}/$N_A/" a\n{START}\n',
        f"case $loss in a) ;; esac\n{START} $loss\n",
        f"wave_data=a\neval $1=2\n{START} --d $wave_data --e $save_data\n",
        f"wave_data=a\neval $1=2\n{START} --d $wave_data --wave_dat $wave_dat\n",
        # toolkits of Pai-Megatron-Patch: the sizes of a job and of a model have nothing in common
        f"MODEL_SIZE=$1\n{START} --nodes $WORLD_SIZE\n",
        f"wave_data=a\neval $1=2\n[ $wave_dat ] || exit\n{START} --d $wave_data $wave_dat\n",
        # models_v2/pytorch/llama/training/cpu/run_model.sh of intel/models: the caller sets it
        f'if [[ "${{PRECISION}}" == "bf16" ]]; then\nprecision=bf16\nfi\n'
        f"echo $PRECISION\n{START} --o out_$precision\n",
    ],
)
def test_a_variable_that_something_may_set_is_no_slip(text: str) -> None:
    assert slips(text) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # examples/cogvideox/t2v_1.5/pretrain_cogvideox_t2v_1.5.sh of MindSpeed-MM before 878a40c5
        (f"SAVE_PATH=out\n{START}\n", [1]),
        (f"SAVE_PATH=out\nmkdir -p $SAVE_PATH\n{START}\nchmod -R 640 $SAVE_PATH\n", [1]),
        (f"SAVE_PATH=out\n{START} --save $SAVE_PATH\n", []),
        (f"export SAVE_PATH=out\n{START}\n", []),
        (f"SAVE_PATH=out {START}\n", []),
        (f"SIZE=1\n{START}\n", []),
        # options of scripts/run_merge_lora.sh of LMFlow before 1ae1e1c4
        (f'case $1 in\n  --lora)\n    data="$2"\n  ;;\nesac\n{START} $lora\n', [3]),
        (f'case $1 in\n  --lora)\n    lora="$2"\n  ;;\nesac\n{START} $lora\n', []),
        (f"data=$2\n{START}\n", []),
        # test/train_performance_8p.sh of ModelZoo-PyTorch: a template with options for all
        (f"for a in $*; do\n  hf32=${{a#*=}}\ndone\n{START}\n", []),
    ],
)
def test_a_place_for_results_that_no_command_gets_is_likely_a_slip(
    text: str, lines: list[int]
) -> None:
    assert [line for code, _, line, _ in slips(text) if code == "NP843"] == lines


def find_unused(flag: str, text: str, folder: Path) -> list[tuple[str, int]]:
    """Return code and line of the variables that no command gets, with a program of one flag."""
    (folder / ".git").mkdir()
    (folder / "t.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\n"
        f"p.add_argument('--{flag}')\np.parse_args()\n"
    )
    (folder / "run.sh").write_text(text)
    report = scan_scripts([str(folder)], Context(), None, None)
    return [(each.code, each.line or 0) for each in report.findings]


@pytest.mark.parametrize(
    ("flag", "text", "lines"),
    [
        # scripts/run_finetune_with_lora.sh of LMFlow
        ("model_path", "model_path=a\nwhile [ $1 ]; do\n  model_path=$2\ndone\n", [3]),
        ("moe-freq", "MOE_FREQ=1\n", [1]),
        ("moe-freq", "MOE_FREQ=1\necho $MOE_FREQ\n", [1]),
        ("moe-freq", "MOE_FREQ=$((1 * 2))\n", []),
        ("moe-freq", "MOE_FREQ=1\nF=$MOE_FREQ\n", []),
        ("moe-freq", "export MOE_FREQ=1\n", []),
        # run_llama_bf16.sh of Megatron-DeepSpeed
        ("master_addr", "MASTER_ADDR=localhost\n", []),
        ("moe-freq", "set -a\nMOE_FREQ=1\n", []),
        ("moe-freq", "cat > a.env <<END\nMOE_FREQ=1\nEND\n", []),
        ("moe-freq", "python -c '\nMOE_FREQ=1\n'\n", []),
        ("moe-freq", "for a in MOE; do\n  a=${a}_FREQ; b=${!a}\ndone\nMOE_FREQ=$b\n", []),
        ("other", "MOE_FREQ=1\n", []),
    ],
)
def test_a_variable_with_the_name_of_a_flag_that_no_command_gets_is_likely_a_slip(
    flag: str, text: str, lines: list[int], tmp_path: Path
) -> None:
    found = find_unused(flag, f"{text}torchrun t.py --{flag} 1\n", tmp_path)
    assert found == [("NP843", line) for line in lines]


@pytest.mark.parametrize(
    ("arguments", "is_found"),
    [
        # run_32xH20.sh of the converters of Pai-Megatron-Patch before 48b22d37
        ("--nnodes $NNODES --master_addr $A", True),
        ("--nnodes=2", True),
        ("--nnodes 1", False),
        ("--nnodes 2 --node-rank $RANK", False),
        ("--nnodes 2 --node_rank=$RANK", False),
        ("--nnodes 1:4 --rdzv_backend c10d", False),
        ("--nnodes 2 $DISTRIBUTED", False),
        ("--nproc_per_node 8", False),
        ("--nnodes 1:1", False),
        ("--nnodes $PET_NNODES", False),
    ],
)
def test_several_nodes_without_a_rank_are_likely_a_slip(
    arguments: str, is_found: bool, tmp_path: Path
) -> None:
    found = find_unused("lr", f"torchrun {arguments} \\\n  t.py --lr 1\n", tmp_path)
    assert found == [("NP844", 1)] * is_found


def test_carriage_returns_of_a_whole_script_are_likely_a_slip() -> None:
    text = f"for i in 1 2\ndo\n  {START}\ndone\n".replace("\n", "\r\n")
    assert slips(text) == [("NP844", "likely", 1, 0)]
    assert "`$'do\\r''" in run_bash(text)
    assert slips(f"echo 'a\r\n'\n{START}\n") == []


# research/internlm2 of mindspore-lab/mindformers before e9122c5c
def test_a_conflict_in_a_yaml_file_is_an_error() -> None:
    text = "a: 1\n<<<<<<< HEAD\nb: 2\n=======\n>>>>>>> topic\n"
    for is_named in (True, False):
        (found,) = import_script("a.yaml", text.encode(), is_named).problems
        assert (found.code, found.severity, found.line) == ("NP844", "error", 2)
    (other,) = import_script("a.yaml", b"a: |\n  <<<<<<< HEAD\nb: : 1\n").problems
    assert other.code == "NP801"


def test_blocks_of_guides_may_use_what_others_set() -> None:
    assert slips(f"```bash\n{START} $MODEL_ARGS\n```\n", "guide.md") == []
    assert slips("```bash\ntorchrun t.py \\\n--lr 1\n--bf16\n```\n", "guide.md") != []


# examples/scripts/train_dpo_llama.sh of OpenRLHF
def test_the_arguments_in_a_here_document_are_those_of_the_program() -> None:
    text = """\
read -r -d '' commands <<EOF
openrlhf.cli.train_dpo \\
   --data "a b" \\
   --beta 0.1 $MORE \\
   --save ${DIR}/x --bf16
EOF
deepspeed --module $commands
"""
    imported = import_script("run.sh", text.encode())
    assert [(each.key, each.line, each.value) for each in imported.settings] == [
        ("args.data", 3, ['"a', 'b"']),
        ("args.beta", 4, None),
        ("", 4, None),
        ("args.save", 5, None),
        ("args.bf16", 5, True),
    ]
