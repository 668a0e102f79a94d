"""What a rank's modules read of its environment in the trial, and why they are left for that."""

from __future__ import annotations

from fnmatch import fnmatchcase

from brigade.fork.plan import Module
from brigade.fork.rules import Rule, rule_for
from brigade.fork.words import variable_words
from brigade.trial.modules import RankModules


class Environment:
    """The variables of one rank, and what may be said against a read of one."""

    def __init__(self, rank: RankModules, differing: set[str], rules: tuple[Rule, ...]) -> None:
        self._rank = rank
        self._differing = differing
        self._writers: dict[str, set[str]] = {}
        self._limits: dict[str, tuple[str, ...]] = {}  # modules of all of whose reads few count
        for event in rank.events:
            if event.what == "setenv":
                self._writers.setdefault(event.detail, set()).add(event.module)
            elif event.what == "environ":
                rule = rule_for(event.module, "environ", event.detail, rules)
                if rule:
                    self._limits[event.module] = rule.names

    def read(self, module: Module, detail: str) -> str | None:
        """Why the module is left that reads a variable, or None. `NAME!`: its value is not the one
        of the start; that is harmless if modules alone have set it, which this one then needs."""
        name = detail.rstrip("!")
        if not self._counts(module.name, name):
            return None
        writers = self._writers.get(name, set()) if detail.endswith("!") else set()
        if writers and "" not in writers:
            module.imports = sorted({*module.imports, *writers} - {module.name})
            detail = name
        return variable_words(detail, self._differing)

    def read_all(self, module: Module, detail: str) -> str | None:
        """Why the module is left that reads all of it, or None: of what counts then, each is also
        read by itself, unless the program has taken it away."""
        if module.name not in self._limits:
            changed = "the program had changed" if detail else "differs between ranks"
            return f"reads the whole environment, which {changed}"
        seen = {e.detail.rstrip("!") for e in self._rank.events if e.module == module.name}
        for name in self._rank.variables:
            if detail and self._counts(module.name, name) and name not in seen:
                return f"reads the whole environment, and the program had changed {name}"
        return None

    def read_unseen(self, patterns: tuple[str, ...]) -> str | None:
        """Why a module is left that brings a library that may have read what fits, or None. What
        somebody set may have been read before or after that."""
        for name in sorted({*self._rank.variables, *self._writers}):
            if any(fnmatchcase(name, pattern) for pattern in patterns):
                changed = "!" if name in self._writers else ""
                why = variable_words(name + changed, self._differing)
                if why:
                    return why
        return None

    def _counts(self, module: str, name: str) -> bool:
        patterns = self._limits.get(module)
        return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)
