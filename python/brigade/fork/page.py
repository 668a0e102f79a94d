"""The page of the rules, docs/reference/fork-rules.md: `python -m brigade.fork.page > FILE`."""

from __future__ import annotations

from brigade.fork.rules import RULES
from brigade.fork.variables import OF_ALL, OF_RANKS

_HEAD = """\
# What modules may do at import under `--fork`

`brigade run --fork` imports a module once per node if nothing that its import does is one rank's
own. The trial sees what each import does (`brigade explain --fork MODULE` tells); this table says
of what it may do why it is harmless, or what a rank does again when it sees the module. What is not
here leaves the module, and all that import it, to each rank. `--fork-warm MODULE` imports a module
once all the same, `--fork-leave MODULE` never. Of a program that is no Python, rules for all
modules (`*`) with nothing to be done again are for its constructors, too: if they do anything else,
it is stopped before them. `called` is what the program itself calls between its imports, after
which a module that imports the called one is left: it may read at import what the call has set.
`library` is that a module brings a library that names `environ`, which may be read past all hooks.
Made from `python/brigade/fork/rules.py`.

| module | what it does | detail | why it may | done again by each rank |
|---|---|---|---|---|
"""
_VARIABLES = """
## Variables that tell ranks apart

A module that reads one of these is left, and so is one that reads a variable that differed between
the trial's ranks of a node, or whose value the program had changed. No rule stands against that:
what a warm module has read must be the same for a rank, or the rank is started in the ordinary way.

| variables | set by |
|---|---|
"""
_OF_ALL = """
These are the same for all ranks of a node: """


def page() -> str:
    """The whole page."""
    lines = [_HEAD]
    for rule in RULES:
        again = f"`{rule.action}`" if rule.action else ""
        detail = "" if rule.detail == "*" else f"`{rule.detail}`"
        lines.append(f"| `{rule.modules}` | `{rule.event}` | {detail} | {rule.why} | {again} |\n")
    lines.append(_VARIABLES)
    lines += [f"| `{pattern}` | {who} |\n" for pattern, who in OF_RANKS.items()]
    lines.append(f"{_OF_ALL}{', '.join(f'`{name}`' for name in sorted(OF_ALL))}\n")
    return "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
