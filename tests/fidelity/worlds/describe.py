"""What a world is, as plain data: it can be drawn, written as JSON, shrunk and built.

Folders are below the world's tree. In every search path, name and script word `{tree}` stands for
the tree and `{lib}` for what ld.so puts for $LIB. Libraries are named l0, l1, ...; a library may
need those of higher number, and one of lower number where the edge closes a circle.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field


@dataclass
class Search:
    """`kind`: "" (none), "rpath", "runpath", or "both": then `ignored` stands in DT_RPATH."""

    kind: str = ""
    paths: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


@dataclass
class Twin:
    """Another file of a library's name. `kind`: "copy", "old" (lacks the newer symbol version),
    "garbage" (not ELF), "foreign" (for another machine), "empty", "directory"."""

    folder: str
    kind: str = "copy"


@dataclass
class Library:
    """`features` are words of `FEATURES`; `opens` are what its constructor passes to dlopen()."""

    name: str
    folder: str
    file: str
    soname: str = ""
    needs: list[str] = field(default_factory=list)
    by_path: bool = False  #: those who need it say so by its path (where it has no soname)
    search: Search = field(default_factory=Search)
    features: list[str] = field(default_factory=list)
    opens: list[str] = field(default_factory=list)
    twins: list[Twin] = field(default_factory=list)
    links: list[str] = field(default_factory=list)  #: symbolic links that lead to it
    stored: str = ""  #: the file itself lies in this folder, and a link to it in `folder`
    missing: bool = False  #: taken away after linking


@dataclass
class Program:
    """`invoke`: "absolute", "relative" or "link". `script`: words of driver.c, each a list; the
    word "child" or "fork" is followed by a list of the child's words."""

    folder: str = "bin"
    invoke: str = "absolute"
    needs: list[str] = field(default_factory=list)
    search: Search = field(default_factory=Search)
    features: list[str] = field(default_factory=list)
    script: list[list] = field(default_factory=list)


@dataclass
class ElfWorld:
    """`environment`: LD_LIBRARY_PATH, LD_PRELOAD, LD_BIND_NOW, GLIBC_TUNABLES. `partly`: what an
    image made from another run does not know."""

    libraries: list[Library] = field(default_factory=list)
    program: Program = field(default_factory=Program)
    environment: dict[str, str] = field(default_factory=dict)
    cwd: str = "{tree}"
    folder_links: dict[str, str] = field(default_factory=dict)  #: link -> what it says
    partly: list[str] = field(default_factory=list)

    def library(self, name: str) -> Library | None:
        return next((lib for lib in self.libraries if lib.name == name), None)


def to_json(world: ElfWorld) -> str:
    return json.dumps(asdict(world), indent=1) + "\n"


def from_json(text: str) -> ElfWorld:
    data = json.loads(text)
    libraries = [
        Library(
            **{
                **library,
                "search": Search(**library["search"]),
                "twins": [Twin(**twin) for twin in library["twins"]],
            }
        )
        for library in data["libraries"]
    ]
    program = Program(**{**data["program"], "search": Search(**data["program"]["search"])})
    return ElfWorld(**{**data, "libraries": libraries, "program": program})


#: Everything that the fixed worlds must have between them.
FEATURES = (
    "chain", "diamond", "circle", "rpath", "runpath", "both paths", "$ORIGIN", "$LIB",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "hwcaps", "library link", "folder link", "stored elsewhere",
    "soname differs", "no soname", "needed by path", "versioned", "old twin", "missing",
    "missing opened", "tls_gd", "tls_ld", "tls_ie", "tls_le", "tls_big", "tls_desc", "ifunc",
    "throws", "constructor", "destructor", "open by name", "open by path", "noload", "deepbind",
    "global", "opens in constructor", "threads", "mopen", "next", "iterate", "now", "lazy", "pie",
    "fixed address", "child", "fork", "chdir", "relative start", "relative search", "garbage twin",
    "foreign twin", "symbolic", "close", "vsym", "linked start",
)  # fmt: skip


def words(script: list[list]) -> list[list]:
    """All words of a script, those of children too."""
    found = []
    for word in script:
        found.append(word)
        if word[0] in ("child", "fork"):
            found += words(word[1])
    return found


def features(world: ElfWorld) -> set[str]:
    """Which of FEATURES a world has."""
    found = set(world.program.features) | set(world.environment)
    found.add({"relative": "relative start", "link": "linked start"}.get(world.program.invoke, ""))
    reach = {lib.name: _reach(world, lib.needs) for lib in world.libraries}
    for owner in [*world.libraries, world.program]:
        found |= _search_features(owner.search)
        ways = [{need, *reach.get(need, ())} for need in owner.needs]
        if any(a & b for i, a in enumerate(ways) for b in ways[:i]):
            found.add("diamond")
        if any(reach.get(need) for need in owner.needs):
            found.add("chain")
    for lib in world.libraries:
        found |= set(lib.features)
        found |= {f"{twin.kind} twin" for twin in lib.twins}
        signs = {
            "circle": lib.name in reach[lib.name],
            "hwcaps": any("hwcaps" in twin.folder for twin in lib.twins),
            "library link": lib.links,
            "stored elsewhere": lib.stored,
            "no soname": not lib.soname,
            "soname differs": lib.soname and lib.soname != lib.file,
            "needed by path": lib.by_path and not lib.soname,
            "missing": lib.missing,
            "opens in constructor": lib.opens,
        }
        found |= {name for name, sign in signs.items() if sign}
    if world.folder_links:
        found.add("folder link")
    for word in words(world.program.script):
        found |= _word_features(word)
    return found & set(FEATURES)


def _reach(world: ElfWorld, needs: list[str]) -> set[str]:
    seen: set[str] = set()
    left = list(needs)
    while left:
        name = left.pop()
        library = world.library(name)
        if name not in seen and library:
            seen.add(name)
            left += library.needs
    return seen


def _search_features(search: Search) -> set[str]:
    text = ":".join(search.paths)
    return {
        {"both": "both paths"}.get(search.kind, search.kind),
        "$ORIGIN" if "ORIGIN" in text else "",
        "$LIB" if "$LIB" in text or "${LIB}" in text else "",
        "relative search" if any(path[:1] not in "/{$" for path in search.paths) else "",
    }


def _word_features(word: list) -> set[str]:
    found = {str(word[0])}
    if word[0] == "open":
        letters = {"O": "noload", "D": "deepbind", "G": "global"}
        found |= {feature for letter, feature in letters.items() if letter in word[1]}
        found.add("open by path" if "/" in word[2] else "open by name")
        if "none" in word[2]:
            found.add("missing opened")
    return found
