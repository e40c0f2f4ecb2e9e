"""The script's side of ``npuprof env`` and ``npuprof run``: a function that fills the parameter map from variables."""

from __future__ import annotations

from functools import cache

from npuprof import catalog
from npuprof.renderers import Rendered, Target
from npuprof.renderers.common import add_render_header
from npuprof.renderers.python import format_literal
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


def session_config(config=None, environ=None):
    """Set what NPUPROF_* variables say in a tf.ConfigProto, a new one if none is given.

    Variables that name no option are reported as a warning; a value that does not fit
    raises ValueError.
    """
    if config is None:
        config = tf.compat.v1.ConfigProto()
    if environ is None:
        environ = os.environ
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
            continue
        if field == "b":
            if text.lower() not in SWITCHES:
                raise ValueError(name + "=" + repr(text) + ": write 1 or 0")
            custom_op.parameter_map[key].b = SWITCHES[text.lower()]
            continue
        try:
            custom_op.parameter_map[key].i = int(text)
        except ValueError:
            raise ValueError(name + "=" + repr(text) + ": write a whole number")
{off}    return config
'''


@cache
def _build_loader_body() -> str:
    fields = {name: option.field for name in catalog.record_names() if (option := catalog.find_option(name)) and option.field}
    rows = "".join(f"    {format_literal(name)}: {format_literal(field)},\n" for name, field in fields.items())
    names = sorted((*catalog.SAID_VARIABLES, *catalog.OBEYED_VARIABLES))
    own = "{\n" + "".join(f"    {format_literal(f'NPUPROF_{name}')},\n" for name in names) + "}"
    return _BODY.format(
        imports=format_session_imports(("os", "warnings")), fields=rows, own=own, find=FIND_OPTIMIZER, off=SWITCH_REWRITES_OFF
    )


def render_loader(config: Config, inline: bool) -> Rendered:
    """Return the module with ``session_config(config=None)``; it is the same for every preset."""
    return Rendered(add_render_header(config, "env-loader", _build_loader_body()))


TARGETS = {
    "env-loader": Target(
        100,
        "a function for the script that fills the parameter map from what `npuprof env` exported",
        "env_loader.py",
        render_loader,
        "session",
        sections=("env",),
    ),
}
