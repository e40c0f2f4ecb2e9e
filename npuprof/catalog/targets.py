"""The names of the render targets: what ``--to`` takes, and what an override may match."""

#: Which module holds a target. One row a target: a command imports only the module it needs.
MODULES = {
    "session": "session",
    "session-migrated": "migrated",
    "init-resource": "migrated",
    "estimator": "estimator",
    "estimator-migrated": "migrated",
    "keras": "migrated",
    "initialize-system": "migrated",
    "global-options": "global_options",
    "atc": "atc",
    "env-loader": "loader",
    "toml": "plain",
    "json": "plain",
}

#: What ``match = { target = ... }`` may name: the exports of the environment are one target.
NAMES = (*MODULES, "env")
