"""The script side of ``npuprof env`` and ``run``: fills the parameter map from variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from npuprof import catalog
from npuprof.catalog.launchers import list_rank_variables
from npuprof.model import __version__
from npuprof.renderers import Rendered, Target, add_render_header
from npuprof.renderers.python_source import format_literal
from npuprof.renderers.session import FIND_OPTIMIZER, SWITCH_REWRITES_OFF, format_session_imports
from npuprof.resolve.config import Config

_BODY = '''\

{imports}
# The protobuf field that the adapter reads for each key of the parameter map.
FIELDS = {{
{fields}}}
KNOWN = {{"NPUPROF_" + key.upper(): key for key in FIELDS}}
OWN = {own}
SWITCHES = {{"1": True, "true": True, "0": False, "false": False}}
# The variables of launchers that tell the rank of a process, the innermost first: each
# with those that have to be there as well.
RANKS = {ranks}


def session_config(config=None, environ=None):
    """Set what NPUPROF_* variables say in a tf.ConfigProto, a new one if none is given.

    Variables that name no option are reported as a warning; a value that does not fit
    raises ValueError. Where NPUPROF_RECORD names a folder, a record of what was set is
    kept there.
    """
    if config is None:
        config = tf.compat.v1.ConfigProto()
    if environ is None:
        environ = os.environ
    found = {{}}
{find}    for name in sorted(environ):
        if not name.startswith("NPUPROF_") or name in OWN:
            continue
        if name not in KNOWN:
            warnings.warn("ignored: no option is called " + name, stacklevel=2)
            continue
        key, text = KNOWN[name], environ[name]
        field = FIELDS[key]
        if field == "s":
            custom_op.parameter_map[key].s = tf.compat.as_bytes(text)
            found[key] = text
            continue
        if field == "b":
            if text.lower() not in SWITCHES:
                raise ValueError(name + "=" + repr(text) + ": write 1 or 0")
            custom_op.parameter_map[key].b = SWITCHES[text.lower()]
            found[key] = SWITCHES[text.lower()]
            continue
        try:
            custom_op.parameter_map[key].i = int(text)
        except ValueError:
            raise ValueError(name + "=" + repr(text) + ": write a whole number")
        found[key] = int(text)
{off}    if environ.get("NPUPROF_RECORD"):
        keep_record(environ["NPUPROF_RECORD"], environ, found)
    return config


def keep_record(folder, environ, found):
    """Write down what was set, for npuprof diff; where that cannot be, warn."""
    preset = {{"name": environ.get("NPUPROF_PROFILE", "unknown")}}
    for key in ("digest", "preset_digest"):
        digest = environ.get("NPUPROF_" + key.upper(), "")
        if re.fullmatch("[0-9a-f]{{64}}", digest):
            preset[key] = digest
    told = [
        names[0]
        for names in RANKS
        if all(re.fullmatch("[0-9]+", environ.get(name, "")) for name in names)
    ]
    rank = int(environ[told[0]]) if told else None
    now = datetime.datetime.now(datetime.timezone.utc)
    said = [{{"key": key, "value": found[key]}} for key in FIELDS if key in found]
    recorded = [*KNOWN, *OWN - {{"NPUPROF_BEFORE"}}]
    own = {{name: environ[name] for name in recorded if name in environ}}
    record = {{
        "schema": "npuprof.run/2",
        "npuprof": {version},
        "by": "env-loader",
        "state": "loaded",
        "preset": preset,
        "context": {{"text": environ.get("NPUPROF_CONTEXT", "any")}},
        "settings": said,
        "environment": own,
        "process": {{"pid": os.getpid(), "host": os.uname()[1], "rank": rank}},
        "start": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }}
    text = json.dumps(record, indent=2) + "\\n"
    plain = re.sub("[^A-Za-z0-9._-]+", "-", preset["name"]).strip(".-")[:120]
    stem = os.path.join(folder, (plain or "preset") + "." + str(rank or 0) + ".loader")
    try:
        os.makedirs(folder, exist_ok=True)
        number = 1
        while True:
            path = stem + ("-" + str(number) if number > 1 else "") + ".run.json"
            try:
                file = open(path, "x", encoding="utf-8")
                break
            except FileExistsError:
                number += 1
        try:
            with file:
                file.write(text)
        except OSError:
            os.unlink(path)
            raise
    except OSError as error:
        warnings.warn("no record is kept: " + str(error), stacklevel=3)
'''


@cache
def _build_loader_body() -> str:
    fields = {
        option.name: option.field for option in catalog.list_records(catalog.Option) if option.field
    }
    rows = "".join(
        f"    {format_literal(name)}: {format_literal(field)},\n" for name, field in fields.items()
    )
    names = sorted((*catalog.PROVENANCE_VARIABLES, *catalog.CONTROL_VARIABLES))
    own = "".join(f"    {format_literal(f'NPUPROF_{name}')},\n" for name in names)
    ranks = "".join(f"    {_format_tuple(group)},\n" for group in list_rank_variables())
    return _BODY.format(
        imports=format_session_imports(("datetime", "json", "os", "re", "warnings")),
        fields=rows,
        own=f"{{\n{own}}}",
        find=FIND_OPTIMIZER,
        off=SWITCH_REWRITES_OFF,
        ranks=f"(\n{ranks})",
        version=format_literal(__version__),
    )


def _format_tuple(names: Sequence[str]) -> str:
    return f"({', '.join(map(format_literal, names))}{',' if len(names) == 1 else ''})"


def render_loader(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``; it is the same for every preset."""
    return Rendered(add_render_header(config, "env-loader", _build_loader_body()))


TARGETS = {
    "env-loader": Target(
        place=100,
        summary=(
            "a function for the script that fills the "
            "parameter map from what `npuprof env` exported"
        ),
        file="env_loader.py",
        write=render_loader,
        surface="session",
        sections=("options", "env"),
    ),
}
