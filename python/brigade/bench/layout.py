"""Where the parts of a world lie, and along which paths they are searched. Pure.

All paths are relative to the world's folder.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# what users can ask for, and what it means
PYNAMIC = {
    "flat": "all in one folder",
    "packages": "modules in .py packages of 16, utilities in one folder",
    "path": "four to a folder: a long sys.path, and as long a RUNPATH",
}
CLOAD = {
    "one": "all in one folder",
    "each": "one folder each",
    "long": "all in one folder, the last of a long search path",
}
_PACKAGE = 16
_GROUP = 4


@dataclass(frozen=True)
class Places:
    """Where the modules and utilities of a Pynamic world are."""

    modules: list[str]
    utilities: list[str]
    search: tuple[str, ...]  # RUNPATH of every part
    python_path: tuple[str, ...]
    imports: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)


def pynamic_places(layout: str, modules: int, utilities: int) -> Places:
    """Places in one of the layouts of PYNAMIC."""
    names = [f"module_{i:04d}" for i in range(modules)]
    libraries = [f"libutility_{i:04d}.so" for i in range(utilities)]
    if layout == "flat":
        return Places(
            [f"lib/{name}.abi3.so" for name in names],
            [f"lib/{name}" for name in libraries],
            ("lib",),
            ("lib",),
            tuple(names),
        )
    if layout == "packages":
        return _packages(names, libraries)
    folders = [f"modules/{i:04d}" for i in range(-(-modules // _GROUP))]
    shelves = [f"utilities/{i:04d}" for i in range(-(-utilities // _GROUP))]
    return Places(
        [f"{folders[i // _GROUP]}/{name}.abi3.so" for i, name in enumerate(names)],
        [f"{shelves[i // _GROUP]}/{name}" for i, name in enumerate(libraries)],
        tuple(shelves),
        tuple(folders),
        tuple(names),
    )


def _packages(names: list[str], libraries: list[str]) -> Places:
    """Each extension module behind a `.py` module of its own, in packages."""
    files: dict[str, str] = {}
    extensions, imports = [], []
    for i, name in enumerate(names):
        package = f"package_{i // _PACKAGE:03d}"
        files.setdefault(f"lib/{package}/__init__.py", f'"""Generated: package {package}."""\n')
        files[f"lib/{package}/{name}_wrapper.py"] = (
            f'"""Generated: what users of {name} import."""\n\n'
            f"from {package}.{name} import visit\n\n__all__ = ['visit']\n"
        )
        extensions.append(f"lib/{package}/{name}.abi3.so")
        imports.append(f"{package}.{name}_wrapper")
    return Places(
        extensions,
        [f"lib/utilities/{name}" for name in libraries],
        ("lib/utilities",),
        ("lib",),
        tuple(imports),
        files,
    )


def cload_folder(layout: str, number: int) -> str:
    """The folder of one library of a CLoad world."""
    return {"one": "lib", "each": f"lib/{number:04d}", "long": "lib/last"}[layout]


def cload_search(layout: str, libraries: int, directories: int) -> tuple[str, ...]:
    """The search path of the program that loads them, in order."""
    if layout == "each":
        return tuple(cload_folder(layout, i) for i in range(libraries))
    before = [f"lib/empty_{i:04d}" for i in range(directories)] if layout == "long" else []
    return (*before, cload_folder(layout, 0))
