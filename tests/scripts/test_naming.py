"""What presets that are made of scripts are called."""

from __future__ import annotations

import random

import pytest

from npuprof.scripts.naming import name_covering_folder, name_files

ZOO = "cv/ResNet50_ID0360_for_TensorFlow"

#: Files of one import, and their names.
FILES: dict[str, dict[str, str]] = {
    "names that say enough": {
        "a/yolo.py": "yolo",
        "b/Widedeep.py": "widedeep",
        "launch/8p.d/hello.sh": "hello",
    },
    "names that say nothing": {
        "alexnet/train.py": "alexnet-train",
        "vgg/train.py": "vgg-train",
        "vgg/eval.py": "vgg-eval",
    },
    "entries": {
        "alexnet/main.py": "alexnet-main",
        "vgg/run.py": "vgg-run",
        "gpt2/src/start_npu.py": "gpt2-start_npu",
    },
    "folders that say what, and not of which model": {
        "ads/eval/main.py": "ads-main",
        "ranking/serve/app.py": "ranking-app",
        "eval/main.py": "main",
        "speech/train_debug.py": "speech-train_debug",
        "asr/inference/export.py": "asr-export",
    },
    "folders that say nothing": {
        "alexnet/src/train.py": "alexnet-train",
        "vgg/scripts/test/train.py": "vgg-train",
    },
    "a zoo": {
        f"{ZOO}/train.py": "resnet50_id0360-train",
        "cv/VGG16_ID0068_for_TensorFlow2.X/test/train_npu.py": "vgg16_id0068-train_npu",
    },
    "one name in two folders": {"a/yolo.py": "a-yolo", "b/yolo.py": "b-yolo"},
    "one folder, two suffixes": {"a/yolo.py": "yolo-py", "a/yolo.sh": "yolo-sh"},
    "one folder": {
        "bert/main.py": "bert-main",
        "bert/run.sh": "bert-run",
        "bert/start.sh": "bert-start",
    },
    "names that no preset may have": {
        "a b/é.py": "imported",
        "x/-n.py": "n",
        "y/.hidden.py": "hidden",
    },
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_named_after_themselves_and_their_folders(name: str) -> None:
    expected = FILES[name]
    files = list(expected)
    assert name_files(files) == expected
    assert name_files(random.Random(1).sample(files, len(files))) == expected


@pytest.mark.parametrize(
    ("files", "others", "folder"),
    [
        (["vgg/train.py", "vgg/eval.py"], ["bert/train.py"], "vgg"),
        (["vgg/train.py", "vgg/eval.py"], ["vgg/test.py"], ""),  # not all of the folder
        (
            ["cv/VGG16_ID0068_for_TensorFlow/a.py", "cv/VGG16_ID0068_for_TensorFlow/x/b.py"],
            ["cv/b.py"],
            "vgg16_id0068",
        ),
        (["vgg/a.py", "bert/b.py"], [], ""),
        (["/zoo/vgg/a.py", "/zoo/vgg/b.py"], ["/zoo/vgg2/a.py"], "vgg"),
    ],
)
def test_a_folder_names_what_all_in_it_share(
    files: list[str], others: list[str], folder: str
) -> None:
    assert name_covering_folder(files, [*files, *others]) == folder
