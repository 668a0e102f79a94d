"""Draws a world from a seed: the same seed, the same world, on every machine.

Most of what a library needs can be found (a world that does not start shows little), by one of many
spellings; some cannot. What plain ld.so leaves open, or what Brigade means to change, is not drawn:
  - a library with 4 KiB of initial-exec TLS that is opened later fails plainly, by chance of room;
    it gets room by the user's own tunable here;
  - a library that was opened with RTLD_DEEPBIND calls libc past every preloaded library, so that
    dlerror() names the place where Brigade looked: it is not let fail at a path here;
  - dlmopen() is drawn for libraries without initial-exec TLS only, for the same reason.
"""

from __future__ import annotations

import random

from .describe import ElfWorld, Library, Program, Search, Twin, words

FOLDERS = ["lib", "lib/deep", "opt/a", "opt/b", "lib64", "plug-ins", "opt/a/{lib}"]
HWCAPS = ["glibc-hwcaps/x86-64-v2", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v4"]
#: feature -> how likely a library has it
LIBRARY_FEATURES = {
    "constructor": 0.3, "destructor": 0.2, "tls_gd": 0.15, "tls_ld": 0.15, "tls_ie": 0.12,
    "tls_desc": 0.1, "tls_big": 0.05, "ifunc": 0.12, "throws": 0.08, "versioned": 0.2,
    "next": 0.2, "symbolic": 0.08, "now": 0.15,
}  # fmt: skip


def draw(seed: int | str) -> ElfWorld:
    """The world of a seed."""
    return _Draw(random.Random(f"brigade world {seed}")).world()


class _Draw:
    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.made = ElfWorld()

    def chance(self, likely: float) -> bool:
        return self.dice.random() < likely

    def world(self) -> ElfWorld:
        world, dice = self.made, self.dice
        for link in ("links/a", "opt/c"):
            if self.chance(0.35):
                there = dice.choice(["{tree}/opt/a", "../lib", "../opt/b", "../lib/deep"])
                world.folder_links[link] = there
        count = dice.randint(2, 9)
        world.libraries = [self.library(i, count) for i in range(count)]
        world.program = Program(folder=dice.choice(["bin", "bin", "bin/deep", "opt/a"]))
        world.program.needs = self.some([lib.name for lib in world.libraries], 1, 3)
        world.program.invoke = dice.choice(["absolute"] * 4 + ["relative", "link"])
        for lib in world.libraries:
            lib.search = self.search(lib.folder, lib.needs, inherit=0.12)
        world.program.search = self.search(world.program.folder, world.program.needs, inherit=0.07)
        if self.chance(0.35):
            world.environment["LD_LIBRARY_PATH"] = self.library_path()
        if self.chance(0.25):
            world.environment["LD_PRELOAD"] = self.preload()
        if self.chance(0.1):
            world.environment["LD_BIND_NOW"] = "1"
        if any("tls_big" in lib.features for lib in world.libraries):
            world.environment["GLIBC_TUNABLES"] = "glibc.rtld.optional_static_tls=40960"
        features = ["now" if self.chance(0.3) else "lazy"]
        features.append("fixed address" if self.chance(0.25) else "pie")
        features += ["tls_le"] * self.chance(0.2)
        world.program.features = features
        world.program.script = self.script(deep=0)
        if self.chance(0.3):
            world.cwd = self.folder()
        if any("D" in word[1] for word in words(world.program.script) if word[0] == "open"):
            for lib in world.libraries:
                lib.opens = [name for name in lib.opens if "none" not in name]
                lib.missing = lib.missing and not any(other.opens for other in world.libraries)
        world.partly = self.some([lib.name for lib in world.libraries], 1, 3)
        return world

    def some(self, names: list[str], least: int, most: int) -> list[str]:
        return self.dice.sample(names, min(len(names), self.dice.randint(least, most)))

    def folder(self) -> str:
        return "{tree}/" + self.dice.choice(["lib", "empty", "bin", "."])

    # ---- libraries ----

    def library(self, number: int, count: int) -> Library:
        dice, name = self.dice, f"l{number}"
        lib = Library(name, dice.choice(FOLDERS), f"lib{name}.so")
        lib.soname = lib.file
        if self.chance(0.2):
            lib.soname = f"lib{name}.so.{dice.randint(1, 3)}"
            lib.links = [f"{lib.folder}/{lib.soname}"] * self.chance(0.97)
        elif self.chance(0.2):
            lib.soname, lib.by_path = "", self.chance(0.4)
        later = [f"l{i}" for i in range(number + 1, count)]
        lib.needs = self.some(later, 0, 2)
        if number > 0 and self.chance(0.12):
            lib.needs.append(f"l{dice.randrange(number)}")
        lib.features = [word for word, p in LIBRARY_FEATURES.items() if self.chance(p)]
        folders = [folder for folder in FOLDERS if folder != lib.folder]
        for _ in range(2):
            if self.chance(0.25):
                kinds = ["copy"] * 12 + ["old", "garbage", "foreign", "foreign", "empty"]
                lib.twins.append(Twin(dice.choice(folders), dice.choice([*kinds, "directory"])))
        if self.chance(0.2):
            lib.twins.append(Twin(f"{lib.folder}/{dice.choice(HWCAPS)}"))
        if self.chance(0.12):
            lib.stored = "store"
        if self.chance(0.15):
            lib.links.append(f"{dice.choice(folders)}/{lib.soname or lib.file}")
        if self.chance(0.1):
            lib.opens = [self.name_of(f"l{dice.randrange(count)}", count)]
        lib.missing = self.chance(0.015)
        return lib

    def name_of(self, name: str, count: int) -> str:
        """What a program may call a library in dlopen(): it may not be there under it."""
        known = [lib for lib in self.made.libraries if lib.name == name]
        plain = f"lib{name}.so"
        if known and self.chance(0.6):
            lib = known[0]
            file = self.dice.choice([lib.file, lib.soname or lib.file])
            form = self.dice.random()
            if form < 0.35:
                return file
            if form < 0.7:
                return f"{{tree}}/{lib.folder}/{file}"
            if form < 0.8:
                return f"{{tree}}/empty/../{lib.folder}//{file}"
            if form < 0.9 and lib.links:
                return "{tree}/" + lib.links[-1]
            if form < 0.95:
                return f"./{lib.folder}/{file}"
            return f"$ORIGIN/../{lib.folder}/{file}"
        if self.chance(0.15):
            return self.dice.choice(["libnone.so", "{tree}/lib/libnone.so", "./libnone.so"])
        return plain

    # ---- where to search ----

    def search(self, own: str, needs: list[str], inherit: float) -> Search:
        """A search path that finds what is needed, most often, among entries that do not help."""
        if self.chance(inherit):
            return Search()
        kind = self.dice.choice(["rpath", "rpath", "runpath", "runpath", "runpath", "both"])
        paths = [self.spelling(lib.folder, own) for lib in self.made.libraries
                 if lib.name in needs and self.chance(0.98)]  # fmt: skip
        if kind == "rpath" or self.chance(0.4):  # of those who need nothing of their own to say it
            paths += [self.spelling(folder, own) for folder in FOLDERS if self.chance(0.5)]
        paths += [self.noise() for _ in range(self.dice.randint(0, 3))]
        self.dice.shuffle(paths)
        ignored = [self.noise() for _ in range(2)] + [self.spelling("opt/b", own)]
        return Search(kind if paths else "", paths, ignored if kind == "both" else [])

    def spelling(self, folder: str, own: str) -> str:
        up = "/".join([".."] * (own.replace("{lib}", "x/y").count("/") + 1))
        folder_said = folder
        if "{lib}" in folder:
            folder_said = folder.replace("{lib}", self.dice.choice(["$LIB", "${LIB}", "{lib}"]))
        forms = [f"{{tree}}/{folder_said}"] * 3 + [
            f"$ORIGIN/{up}/{folder_said}",
            f"${{ORIGIN}}/{up}/{folder_said}",
            f"{{tree}}/{folder_said}/",
            f"{{tree}}/empty/..//{folder_said}/.",
        ]
        for link, target in self.made.folder_links.items():
            if target.endswith("/" + folder):
                forms += [f"{{tree}}/{link}", f"$ORIGIN/{up}/{link}"]
        return self.dice.choice(forms)

    def noise(self) -> str:
        return self.dice.choice(
            ["{tree}/nowhere", "{tree}/empty", "$ORIGIN/none", "{tree}/plug-ins", "{tree}/opt/b",
             "{tree}/links/a", "{tree}/lib/$PLATFORM", "lib", ".", "{tree}/bin/prog",
             "{tree}/lib", "$ORIGIN"]
        )  # fmt: skip

    def library_path(self) -> str:
        folders = self.some(FOLDERS, 1, 3)
        entries = [self.spelling(folder, "bin") for folder in folders] + [self.noise()]
        self.dice.shuffle(entries)
        return self.dice.choice([":", ":", ";"]).join(entries) + self.dice.choice(["", "", ":"])

    def preload(self) -> str:
        entries = []
        for name in self.some([lib.name for lib in self.made.libraries], 1, 2):
            lib = self.made.library(name)
            path = f"{{tree}}/{lib.folder}/{lib.file}"
            entries.append(self.dice.choice([path, path, lib.soname or lib.file, "libnone.so"]))
        return self.dice.choice([":", " "]).join(entries)

    # ---- what the program does ----

    def script(self, deep: int) -> list[list]:
        count = self.dice.randint(2, 8) if deep == 0 else self.dice.randint(1, 3)
        script: list[list] = [self.word(deep) for _ in range(count)]
        return [*script, ["iterate"]]

    def word(self, deep: int) -> list:
        dice, libs = self.dice, self.made.libraries
        lib = dice.choice(libs)
        name = self.name_of(lib.name, len(libs))
        kind = dice.choices(
            ["open", "close", "sym", "vsym", "next", "iterate", "threads", "mopen", "chdir",
             "setenv", "catch", "child", "fork"],
            [40, 5, 5, 4, 4, 4, 4, 4, 4, 2, 4, 5, 3],
        )[0]  # fmt: skip
        if kind in ("child", "fork") and deep == 0:
            return [kind, self.script(deep + 1)]
        if kind == "close":
            return [kind, str(dice.randrange(3))]
        if kind == "sym":
            return [kind, dice.choice(["-", "0", "1"]), dice.choice(["common", "hello", lib.name])]
        if kind == "vsym":
            versioned = [other for other in libs if "versioned" in other.features] or [lib]
            number, version = dice.choice("012"), dice.choice(["V1", "V2", "V3"])
            return [kind, number, f"versioned_{dice.choice(versioned).name}", version]
        if kind in ("next", "iterate"):
            return [kind]
        if kind == "threads":
            return [kind, *[self.name_of(other.name, len(libs)) for other in dice.sample(libs, 2)]]
        if kind == "mopen" and not any(self.has_static_tls(other) for other in libs):
            return [kind, name]
        if kind == "chdir":
            return [kind, self.folder()]
        if kind == "setenv":
            return [kind, "LD_LIBRARY_PATH", self.library_path()]
        if kind == "catch" and any("throws" in other.features for other in libs):
            throwing = [other.name for other in libs if "throws" in other.features]
            return [kind, f"throw_{dice.choice(throwing)}"]
        flags = dice.choice("NNL") + dice.choice(["", "", "", "G", "D", "O", "K", "GD"])
        return ["open", flags, name]

    def has_static_tls(self, library: Library) -> bool:
        return bool({"tls_ie", "tls_big", "throws"} & set(library.features))
