"""What rendered settings ask of the script around them, and what the place that reads them makes of them."""

from __future__ import annotations

from npuprof.catalog import build_finding
from npuprof.model import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from npuprof.resolve.config import Config

#: The line that makes the loop on the device in a script with a session of its own.
SESSION_LOOP = "train_op = util.set_iteration_per_loop(sess, train_op, {count})"


def find_companion_lines(config: Config, loop: str = "", trains: bool = True) -> tuple[list[str], tuple[Finding, ...]]:
    """Return the remarks for the rendered code, and findings, on lines that the script has to add.

    ``trains`` tells whether the rendered session is the one that trains, ``loop`` which line of its script makes the loop on the
    device, empty where no line is needed.
    """
    remarks: list[str] = []
    findings: list[Finding] = []
    mode = config.settings.get("experimental_accelerate_train_mode")
    if mode is not None and trains:
        trigger = mode[1] if isinstance(mode, list) and len(mode) > 1 else str(mode).split("|")[1:2]
        loss = trigger == "loss" or trigger == ["loss"]
        hook = f"TellMeStepOrLossHook({'loss=..., final_loss=...' if loss else 'step=..., total_step=...'})"
        remarks += ["The script has to train with this hook, or acceleration never ends:", hook]
        pair = "LOSS_NOW and TARGET_LOSS" if loss else "STEP_NOW and TOTAL_STEP"
        findings.append(
            build_render_finding(
                config,
                "NP905",
                "experimental_accelerate_train_mode",
                f"the script has to add {hook} to its hooks",
                f"The adapter splits the training by {pair}, which nothing else keeps current.",
                f"hooks.append({hook}), or set {pair} in os.environ at every step",
            )
        )
    count = config.settings.get("iterations_per_loop", 1)
    if loop and type(count) is int and count > 1:
        line = loop.format(count=count)
        remarks += ["The loop on the device needs this in the script as well:", line]
        findings.append(
            build_render_finding(
                config,
                "NP906",
                "iterations_per_loop",
                f"iterations_per_loop = {count} needs a change of the script as well",
                "The option alone does not move the loop to the device.",
                f"add {line}",
            )
        )
    return remarks, tuple(findings)


def build_render_finding(config: Config, code: str, key: str, what: str, why: str, hint: str) -> Finding:
    """Return a finding; at the place that set its key, where it is more than a note."""
    found = build_finding(code, what, why, hint, None, key, (config.name,))
    return found._replace(origin=config.origin(key)) if found.severity != "info" and key in config.settings else found
