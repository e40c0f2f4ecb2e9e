"""Scripts of the migration tool, and HCCL start-up: options passed to npu_bridge's functions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npuprof import catalog
from npuprof.model import Finding, raise_any
from npuprof.renderers import (
    Rendered,
    Target,
    build_render_finding,
    build_uncarried_finding,
)
from npuprof.renderers.python_source import format_call, format_literal
from npuprof.renderers.session import SESSION_LOOP, Shape, render_shape
from npuprof.resolve.config import Config

_HOOK_LOOP = (
    "SetIterationsVarHook({count}) among the hooks, "
    'train_op = tf.group(train_op, name="IterationOp")'
)
_SHAPES = {
    "session-migrated": Shape(
        ("npu_config_proto",),
        "",
        "config = npu_config_proto(config_proto=config)\n",
        """Set the options in a tf.ConfigProto, a new one if none is given; return it.

    npu_config_proto also sets allow_soft_placement and log_device_placement.
    """,
        "npu_config_proto(config_proto=config)",
        loop=SESSION_LOOP,
    ),
    "init-resource": Shape(
        ("close_session", "init_resource", "shutdown_resource"),
        '''

def init_npu(config=None):
    """Start the NPU; return its session and the operation that shuts it down.

    The session that trains needs the same options again.
    """
    return init_resource(config=session_config(config))


@contextlib.contextmanager
def npu_resource(config=None):
    """Keep the NPU up: with npu_resource(): tf.compat.v1.app.run().

    It is shut down even though app.run ends in sys.exit.
    """
    npu_sess, npu_shutdown = init_npu(config)
    try:
        yield npu_sess
    finally:
        shutdown_resource(npu_sess, npu_shutdown)
        close_session(npu_sess)
''',
        """\
npu_sess, npu_shutdown = init_resource(config=config)
try:  # app.run ends in sys.exit
    tf.compat.v1.app.run()
finally:
    shutdown_resource(npu_sess, npu_shutdown)
    close_session(npu_sess)
""",
        standard=("contextlib",),
        trains=False,
    ),
    "keras": Shape(
        ("set_keras_session_npu_config",),
        '''

def keras_session(config=None):
    """Make a session with the options, hand it to Keras, and return it: close it at the end."""
    return set_keras_session_npu_config(config=session_config(config))
''',
        "npu_keras_sess = set_keras_session_npu_config(config=config)\n",
    ),
    "initialize-system": Shape(
        ("npu_ops",),
        '''

def initialize_system(config=None):
    """Run initialize_system; return its session and the operation that shuts down.

    init_sess, npu_shutdown = initialize_system()
    ...  # HCCL calls, training in a session of its own
    init_sess.run(npu_shutdown)
    init_sess.close()
    """
    npu_init = npu_ops.initialize_system()
    npu_shutdown = npu_ops.shutdown_system()
    init_sess = tf.compat.v1.Session(config=session_config(config))
    init_sess.run(npu_init)
    return init_sess, npu_shutdown


@contextlib.contextmanager
def initialized_system(config=None):
    """Keep the system initialised: with initialized_system() as init_sess."""
    init_sess, npu_shutdown = initialize_system(config)
    try:
        yield init_sess
    finally:
        init_sess.run(npu_shutdown)
        init_sess.close()
''',
        """\
npu_init = npu_ops.initialize_system()
npu_shutdown = npu_ops.shutdown_system()
init_sess = tf.compat.v1.Session(config=config)
init_sess.run(npu_init)
# HCCL calls, training in a session of its own with all options
init_sess.run(npu_shutdown)
init_sess.close()
""",
        "Set what counts when the system is initialised; return the tf.ConfigProto.",
        standard=("contextlib",),
        trains=False,
    ),
}


def _render_migrated_target(target: str, config: Config, inline: bool) -> Rendered:
    shape = _SHAPES[target]
    if target != "initialize-system":
        return _render_session_shape(config, target, shape, inline)
    early, later = _split_early_options(config)
    rendered = _render_session_shape(config, target, shape, inline, early)
    if not later:
        return rendered
    verb = "count" if len(later) > 1 else "counts"
    return rendered._replace(notes=(f"{', '.join(later)} {verb} in the session that trains",))


def _split_early_options(config: Config) -> tuple[list[str], list[str]]:
    """Return the options that must be in the session of initialize_system, and the others."""
    early = []
    later = []
    for name in config.shared_sections["options"]:
        option = catalog.find_option(name)
        # the first two are reported, not skipped
        if (
            option is None
            or option.field is None
            or option.repeated_at_start
            or option.level == "init"
        ):
            early.append(name)
        else:
            later.append(name)
    return early, later


def _render_session_shape(
    config: Config, target: str, shape: Shape, inline: bool, names: list[str] | None = None
) -> Rendered:
    rendered = render_shape(config, target, shape, inline, names)
    return rendered._replace(findings=(*rendered.findings, *_check_initial_options(config, target)))


def _check_initial_options(config: Config, target: str) -> Iterator[Finding]:
    """Yield the finding for options that init_resource or initialize_system needs too."""
    initial = [
        name
        for name in config.shared_sections["options"]
        if (option := catalog.find_option(name)) and option.level == "init"
    ]
    if initial and target not in ("initialize-system", "init-resource"):
        what = (
            f"{', '.join(initial)} must also be in the session of init_resource or "
            "initialize_system, where the script calls one"
        )
        why = (
            "The first session of a process starts the engine; "
            "what later ones say of these options is ignored."
        )
        hint = "npuprof render --to init-resource, or --to initialize-system, writes it"
        yield build_render_finding(config, "NP907", initial[0], what, why, hint)


def _render_migrated_estimator(config: Config, inline: bool) -> Rendered:
    """Return the target estimator-migrated: tf.estimator.RunConfig through npu_run_config_init."""
    arguments = []
    findings = []
    for name, value in config.shared_sections["estimator"].items():
        argument = catalog.find_argument(name)
        if argument is None or not argument.run_config:
            key = f"estimator.{name}"
            why = "tf.estimator.RunConfig has no such argument."
            hint = "the target estimator can carry it"
            findings.append(build_uncarried_finding(config, key, "estimator-migrated", why, hint))
        arguments.append(f"{name}={format_literal(value)}")
    raise_any(findings)
    indent = "" if inline else "    "
    inner = "config" if inline else "session_config(config.session_config)"
    head = "tf.estimator.RunConfig(" if inline else "config.replace("
    arguments.append(f"session_config={inner}")
    call = "\n".join(format_call((head, arguments, ")"), indent)).lstrip()
    if inline:
        tail = f"run_config = {call}\nrun_config = npu_run_config_init(run_config=run_config)\n"
    else:
        tail = f'''

def run_config(config=None):
    """Set the options in a tf.estimator.RunConfig, a new one if none is given; return it."""
    if config is None:
        config = tf.estimator.RunConfig()
    config = {call}
    return npu_run_config_init(run_config=config)
'''
    shape = Shape(("npu_run_config_init",), tail, tail, loop=_HOOK_LOOP)
    return _render_session_shape(config, "estimator-migrated", shape, inline)


_SESSION = Target(
    place=20,
    summary="the same through `npu_config_proto(config_proto=...)`",
    file="session_migrated.py",
    write=partial(_render_migrated_target, "session-migrated"),
    surface="session",
    renames=True,
)
TARGETS = {
    "session-migrated": _SESSION,
    "init-resource": _SESSION._replace(
        place=30,
        summary="the session of `init_resource(config=...)`, with the shutdown",
        file="init_resource.py",
        write=partial(_render_migrated_target, "init-resource"),
    ),
    "estimator-migrated": _SESSION._replace(
        place=50,
        summary="`npu_run_config_init(run_config=...)`",
        file="estimator_migrated.py",
        write=_render_migrated_estimator,
        sections=("options", "estimator"),
    ),
    # No file has the name of the package: scripts next to it would import it instead.
    "keras": _SESSION._replace(
        place=60,
        summary="`set_keras_session_npu_config(config=...)`",
        file="keras_session.py",
        write=partial(_render_migrated_target, "keras"),
    ),
    "initialize-system": _SESSION._replace(
        place=70,
        summary="the session that runs `initialize_system`, with the options that must be there",
        file="initialize_system.py",
        write=partial(_render_migrated_target, "initialize-system"),
        surface="",
    ),
}
