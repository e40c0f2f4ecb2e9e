"""Shell scripts: exported variables, variables given to one command, and ``atc`` command lines."""

from __future__ import annotations

import re
from collections.abc import Callable

from npuprof.catalog import build_finding
from npuprof.document.keys import format_full_key
from npuprof.model import Finding, Place
from npuprof.scripts.reading.found import TAKEN_BACK, Branch, Followed, FoundSetting, ImportedFile, Site
from npuprof.scripts.reading.modules import Modules
from npuprof.scripts.reading.shells import atc
from npuprof.scripts.reading.shells.constants import ASSIGNMENT, Constants
from npuprof.scripts.reading.shells.flow import Flow
from npuprof.scripts.reading.shells.slurm import find_directive_exports, find_exports, find_limit
from npuprof.scripts.reading.shells.sourcing import Joined, may_source
from npuprof.scripts.reading.shells.spans import starts_something
from npuprof.scripts.reading.shells.words import Command, Word, parse_shell_commands
from npuprof.scripts.reading.surfaces import env
from npuprof.scripts.reading.variables import build_variable_setting, decode_text

_WHOLE_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*)\[@\]\}")
_SET_INSIDE = re.compile(r"(?<![\w$])([A-Za-z_]\w*)=")
_ATC = re.compile(rb"\batc\b")

_PREFIX_WORDS = {
    "nohup", "time", "exec", "sudo", "env", "command", "builtin", "then", "do", "else", "!", "{", "if", "while", "until", "elif",
}  # fmt: skip
#: Programs that tell something, or prepare what others need.
_ASKING = frozenset(("source", "module", "ml", "hostname", "scontrol", "sinfo", "squeue", "npu-smi"))
_ALWAYS = (":", "true")
_LOOPS = ("for", "while", "until", "select")
#: Branches around a command; Python takes half as many.
_MOST_BRANCHES = 200
#: A variable of more characters is not put into its own next value.
_LONGEST = 4096
#: Commands that are run for what they answer.
_TESTS = {"[", "[[", "test", "grep", "which", "command", "type", "!", "false", "diff", "cmp", "pgrep"}


def mentions_setting(data: bytes) -> bool:
    """Return whether a script can hold a setting."""
    return env.mentions_variable(data) or _ATC.search(data) is not None


def sources_settings(path: str, data: bytes, modules: Modules) -> bool:
    """Return whether a script takes in a file of its tree that can hold a setting."""
    if modules.locate_file is None or not may_source(data):
        return False
    joined = Joined(path, decode_text(path, data, []) or "")
    joined.take_in(modules.locate_file, modules.read)
    return joined.has_others and mentions_setting(joined.text.encode(errors="replace"))


def import_shell_script(path: str, data: bytes, modules: Modules | None = None, plain: bool = False) -> ImportedFile:
    """Return what a shell script holds; any bytes will do. In a ``plain`` one every variable counts, exported or not.

    With ``modules`` the files of its tree count that it takes in.
    """
    problems: list[Finding] = []
    text = decode_text(path, data, problems)
    if text is None:
        return ImportedFile(path, problems=tuple(problems))
    joined = Joined(path, text)
    if modules is not None and modules.locate_file is not None and may_source(data):
        joined.take_in(modules.locate_file, modules.read)
        problems += joined.list_problems()
    reading = _Reading(path, joined.text, plain, joined.name_line)
    found, sites = reading.collect_settings()
    blanks = reading.blanks
    deep = reading.too_deep
    at = (deep.line, deep.column) if deep else ()
    followed: tuple[Followed, ...] = ()
    if joined.has_others:
        found, sites, followed = joined.place_settings(found, sites)
        blanks = [(own[0], own[1], name) for line, column, name in blanks if (own := joined.find_own_place(line, column))]
        at = at and joined.find_own_place(*at)
    if at:
        what = f"more than {_MOST_BRANCHES} branches stand in each other"
        problems.append(build_finding("NP801", what, "Nothing behind this place was read.", "flatten it", where=Place(path, *at)))
    return ImportedFile(path, found, sites, tuple(problems), {"text": text, "blanks": blanks}, followed=followed)


def read_shell_text(path: str, text: str, plain: bool = False) -> tuple[tuple[FoundSetting, ...], tuple[Site, ...], _Reading]:
    """Return the settings and configurations of a text that a shell runs, and how it was read."""
    reading = _Reading(path, text, plain)
    return (*reading.collect_settings(), reading)


class _Reading:
    def __init__(self, path: str, text: str, plain: bool, name_line: Callable[[int], str] = "line {}".format) -> None:
        self.path = path
        self.plain = plain
        self.commands = list(parse_shell_commands(text))
        self.directives = list(find_directive_exports(text)) if "#SBATCH" in text else []
        self.found: list[FoundSetting] = []
        self.sites: list[Site] = []
        self.branches: list[list[object]] = []
        self.constants = Constants(text, self.commands)
        self.flow = Flow(text, self.commands, name_line)
        self.name_line = name_line
        self.text = text
        self.known: dict[str, str] = {}  #: the constants that have been given their values
        self.pending: dict[str, list[FoundSetting]] = {}
        self.exported: set[str] = set()
        self.exports_all = False
        self.places: dict[str, list[int]] = {}  #: where in ``found`` the exports of a variable are that may hold
        self.arrays: dict[str, tuple[tuple[Branch, ...], tuple[Word, ...]]] = {}
        self.before: Command | None = None
        self.test = ""
        self.limits: list[tuple[int, frozenset[str]]] = []  #: lines of ``srun`` that hand over no more than these of what is exported
        self.hands_all = False
        self.blanks: list[tuple[int, int, str]] = []
        self.too_deep: Word | None = None

    def collect_settings(self) -> tuple[tuple[FoundSetting, ...], tuple[Site, ...]]:
        for variable, word, value in self.directives:
            self._add_variable(variable, word, value, exported=True)
        self.flow.note_settings(len(self.found))
        for command in self.commands:
            self._process_joined_command(command)
            self.known.update(self.constants.list_given(command))
            self.flow.note_settings(len(self.found))
            if len(self.branches) > _MOST_BRANCHES:
                self.too_deep = command[0]
                break
        found = self._settle_limits(self.flow.settle_order(self.found))
        return tuple(sorted(found, key=lambda one: (one.line, one.column))), tuple(self.sites)

    def _settle_limits(self, found: list[FoundSetting]) -> list[FoundSetting]:
        """Return settings without those that nothing is given, because every ``srun`` names what it hands over."""
        if not self.limits or self.hands_all:
            return found
        lines = {line for line, _ in self.limits}
        handed = frozenset[str]().union(*(names for _, names in self.limits))
        why = f"srun in {self.name_line(min(lines))} hands over only what its --export names"
        return [
            one._replace(value=None, kind="", reason=why)
            if one.surface == "env" and not one.reason and one.line not in lines and one.name not in handed
            else one
            for one in found
        ]

    def _current_branches(self) -> tuple[Branch, ...]:
        line, asked = self.flow.doubt
        doubt = ((line * 10_000, 0, asked),) if line else ()
        return *((number, arm, str(text)) for number, arm, text in self.branches if text), *doubt

    def _process_joined_command(self, command: Command) -> None:
        """Read a command that may stand behind ``&&`` or ``||``: then it runs only if the test before it says so."""
        first = command[0].text if not command[0].quoted else ""
        asked = _format_words(self.before) if self.before else ""
        if not command.join:
            self.test = ""
        elif command.join == "||":
            self.test = f"not ({asked})"
        elif self.before and self.before[0].text in _TESTS:
            self.test = _shorten(f"({self.test}) and ({asked})") if self.test else asked
        self.before = command
        self.flow.follow_command(command, bool(self.branches or self.test))
        if first == "}" and self.branches:
            self.branches.pop()
            return
        held = len(self.branches)
        if self.test or first == "{":
            self.branches.append([command[0].line * 10_000 + command[0].column, 0, self.test])
        self._process_command(command)
        if self.test and first != "{" and len(self.branches) == held + 1:
            self.branches.pop()

    def _process_command(self, words: list[Word]) -> None:
        is_test = words[0].text == "if" and not words[0].quoted
        words = self._track_branches(words)
        asked = [self.branches.pop()] if is_test else []  # what is asked runs whatever the answer
        self._process_words(words)
        self.branches += asked

    def _process_words(self, words: list[Word]) -> None:
        while words and words[0].text in _PREFIX_WORDS and not words[0].quoted:
            words = words[1:]
        if not words:
            return
        given: list[tuple[str, Word, Word]] = []
        for place, word in enumerate(words):
            match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
            if not match:
                words = words[place:]
                break
            given.append((match[1], word, word.cut_prefix(match.end())))
        else:
            words = []
        while words and words[0].text in _PREFIX_WORDS and not words[0].quoted:
            words = words[1:]
        name = words[0].text if words else ""
        if not words:
            for variable, word, value in given:
                if word.items:
                    self._keep_array(variable, word)
                    continue
                if self.exports_all and not (self.flow.idle or self._current_branches()):
                    self.exported.add(variable)
                self._add_variable(variable, word, value, exported=self.plain or self.exports_all or variable in self.exported)
            return
        for variable, word, value in given if starts_something(words) else ():
            self._add_variable(variable, word, value, exported=True)
        plain = name.rpartition("/")[2]
        if plain == "srun" and (limit := find_limit(words[1:])) is not None:
            self.limits.append((words[0].line, limit))
        elif starts_something(words) and plain not in _ASKING:
            self.hands_all = True
        if name == "eval":
            self._doubt_evaluated(words)
        elif name == "read" or (name == "printf" and len(words) > 2 and words[1].text == "-v"):
            for word in words[2:3] if name == "printf" else words[1:]:
                if word.text in self.places or word.text in self.exported:
                    self._add_variable(word.text, word, word._replace(parts=((name,),)), exported=True)
        elif name == "export" and len(words) > 1 and words[1].text == "-n":
            self._take_back([word.cut_prefix(0)._replace(parts=(word.text.partition("=")[0],)) for word in words[2:]])
        elif name in ("export", "declare", "typeset", "local"):
            flags = "".join(word.text for word in words[1:] if word.text.startswith("-"))
            if name != "local" or "x" in flags:
                local = name != "export" and "g" not in flags and self.flow.function
                self._process_export(words[1:], name == "export" or "x" in flags, f"it ends with {local}()" if local else "")
        elif name == "unset":
            self._take_back(words[1:])
        elif name == "set":
            self._set_flags(words[1:])
        elif name == "setenv" and len(words) >= 3 and re.fullmatch(r"[A-Za-z_]\w*", words[1].text):
            self._add_variable(words[1].text, words[1], words[2], exported=True)
        elif name.rpartition("/")[2] in ("sbatch", "srun"):
            for variable, word, value in find_exports(words[1:]):
                self._add_variable(variable, word, value, exported=True)
        elif name.rpartition("/")[2] in ("atc", "atc.bin"):
            self._add_atc_command(words)

    def _doubt_evaluated(self, words: list[Word]) -> None:
        """Note which variables a text sets that is run as commands."""
        shown = _format_words(words)
        for match in _SET_INSIDE.finditer(" ".join(word.text for word in words[1:])):
            self._add_variable(match[1], words[0], words[0]._replace(parts=((shown,),)), exported=True)

    def _keep_array(self, name: str, word: Word) -> None:
        """Remember the words of an array, and the branches that they are certain in."""
        around, (before, items) = self._current_branches(), self.arrays.get(name, ((), ()))
        if not word.text.endswith("+="):
            self.arrays[name] = around, word.items
        elif name in self.arrays:
            self.arrays[name] = max(around, before, key=len), (*items, *word.items)

    def _fill_arrays(self, words: list[Word]) -> list[Word]:
        """Return words with those in place of arrays that stand for them: ``"${NAME[@]}"``."""
        found: list[Word] = []
        here = self._current_branches()
        for word in words:
            if not word.quoted and word.text == word.open_part and (split := self.constants.split_variable(word)):
                found += split
                continue
            match = _WHOLE_ARRAY.fullmatch(word.open_part) if word.quoted and word.text == word.open_part else None
            around, items = self.arrays.get(match[1], ((), (word,))) if match else ((), (word,))
            found += items if here[: len(around)] == around else (word,)
        return found

    def _track_branches(self, words: list[Word]) -> list[Word]:
        """Keep count of the branches that a command opens, turns over or closes."""
        first = words[0].text if not words[0].quoted else ""
        if first == "if":
            asked = _format_words(words[1:])
            self.branches.append([words[0].line * 10_000 + words[0].column, 0, asked if asked not in _ALWAYS else ""])
        elif first == "elif" and self.branches:
            self.branches[-1][1:] = [int(str(self.branches[-1][1])) + 1, _format_words(words[1:])]
        elif first == "else" and self.branches:
            self.branches[-1][1:] = [-int(str(self.branches[-1][1])) - 1, _shorten(f"not ({self.branches[-1][2] or ':'})")]
            return words[1:]
        elif first == "fi" and self.branches:
            self.branches.pop()
        elif first == "case":
            self.branches.append([words[0].line * 10_000 + words[0].column, 0, f"case {words[1].text}" if len(words) > 1 else "case"])
            return []
        elif first == "esac" and self.branches:
            self.branches.pop()
        elif first in ("then", "do"):
            return self._track_branches(words[1:]) if words[1:] and words[1].text in _LOOPS else words[1:]
        elif first in _LOOPS:
            asked = f"the loop in {self.name_line(words[0].line)} has a turn" if self.flow.is_doubtful_loop else ""
            self.branches.append([words[0].line * 10_000 + words[0].column, 0, asked])
        elif first == "done" and self.branches:
            self.branches.pop()
        return words

    def _process_export(self, words: list[Word], exported: bool, unused: str) -> None:
        for place, word in enumerate(words):
            match = ASSIGNMENT.match(word.parts[0]) if isinstance(word.parts[0], str) else None
            if exported and not (unused or self.flow.idle or self._current_branches()):
                self.exported.add(match[1] if match else word.text)
            if match:
                self._add_variable(match[1], word, word.cut_prefix(match.end()), exported, unused)
            elif (
                env.is_ascend_variable(word.text)
                and place + 1 < len(words)
                and words[place + 1].text.startswith("=")
                and not words[place + 1].quoted
            ):
                self.blanks.append((word.line, word.column, word.text))
            elif exported and word.text in self.pending:
                for one in self.pending.pop(word.text):
                    self.places.setdefault(one.name, []).append(len(self.found))
                    self.found.append(one)

    def _take_back(self, words: list[Word]) -> None:
        """Note that variables are unset which the script has exported."""
        known = {one.name for one in self.found} if not self.flow.idle else set()
        for word in words:
            if word.text in known:
                key, around = format_full_key("env", word.text), self._current_branches()
                self.found.append(
                    FoundSetting(
                        self.path, word.line, word.column, "env", key, word.text, None, None, TAKEN_BACK, "", around, "<process>:export"
                    )
                )

    def _set_flags(self, words: list[Word]) -> None:
        """Note from where to where every variable is exported that is set: ``set -a``."""
        for place, word in enumerate(words if not self.flow.idle else ()):
            option = words[place + 1].text if word.text[1:] == "o" and place + 1 < len(words) else ""
            if word.text[:1] in ("-", "+") and ("a" in word.text[1:] or option == "allexport"):
                self.exports_all = word.text[0] == "-"

    def _add_variable(self, name: str, word: Word, value: Word, exported: bool, unused: str = "") -> None:
        filled = value.fill_variables(self._list_known(), but=name)
        around, places = self._current_branches(), self.places.setdefault(name, [])
        last = self.found[places[-1]] if places else None
        if last and last.written and len(last.written) <= _LONGEST and not (last.reason or last.unused or last.branches or around):
            filled = filled.fill_variables({name: last.written})
        reason = "depends on ~" if self.text.startswith(f"{name}=~", word.span[0]) else ""
        found = build_variable_setting(self.path, (word.line, word.column), name, filled.parts, around, reason)
        if found is None:
            return
        found = found._replace(unused=self.flow.idle or unused)
        if not exported:
            self.pending.setdefault(name, []).append(found)
            return
        if found.reason.startswith("depends") and not around and not found.unused:
            self._overrule(places, f"{self.name_line(found.line)} sets it again, to what {found.reason}")
        places.append(len(self.found))
        self.found.append(found)

    def _list_known(self) -> dict[str, str]:
        """Return the constants that have their values where a command stands; a function runs who knows when."""
        return self.constants.values if self.flow.function else self.known

    def _overrule(self, places: list[int], why: str) -> None:
        """Note that what was exported so far does not hold to the end."""
        for place in places:
            if not self.found[place].reason and not self.found[place].branches:
                self.found[place] = self.found[place]._replace(reason=why)
        places.clear()

    def _add_atc_command(self, words: list[Word]) -> None:
        scope = f"atc@{words[0].line}"
        self.sites.append(Site(scope, "atc", words[0].line, words[0].column, "atc", True, None, self._current_branches()))
        flags = self._fill_arrays(words[1:])
        place = 0
        while place < len(flags):
            word = flags[place].fill_variables(self._list_known())
            place += 1
            text = word.parts[0] if isinstance(word.parts[0], str) else ""
            if not text.startswith("--"):
                if word.open_part:
                    reason = f"depends on {word.open_part}"
                    self.found.append(FoundSetting(self.path, word.line, word.column, "atc", "", "", reason=reason, scope=scope))
                continue
            name, equals, _ = text.partition("=")
            value = word.cut_prefix(len(name) + 1) if equals else None
            if value is None and place < len(flags) and not flags[place].text.startswith("--"):
                value = flags[place].fill_variables(self._list_known())
                place += 1
            flag = atc.build_flag_setting(self.path, word, name, value, scope, self._current_branches())
            self.found.append(flag._replace(unused=self.flow.idle))


def _format_words(words: list[Word]) -> str:
    return _shorten(" ".join(word.text for word in words), 80)


def _shorten(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
