"""The recipes: a job for Kubernetes is valid, and starts as its recipe says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.documents import list_blocks
from support.running import Run

PAGE = "guides/kubernetes.md"
REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


def expand(text: str, known: dict[str, str]) -> str:
    """Return a value, command or argument as a kubelet expands it.

    It replaces references to known variables and turns ``$$`` into ``$``; all else stays.
    """
    return REFERENCE.sub(
        lambda match: "$" if match[0] == "$$" else known.get(match[1], match[0]), text
    )


def start_container(
    container: dict[str, Any], config_maps: dict[str, dict[str, str]], path: str
) -> str:
    """Start a container's command as a kubelet does.

    ``env`` overrides ``envFrom``, and then references in the command are expanded.
    """
    found: dict[str, str] = {}
    for variable in container.get("envFrom", []):
        found |= config_maps[variable["configMapRef"]["name"]]
    for variable in container.get("env", []):
        found[variable["name"]] = expand(variable["value"], found)
    arguments = [
        expand(argument, found) for argument in (*container["command"], *container.get("args", []))
    ]
    return subprocess.run(
        arguments, env={"PATH": path, **found}, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("form", ["envFrom", "env"])
def test_a_container_of_the_recipe_proves_its_digest_as_a_kubelet_starts_it(
    form: str, run: Run, tmp_path: Path
) -> None:
    import kubernetes_validate
    import yaml

    (job,) = (
        yaml.safe_load(text) for text in list_blocks(PAGE, "yaml") if "batch.volcano.sh" in text
    )
    template = job["spec"]["tasks"][0]["template"]
    assert job["spec"]["minAvailable"] <= sum(task["replicas"] for task in job["spec"]["tasks"])
    (container,) = template["spec"]["containers"]
    requested = (
        "bert-training",
        "--store",
        "builtin:",
        "--set",
        "env.NOTE=/tmp/$(HOME)/$$(X) 'a' \"b\" $HOME `id`",
    )
    config_map = yaml.safe_load(run("env", *requested, "--format", "k8s-configmap").out)
    if form == "envFrom":
        container["envFrom"][0]["configMapRef"]["name"] = config_map["metadata"]["name"]
    else:
        del container["envFrom"]
        container |= yaml.safe_load(run("env", *requested, "--format", "k8s-env").out)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train"}, **template}
    for document in (config_map, pod):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    (tmp_path / "python").write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "print(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
    )
    (tmp_path / "python").chmod(0o755)
    output, found = start_container(
        container, {config_map["metadata"]["name"]: config_map["data"]}, f"{tmp_path}:/usr/bin:/bin"
    ).splitlines()
    digest = json.loads(run("show", *requested, "--format", "json").out)["digest"]
    assert output == f"npuprof: bert-training {digest}"
    arguments, environ = json.loads(found)
    assert arguments == ["train.py"]
    wanted = json.loads(run("env", *requested, "--format", "json").out)["env"]
    assert {name: environ.get(name) for name in wanted} == wanted
    assert wanted["NOTE"].endswith("$(HOME)/$$(X) 'a' \"b\" $HOME `id`")
