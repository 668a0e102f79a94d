"""What holds of a plan only where the program is given what the trial was given.

fork.otherwise -> Given -> packed() -> `/.brigade/fork/plan`, "called"
                           as_json() -> meta["fork"], "given" -> from_json()
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brigade.fork.variables import of_jobs


@dataclass
class Read:
    """Of a variable: `value`, what tells it from others ("": there was none); `chosen`: whether
    the program, or a module of its own, read it before the last import; by which modules."""

    value: str
    chosen: bool = False
    by: list[str] = field(default_factory=list)


@dataclass
class Given:
    """`arguments`: what tells them from others. `late`: imported when the program may have chosen
    by what it is given; `varied`: these, and what is imported when it may have chosen by a
    variable; `told`: when one of its modules may have, by the arguments; `looking`:
    modules that may do so. `files`: see inputs.py; None: they were too many. `mine`: where modules
    of the program's own come from."""

    arguments: str = ""
    late: list[str] = field(default_factory=list)
    varied: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    looking: list[str] = field(default_factory=list)
    variables: dict[str, Read] = field(default_factory=dict)
    files: dict[str, str] | None = field(default_factory=dict)
    mine: dict[str, str] = field(default_factory=dict)

    def packed(self, number: Mapping[str, int], imports: list[list[int]]) -> dict[str, Any]:
        """For the template. `number`: of each module; `imports`: by that, those of each."""
        return {
            "names": list(number),
            "imports": imports,
            "mine": self.mine,
            "arguments": self.arguments,
            **self._numbers(number),
            "files": None if self.files is None else list(self.files.items()),
            "variables": {
                name: (
                    read.value,
                    of_jobs(name),
                    read.chosen,
                    [number[by] for by in read.by],
                )
                for name, read in self.variables.items()
            },
        }

    def as_json(self, number: Mapping[str, int]) -> dict[str, Any]:
        """Which modules, not what tells the trial's arguments, files and values from others."""
        variables = {
            name: [read.chosen, [number[by] for by in read.by]]
            for name, read in self.variables.items()
        }
        files = None if self.files is None else list(self.files)
        return {**self._numbers(number), "files": files, "variables": variables}

    def _numbers(self, number: Mapping[str, int]) -> dict[str, list[int]]:
        return {
            "late": [number[name] for name in self.late],
            "varied": [number[name] for name in self.varied],
            "told": [number[name] for name in self.told],
            "looking": [number[name] for name in self.looking],
        }


def from_json(value: Mapping[str, Any], names: list[str]) -> Given:
    """What as_json() told; `names`: of all modules, in the order of their numbers."""
    late, varied, told, looking = (
        [names[number] for number in value[key]] for key in ("late", "varied", "told", "looking")
    )
    variables = {
        name: Read("", chosen, [names[number] for number in by])
        for name, (chosen, by) in value["variables"].items()
    }
    files = None if value["files"] is None else dict.fromkeys(value["files"], "")
    return Given("", late, varied, told, looking, variables, files)
