"""Print what a release of MindIE-LLM says to files config.json, as lines of JSON.

    python .ci/mindie_judge.py GIT_DIRECTORY REVISION <PATHS

Reads the paths of files from the standard input, one a line. Builds the release's own checks with
``g++`` and nlohmann's JSON library (Debian: nlohmann-json3-dev): all of src/config_manager, and of
llm_manager_impl.cpp the functions that make the engine's configuration. What they need of the rest
is replaced, as ``STUBS`` says. For each file prints whether it is ``accepted``, and the
``messages``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any

MANAGER = "src/llm_manager_v2/impl/llm_manager_impl.cpp"
SOURCES = ("src/config_manager", "src/include", MANAGER)
#: Watches a file that an operator changes while the server runs: no check at the start.
LEFT_OUT = "config_dynamic_handler.cpp"
FLAGS = (
    *("-std=c++17", "-O0", "-w", "-Istubs", "-Isrc/include", "-Isrc/include/config"),
    *("-Isrc/include/utils", "-Isrc/config_manager"),
    # Headers that the sources have from those that are replaced.
    *("-include", "netdb.h", "-include", "arpa/inet.h", "-include", "log.h"),
)
#: The parts of the manager that are built, from a start up to an end: the rest serves requests.
PARTS = (
    ("uint32_t g_vocabSizeConfig", "constexpr int PROCESS_STEP_SLEEP"),
    ("const std::string ENV_NPU_DEVICE_IDS", "\n"),
    ("static void InitbackendConfig(", "static void LLMSetMultiNodeConfig("),
)

#: Errors are printed; all messages are put together, as the library does at its usual level.
LOG = r"""
#pragma once
#include <atomic>
#include <cstring>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include "common_util.h"
#define MINDIE_LLM_LOG_ERROR(text, ...) (std::cout << text << std::endl)
#define MINDIE_LLM_LOG_UNSEEN(text) do { std::ostringstream unseen; unseen << text; } while (0)
#define MINDIE_LLM_LOG_WARN(text, ...) MINDIE_LLM_LOG_UNSEEN(text)
#define MINDIE_LLM_LOG_INFO(text, ...) MINDIE_LLM_LOG_UNSEEN(text)
#define MINDIE_LLM_LOG_DEBUG(text, ...) MINDIE_LLM_LOG_UNSEEN(text)
"""

#: Of [LogConfig] the configuration's manager reads nothing.
LOG_CONFIG = """
#pragma once
namespace mindie_llm { struct LogConfig {}; }
"""

STUBS = r"""
#include "base_config_manager.h"
#include "check_utils.h"
#include "common_util.h"
#include "env_util.h"
#include "safe_io.h"
#include "safe_path.h"
#include "string_utils.h"

// The thread that watches the file would make a refusal last ten seconds.
extern "C" int nanosleep(const timespec *, timespec *) { return usleep(1000); }

namespace mindie_llm {
// Files: those that a configuration names are on no other machine. All exist, may be read, and are
// files if their names have a dot, else folders. A model's folder has no list of LoRA adapters.
static std::string Last(const std::string &path) { return path.substr(path.rfind('/') + 1); }
bool FileUtils::CheckFileExists(const std::string &path) {
    return Last(path) != "lora_adapter.json";
}
bool FileUtils::CheckDirectoryExists(const std::string &path) {
    return Last(path).find('.') == std::string::npos;
}
bool FileUtils::RegularFilePath(const std::string &path, const std::string &, std::string &,
                                std::string &regular) {
    regular = path;
    return true;
}
bool FileUtils::IsFileValid(const std::string &, std::string &, bool, mode_t, bool, uint64_t) {
    return true;
}
SafePath::SafePath(std::string, PathType, std::string, fs::perms, uint64_t, std::string) {}
Result SafePath::Check(std::string &, bool, SoftLinkLevel) { return Result::OK(); }
Result::Result(ResultCode code, std::string text) : code_(code), message_(std::move(text)) {}
Result Result::OK() { return Result(ResultCode::OK, ""); }
bool Result::IsOk() const noexcept { return code_ == ResultCode::OK; }
const std::string &Result::message() const noexcept { return message_; }
// The model's own config.json says nothing.
Result LoadJson(const std::string &, Json &json) {
    json = Json::object();
    return Result::OK();
}

// The installation and the environment: one of two nodes, with a table of ranks.
bool CanonicalPath(std::string &) { return true; }
Error GetHomePath(std::string &home) {
    home = "/home";
    return Error();
}
Error GetConfigPath(std::string &) { return Error(Error::Code::ERROR); }
EnvUtil::EnvUtil() {
    vars = {{"", ""}, {"RANK_TABLE_FILE", "ranks.json"}, {"MIES_CONTAINER_IP", "10.0.0.1"}};
}
const std::string &EnvUtil::Get(const std::string &name) const {
    auto found = vars.find(name);
    return found == vars.end() ? vars.at("") : found->second;
}

// Addresses are not judged: what judges them is not part of the configuration's manager.
bool CheckIp(const std::string &, const std::string &, bool) { return true; }
// Nor are the length of plugin_params and the depth of JSON.
bool CheckStringInputLength(const std::string &, uint32_t) { return true; }
void SetJsonDepthLimit(int) {}
int GetJsonDepthLimit() { return 10; }
bool CheckJsonDepthWithLogger(int, Json::parse_event_t, std::function<void(void)>) { return true; }
bool CheckJsonDepthCallbackNoLogger(int, Json::parse_event_t, Json &) { return true; }
bool CheckJsonDepthCallback(int, Json::parse_event_t, Json &) { return true; }

// Doubles of functions that the configuration's manager has itself.
bool CheckSystemConfig(const std::string &path, Json &data, std::string table) {
    return BaseConfig::CheckSystemConfig(path, data, table);
}
std::string GetStringParamValue(const Json &data, const std::string &name) {
    return ParamChecker::GetStringParamValue(data, name, "");
}

// Called for variables and processes that are not set here.
void Split(const std::string &, char, std::vector<std::string> &) {}
void RemoveSpaces(std::string &) {}
}  // namespace mindie_llm
"""

ENGINE_START = r"""
#include <sstream>
#include <sys/wait.h>
#include "check_utils.h"
#include "config_manager.h"
#include "config_manager_impl.h"
#include "log.h"
#include "safe_io.h"
#include "string_utils.h"
using Json = nlohmann::json;
namespace mindie_llm {
"""
ENGINE_END = r"""
}  // namespace mindie_llm
using namespace mindie_llm;

static bool IsAccepted(const std::string &path) {
    if (!ConfigManager::CreateInstance(path)) {
        return false;
    }
    try {
        EngineConfig engine;
        auto models = GetModelDeployConfig();
        auto devices = GetBackendConfig().npuDeviceIds.at(0);
        return InitEngineConfig(engine, models, devices, 0, {});
    } catch (const std::exception &error) {
        std::cout << error.what() << std::endl;
        return false;
    }
}

// A process for each file: the manager is made once in a process.
int main() {
    for (std::string path; std::getline(std::cin, path);) {
        int ends[2];
        if (pipe(ends) != 0) {
            return 1;
        }
        pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], 1);
            close(ends[0]);
            close(ends[1]);
            int status = IsAccepted(path) ? 0 : 1;
            std::cout.flush();
            _exit(status);
        }
        close(ends[1]);
        std::string text;
        char buffer[4096];
        for (ssize_t size; (size = read(ends[0], buffer, sizeof buffer)) > 0;) {
            text.append(buffer, size);
        }
        close(ends[0]);
        int status = 0;
        waitpid(child, &status, 0);
        Json row = {{"accepted", status == 0}, {"messages", Json::array()}};
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            if (!line.empty()) {
                row["messages"].push_back(line);
            }
        }
        if (!WIFEXITED(status)) {
            row["messages"].push_back("the program crashed");
        }
        std::cout << row.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    }
}
"""

#: Two nodes with four devices each.
RANKS = {
    "server_count": "2",
    "server_list": [
        {
            "server_id": f"10.0.0.{node + 1}",
            "container_ip": f"10.0.0.{node + 1}",
            "device": [
                {
                    "device_id": str(device),
                    "device_ip": f"10.0.1.{4 * node + device}",
                    "rank_id": str(4 * node + device),
                }
                for device in range(4)
            ],
        }
        for node in range(2)
    ],
}


def cut_engine(text: str) -> str:
    """Return the parts of the manager that make and check the engine's configuration."""
    parts = []
    for start, end in PARTS:
        first = text.index(start)
        parts.append(text[first : text.index(end, first)])
    return "\n".join(parts)


def build(git: str, revision: str, folder: Path) -> Path:
    """Build the checks of a revision in a folder; return the program, which reads paths."""
    command = ["git", f"--git-dir={git}", "archive", revision, *SOURCES]
    archive = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    (folder / "stubs").mkdir()
    engine = ENGINE_START + cut_engine((folder / MANAGER).read_text("utf-8")) + ENGINE_END
    for name, text in {
        "log.h": LOG,
        "log_config.h": LOG_CONFIG,
        "stubs.cpp": STUBS,
        "engine.cpp": engine,
    }.items():
        (folder / "stubs" / name).write_text(text, "utf-8")
    (folder / "ranks.json").write_text(json.dumps(RANKS))
    sources = [
        *(each for each in (folder / "src/config_manager").glob("*.cpp") if each.name != LEFT_OUT),
        *(folder / "stubs").glob("*.cpp"),
    ]

    def compile_source(source: Path) -> str:
        target = f"{source.stem}.o"
        command = ["g++", *FLAGS, "-c", str(source), "-o", target]
        subprocess.run(command, cwd=folder, check=True)  # noqa: S603
        return target

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compile_source, sources))
    command = ["g++", *objects, "-o", "judge", "-lstdc++fs", "-lpthread"]
    subprocess.run(command, cwd=folder, check=True)  # noqa: S603
    return folder / "judge"


def judge(git: str, revision: str, paths: list[str]) -> list[dict[str, Any]]:
    """Return what a revision says to files."""
    with tempfile.TemporaryDirectory() as name:
        program = build(git, revision, Path(name))
        lines = "".join(f"{Path(path).resolve()}\n" for path in paths)
        done = subprocess.run(  # noqa: S603
            [program], cwd=name, input=lines, check=True, capture_output=True, text=True
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    files = sys.stdin.read().splitlines()
    for path, row in zip(files, judge(*sys.argv[1:], files), strict=True):
        print(json.dumps({"path": path, **row}, ensure_ascii=False))
