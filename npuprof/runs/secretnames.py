"""Names of what logs somebody in, and values that are none whatever they are called."""

from __future__ import annotations

import re

#: Whose password, or pass, it is; compilers and filters have passes, too.
_OWNERS = (
    "db|user|admin|root|login|smtp|ftp|proxy|redis|my(?:sql)?|pg|postgres|ssh|store|key|become|ldap|bind|sudo|imap|mail|vault|ipmi|bmc|vnc"
)
#: What models read and write is tokens, too: those of three to seven letters before the word.
_OF_MODELS = (
    r"(?<!(?:pad|unk|bos|eos|cls|sep|max|num|min|end|per|new)[-_])(?<!(?:mask|stop|next|last|text|word)[-_])"
    r"(?<!(?:image|start|begin|video|audio|extra|blank|empty)[-_])(?<!(?:prefix|suffix)[-_])(?<!special[-_])"
)
#: What stands in the name of a variable, or of an argument, that logs somebody in.
_STRONG = (
    rf"{_OF_MODELS}token(?![\w.-])|passw|passphrase|passcode|secret|credential|auth(?!or(?!iz))|cookie(?!c)"
    r"|(?:api|access|private|signing|account|shared|subscription|encryption|master|license|consumer|storage)[-_]?key"
    r"|(?<=[-_])pwd|pwd(?=[-_])|(?<![a-z])(?:pw|creds?|otp|totp)(?![a-z])|(?:git|github|gitlab|gh|ext)[-_]pat(?![a-z])"
    rf"|(?:(?<![\w.])(?<!\w-)|(?:{_OWNERS})[-_]?)pass(?![\w-])"
)
#: The same where the value looks like it: there are keys to sort by, and pins of a chip.
_WEAK = r"(?<![a-z])pin(?![\w.-])|key(?![\w.-])"
#: A name of that, as a part of a pattern: looked through once, as words of a command line may be long.
SECRET_NAME = rf"(?=[\w.-]*?(?:{_STRONG}|{_WEAK}))[\w.-]++"
_STRONG_NAME = re.compile(_STRONG, re.IGNORECASE)
_WEAK_NAME = re.compile(_WEAK, re.IGNORECASE)
_KIND = re.compile(r"[-_](?:type|mode|method|len|length|size|dim|count|stdin|fd)$", re.IGNORECASE)
#: How many tokens a model reads is no secret, nor which words it takes for one.
_COUNTED = re.compile(r"token|pass(?!w|p|c)", re.IGNORECASE)
_COUNT = re.compile(r"[\d.,_]{1,9}|(?:[\[<][\w/|]{1,12}[\]>],?)+")
_SWITCH = re.compile(r"true|false|yes|no|none|null|on|off|auto|default", re.IGNORECASE)
_NUMBER = re.compile(r"\d{4,12}")
_RANDOM = re.compile(r"(?![/.~$])(?=\S*[A-Za-z])[\w+/=.:-]{16,}", re.ASCII)
_FILE = re.compile(r"\.[a-z]\w{0,4}$", re.IGNORECASE)


def is_secret(name: str, value: str) -> bool:
    """Return whether a value may log somebody in, by what it is called, and by how it looks where the name may mean anything."""
    if _KIND.search(name) or _SWITCH.fullmatch(value):
        return False
    if _STRONG_NAME.search(name) is not None:
        return _COUNTED.search(name) is None or _COUNT.fullmatch(value) is None
    weak = _WEAK_NAME.search(name)
    return weak is not None and (is_random(value) or (weak[0].lower() == "pin" and _NUMBER.fullmatch(value) is not None))


def is_random(value: str) -> bool:
    """Return whether a text looks like drawn by lot, as keys are: long, in one piece, digits here and there; and no path."""
    return _RANDOM.fullmatch(value) is not None and len(re.findall(r"\d+", value)) > 1 and _FILE.search(value) is None
