"""Launcher command lines, split into options and program.

Launchers put their own options before the program and pass the rest on untouched, so the
one thing needed of each option is whether the next word belongs to it. Pure: no process is
started, no file looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

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


def split_getopt(
    words: list[str],
    long_with_value: Set[str],
    short_with_value: Set[str],
    aliases: Mapping[str, str],
) -> tuple[list[Option], list[str]]:
    """Split words in the manner of GNU getopt_long, stopping at the first non-option (as srun
    does).

    `-n32`, `-n 32`, `--ntasks=32` and `--ntasks 32` are one option; `aliases` maps its short
    name to the long one, which `Option.name` then carries. Returns (options, program).
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
            if equals:
                options.append(Option(name, (value,), (word,)))
            elif name in long_with_value:
                value = _value(words, i, word)
                options.append(Option(name, (value,), (word, value)))
                i += 1
            else:
                options.append(Option(name, (), (word,)))
        else:
            i = _split_short(words, i, short_with_value, aliases, options)
        i += 1
    return options, words[i:]


def _split_short(
    words: list[str],
    i: int,
    with_value: Set[str],
    aliases: Mapping[str, str],
    options: list[Option],
) -> int:
    """One word of short options (`-lu`, `-n32`, `-n 32`); returns the index of its last word."""
    letters = words[i][1:]
    for at, letter in enumerate(letters):
        name = aliases.get(letter, letter)
        if letter not in with_value:
            options.append(Option(name, (), ("-" + letter,)))
            continue
        rest = letters[at + 1 :]
        if rest:
            options.append(Option(name, (rest,), ("-" + letter + rest,)))
            return i
        value = _value(words, i, "-" + letter)
        options.append(Option(name, (value,), ("-" + letter, value)))
        return i + 1
    return i


def split_words(words: list[str], arity: Mapping[str, int]) -> tuple[list[Option], list[str]]:
    """Split words in the manner of mpirun and hydra: one or two dashes, values in words of their
    own.

    `arity[name]` says how many words follow an option (0 if it is not listed);
    `--name=value` is one word. Returns (options, program).
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
            values = tuple(_value(words, i + k, word) for k in range(count))
            options.append(Option(name, values, (word, *values)))
            i += count
        i += 1
    return options, words[i:]


def split_contexts(words: list[str]) -> list[list[str]]:
    """Split an MPMD command line at its ':' words."""
    contexts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            contexts.append([])
        else:
            contexts[-1].append(word)
    return contexts


def _value(words: list[str], i: int, option: str) -> str:
    if i + 1 >= len(words):
        raise UsageError(f"the launcher's option {option} lacks its value")
    return words[i + 1]
