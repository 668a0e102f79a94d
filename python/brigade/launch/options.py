"""Launcher command lines, split into options and program.

Launchers put their own options before the program and pass the rest on untouched, so the
one thing needed of each option is whether the next word belongs to it. Pure: no process is
started, no file looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from brigade.errors import UsageError


@dataclass(frozen=True)
class Option:
    """One option as the user wrote it."""

    name: str  # without leading dashes
    values: tuple[str, ...]
    tokens: tuple[str, ...]  # the words on the command line, so that it can be written back


def flatten(options: Iterable[Option]) -> list[str]:
    """The words of `options`, in order."""
    return [token for option in options for token in option.tokens]


def named_by(names: Collection[str], contexts: Iterable[Iterable[Option]]) -> list[str]:
    """The values of the options `names`, in order."""
    found = [option for options in contexts for option in options if option.name in names]
    return [value for option in found for value in option.values]


class Getopt(NamedTuple):
    """What a command knows that reads its words with GNU getopt_long."""

    short: Mapping[str, str]  # with a value: letter -> name
    short_optional: Mapping[str, str]  # with one only in the same word
    short_flags: Mapping[str, str]
    long_with_value: Set[str]
    long_flags: Set[str]  # without, or with one in the same word
    same: Mapping[str, str]  # other names

    def knows(self, written: str) -> bool:
        """Whether a long option, shortened or not, is one of these."""
        every = self.long_with_value | self.long_flags
        return any(name.startswith(written) for name in every)


def split_getopt(
    words: list[str], known: Getopt, told: Callable[[], Set[str]] = frozenset
) -> tuple[list[Option], list[str]]:
    """Split words as getopt_long does that stops at the first non-option (as srun does).

    `-n32`, `-n 32`, `--ntasks=32`, `--ntasks 32` and `--nt 32` are one option, whose long name
    `Option.name` carries. `told` gives the names of more options that have a value; it is asked if
    there is one that is not known. Returns (options, program).
    """
    options: list[Option] = []
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            return options, words[i + 1 :]
        if not word.startswith("-") or word == "-":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and not known.knows(name):
                known = known._replace(long_with_value=known.long_with_value | told())
            name, takes = _long(name, known)
            if equals:
                options.append(Option(name, (value,), (word,)))
            elif takes:
                value = _value(words, i, word)
                options.append(Option(name, (value,), (word, value)))
                i += 1
            else:
                options.append(Option(name, (), (word,)))
        else:
            i = _split_short(words, i, known, options)
        i += 1
    return options, words[i:]


def _long(written: str, known: Getopt) -> tuple[str, bool]:
    """Name of a long option, which may be shortened, and whether the next word can be its value."""
    if written in known.long_with_value or written in known.long_flags:
        meant = {written}
    else:
        every = known.long_with_value | known.long_flags
        meant = {name for name in every if name.startswith(written)} or {written}
    names = {known.same.get(name, name) for name in meant}
    return names.pop() if len(names) == 1 else written, meant <= known.long_with_value


def _split_short(words: list[str], i: int, known: Getopt, options: list[Option]) -> int:
    """One word of short options (`-lu`, `-n32`, `-K1`, `-n 32`); the index of its last word."""
    letters = words[i][1:]
    for at, letter in enumerate(letters):
        rest = letters[at + 1 :]
        whole = "-" + letter + rest
        if letter in known.short:
            name = known.short[letter]
            if rest:
                options.append(Option(name, (rest,), (whole,)))
                return i
            value = _value(words, i, "-" + letter)
            options.append(Option(name, (value,), ("-" + letter, value)))
            return i + 1
        if letter in known.short_optional:
            options.append(Option(known.short_optional[letter], (rest,) if rest else (), (whole,)))
            return i
        options.append(Option(known.short_flags.get(letter, letter), (), ("-" + letter,)))
    return i


def split_words(
    words: list[str],
    arity: Mapping[str, int],
    pairs: Collection[str] = (),
    is_program: Callable[[str], bool] = lambda word: False,
) -> tuple[list[Option], list[str]]:
    """Split words in the manner of mpirun and hydra: one or two dashes, values in words of their
    own.

    `arity[name]` says how many words follow an option, which is one less for those of `pairs` that
    are followed by NAME=VALUE; `--name=value` is one word. One that is not listed has a value if
    what follows it is no program, and the words behind that begin with one, perhaps after options.
    Returns (options, program).
    """
    options: list[Option] = []
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            return options, words[i + 1 :]
        if not word.startswith("-") or word == "-":
            break
        name, equals, value = word.lstrip("-").partition("=")
        if equals:
            options.append(Option(name, (value,), (word,)))
        else:
            count = arity.get(name, 0)
            if name not in arity and not _starts(words[i + 1 :], is_program):
                count = int(_names_program(words[i + 2 :], arity, pairs, is_program))
            if name in pairs and "=" in _value(words, i, word):
                count -= 1
            values = tuple(_value(words, i + k, word) for k in range(count))
            options.append(Option(name, values, (word, *values)))
            i += count
        i += 1
    return options, words[i:]


def _starts(words: list[str], is_program: Callable[[str], bool]) -> bool:
    """Whether the words begin with what cannot be the value of an option."""
    return not words or words[0].startswith("-") or is_program(words[0])


def _names_program(
    words: list[str],
    arity: Mapping[str, int],
    pairs: Collection[str],
    is_program: Callable[[str], bool],
) -> bool:
    try:
        _, program = split_words(words, arity, pairs, is_program)
    except UsageError:
        return False
    return bool(program) and is_program(program[0])


def split_contexts(words: list[str]) -> list[list[str]]:
    """Split an MPMD command line at its ':' words."""
    contexts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            contexts.append([])
        else:
            contexts[-1].append(word)
    return contexts


def join_contexts(contexts: Iterable[list[str]]) -> list[str]:
    """One command line again, with ':' between."""
    words: list[str] = []
    for at, context in enumerate(contexts):
        words += [*([":"] if at else []), *context]
    return words


def _value(words: list[str], i: int, option: str) -> str:
    if i + 1 >= len(words):
        raise UsageError(f"the launcher's option {option} lacks its value")
    return words[i + 1]
