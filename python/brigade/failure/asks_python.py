"""Run by a user's interpreter, `python -I -S asks_python.py`: what would it find of what a script
imports? A JSON object on standard input says what is asked, one on standard output is the answer.

It executes none of the user's code: modules are looked for (`PathFinder`), their sources parsed,
never imported; of `.pth` files the folders are taken, and no line is executed. Walked is what
*must* be imported: statements of a module's top level that no `try` guards and no `if` decides.
In the order in which it would be imported, but all that a module imports before what those do: what
is near to the script is looked at before time is over.

Stands alone, for Python 3.6 and later.
"""

import ast
import importlib.machinery as machinery
import json
import os
import re
import site
import sys
import time

GAMES = (b".modules", b"__path__", b"find_spec")  # a package may have modules that are no files
UNSURE = (
    "sys.path",
    "addsitedir",
    "meta_path",
    "path_hooks",
)  # a module may be where we do not look


def layout(asked):
    """sys.path as it would be for the script. Returns (path, lines of .pth files left out)."""
    flags, env = asked["flags"], asked["env"]
    path = [] if "I" in flags or "P" in flags else [asked["first"]]
    if not set("EI") & set(flags):
        path += [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p]
    skipped = []
    if "S" in flags:
        return path + sys.path, skipped

    def addpackage(folder, name, known):
        known = set() if known is None else known
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as text:
                lines = text.read().splitlines()
        except OSError:
            return known
        for line in map(str.strip, lines):
            if line.startswith(("import ", "import\t")):
                skipped.append([os.path.join(folder, name), line[:2000]])
            elif line and not line.startswith("#"):
                joined = os.path.join(folder, line)
                if os.path.exists(joined) and joined not in sys.path:
                    sys.path.append(joined)
        return known

    site.addpackage = addpackage
    known = site.removeduppaths()
    known = site.venv(known) if hasattr(site, "venv") else known
    alone = set("sI") & set(flags) or env.get("PYTHONNOUSERSITE")
    if not alone and getattr(site, "ENABLE_USER_SITE", None) is not False:
        user = site.getusersitepackages()
        if sys.prefix == sys.base_prefix and os.path.isdir(user):
            site.addsitedir(user, known)
    site.addsitepackages(known)
    return path + [p for p in sys.path if p not in path], skipped


class Finder:
    """Where modules are, without importing any."""

    def __init__(self, path, skipped):
        self.path = path
        self.skipped = skipped
        self.specs = {}

    def find(self, name):
        """The spec of a dotted name, False if it is certainly nowhere, None if that is unsure."""
        if name not in self.specs:
            self.specs[name] = self._find(name)
        return self.specs[name]

    def _find(self, name):
        above, _, last = name.rpartition(".")
        if not above:
            if name in sys.builtin_module_names or name in ("sys", "builtins", "__main__"):
                return None
            if machinery.FrozenImporter.find_spec(name):
                return None
            spec = machinery.PathFinder.find_spec(name, self.path)
            return spec or (None if self._hooked(name) else False)
        parent = self.find(above)
        if not parent or parent.submodule_search_locations is None:
            return None
        return machinery.PathFinder.find_spec(name, list(parent.submodule_search_locations))

    def _hooked(self, name):
        """Whether a line of a .pth file may make an importer for it: an editable installation."""
        for file, line in self.skipped:
            texts = [line]
            for word in line.replace(";", " ").replace(",", " ").split():
                finder = os.path.join(os.path.dirname(file), word.split(".")[0] + ".py")
                if os.path.isfile(finder):
                    with open(finder, encoding="utf-8", errors="replace") as text:
                        texts.append(text.read())
            if any(name in text for text in texts):
                return True
        return False


def is_main(test):
    left = test.left if isinstance(test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


def is_setup(test):
    """`if __NUMPY_SETUP__:`, which is true only while a package is built."""
    return isinstance(test, ast.Name) and test.id.endswith("_SETUP__")


def certain(body, main):
    """The import statements that are executed whatever happens, in order."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.Try):
            # handlers that end in a `raise` mend nothing
            if all(isinstance(handler.body[-1], ast.Raise) for handler in node.handlers):
                yield from certain(node.body, main)
        elif isinstance(node, ast.With):
            continue  # suppress(ImportError)
        elif isinstance(node, ast.If) and is_main(node.test) and main:
            yield from certain(node.body, main)
        elif isinstance(node, ast.If) and is_setup(node.test):
            yield from certain(node.orelse, main)


def bound(tree):
    """The names that a module's top level binds; None if that cannot be told."""
    names = set()
    todo = [(node, False) for node in tree.body]
    while todo:
        node, inside = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            if not inside:
                names.add(node.name)
                if node.name == "__getattr__":
                    return None
            inside = True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for one in node.names:
                if one.name == "*":
                    return None
                if getattr(node, "level", 0) != 1 or node.module:  # not a submodule of its own
                    names.add(one.asname or one.name.split(".")[0])
        elif isinstance(node, ast.Global):
            names.update(node.names)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and not inside:
                names.add(node.id)
            if node.id in ("globals", "exec", "vars", "locals"):
                return None
        elif isinstance(node, ast.Attribute) and node.attr == "modules":
            return None  # sys.modules[__name__] = ...
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        todo += [(child, inside) for child in ast.iter_child_nodes(node)]
    return names


class Walk:
    def __init__(self, asked):
        path, skipped = layout(asked)
        self.finder = Finder(path, skipped)
        self.cpu_until = time.process_time() + asked["seconds"]
        self.until = time.monotonic() + 3 * asked["seconds"]
        self.own = asked["first"]
        self.stdlib = os.path.dirname(os.__file__)
        self.trees = {}
        self.names = {}
        self.found = []
        self.said = asked["said"]
        self.extensions = []
        self.seen = set()
        self.late = False
        self.hooked = False  # a module that was met makes importers: what is below one may be there

    def tree(self, file):
        """The parsed source of a file; None if there is none."""
        if file not in self.trees:
            try:
                with open(file, "rb") as text:
                    source = text.read()
                self.trees[file] = (ast.parse(source), source)
                self.hooked = self.hooked or b"meta_path" in source or b"path_hooks" in source
            except (OSError, SyntaxError, ValueError, RecursionError):
                self.trees[file] = None
        return self.trees[file]

    def names_of(self, file):
        """What `bound` says of a file."""
        if file not in self.names:
            parsed = self.tree(file)
            self.names[file] = bound(parsed[0]) if parsed else None
        return self.names[file]

    def is_stdlib(self, spec):
        origin = spec.origin or ""
        return origin.startswith(self.stdlib + os.sep) and "-packages" not in origin

    def shadows(self, name):
        """The module of the standard library, or installed, that a file of the script's hides."""
        rest = [p for p in self.finder.path if os.path.realpath(p) != os.path.realpath(self.own)]
        hidden = machinery.PathFinder.find_spec(name, rest)
        return hidden.origin or "a folder" if hidden and hidden.loader else None

    def start(self, file, name, tree, source):
        waiting = [(file, name, tree, source, True, [])]
        while waiting:
            if time.process_time() > self.cpu_until or time.monotonic() > self.until:
                self.late = True
                return
            waiting += list(self.module(*waiting.pop()))[::-1]
            if any(one["sure"] for one in self.found):
                return  # it does not come any further

    def module(self, file, name, tree, source, main, chain):
        """Look at what one module imports; gives the modules to look at next."""
        sure = not any(word in source.decode("utf-8", "replace") for word in UNSURE)
        package = name if os.path.basename(file) == "__init__.py" else name.rpartition(".")[0]
        steps = chain + [[file, 0]]
        nodes = list(certain(tree.body, main))
        for node in nodes:
            steps[-1] = [file, node.lineno]
            for wanted, attribute in self.wanted(node, package):
                yield from self.one(wanted, attribute, [list(s) for s in steps], sure)
        if main:
            self.attributes(file, tree)

    def wanted(self, node, package):
        """(module, name wanted of it or None) for each part of an import statement."""
        if isinstance(node, ast.Import):
            for one in node.names:
                yield one.name, None
            return
        base = node.module or ""
        if node.level:
            parts = package.split(".") if package else []
            if node.level - 1 >= len(parts):
                return
            parts = parts[: len(parts) - node.level + 1]
            base = ".".join(parts + ([base] if base else []))
        for one in node.names:
            yield base, one.name

    def one(self, wanted, attribute, steps, sure):
        parts = wanted.split(".")
        for i in range(len(parts)):
            name = ".".join(parts[: i + 1])
            spec = self.finder.find(name)
            if not spec:
                self.absent(name, spec, steps, sure)
                return
            yield from self.enter(name, spec, steps)
        if attribute and attribute != "*":
            yield from self.member(wanted, spec, attribute, steps, sure)

    def member(self, module, spec, attribute, steps, sure):
        """`from module import attribute`: a submodule, or a name that the module binds."""
        if spec.submodule_search_locations is not None:
            name = module + "." + attribute
            below = self.finder.find(name)
            if below:
                yield from self.enter(name, below, steps)
                return
        if spec.origin and spec.origin.endswith(".py"):
            names = self.names_of(spec.origin)
        else:
            names = set() if spec.loader is None else None  # a namespace package binds nothing
        if names is None or attribute in names or attribute.startswith("__"):
            return
        self.found.append({
            "what": "name", "module": module, "name": attribute, "file": spec.origin,
            "names": sorted(names), "steps": steps, "sure": sure and not self.hooked,
            "hidden": self.hidden(spec, module),
            "places": list(spec.submodule_search_locations or []),
        })  # fmt: skip

    def hidden(self, spec, module):
        """What the file of a module hides, if it is one of the script's own."""
        own = spec.origin and os.path.dirname(os.path.realpath(spec.origin))
        at = os.path.realpath(self.own)
        return self.shadows(module) if own in (at, os.path.join(at, module)) else None

    def enter(self, name, spec, steps):
        if name in self.seen:
            return
        self.seen.add(name)
        if isinstance(spec.loader, machinery.ExtensionFileLoader):
            self.extensions.append({"name": name, "path": spec.origin, "steps": steps})
        elif spec.origin and spec.origin.endswith(".py") and not self.is_stdlib(spec):
            parsed = self.tree(spec.origin)
            if parsed:
                yield (spec.origin, name, parsed[0], parsed[1], False, steps)

    def absent(self, name, spec, steps, sure):
        parent = name.rpartition(".")[0]
        if spec is None and parent:
            sure = sure and not self.hooked and self.is_plain(parent)
        elif spec is None and name not in self.said:
            return
        above = self.finder.find(parent) if parent else None
        places = list(above.submodule_search_locations or []) if above else self.finder.path
        self.found.append({
            "what": "module", "name": name, "steps": steps, "places": places,
            "sure": sure or name in self.said or of_another(name.rpartition(".")[2], places),
        })  # fmt: skip

    def is_plain(self, package):
        """Whether what is below a package can only be what lies in its folders."""
        while package:
            spec = self.finder.find(package)
            parsed = self.tree(spec.origin) if spec and spec.origin else None
            if parsed is None or any(word in parsed[1] for word in GAMES):
                return False
            package = package.rpartition(".")[0]
        return True

    def attributes(self, file, tree):
        """Names used of a module of the script's own that hides another, and that it lacks."""
        modules = {
            one.asname or one.name: one.name
            for node in certain(tree.body, True)
            if isinstance(node, ast.Import)
            for one in node.names
            if "." not in one.name
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id)
                spec = self.finder.find(module) if module else None
                if spec and self.hidden(spec, module):
                    list(self.member(module, spec, node.attr, [[file, node.lineno]], True))


def of_another(name, places):
    """Whether there is an extension module of that name, for another Python than this."""
    pattern = re.compile(re.escape(name) + r"\.(cpython-|pypy)\d\S*\.so")
    names = [one for place in places if os.path.isdir(place) for one in os.listdir(place)]
    return any(pattern.fullmatch(one) for one in names)


def first_names(path):
    """What can be imported: name -> where, without what is private."""
    names = {}
    for folder in path:
        try:
            listing = os.listdir(folder)
        except OSError:
            continue
        for one in listing:
            is_file = one.endswith((".py", ".so"))
            name = one.split(".")[0] if is_file else one
            if name.isidentifier() and (is_file or os.path.isdir(os.path.join(folder, one))):
                names.setdefault(name, os.path.join(folder, one))
    return names


def main():
    asked = json.load(sys.stdin)
    walk = Walk(asked)
    if asked.get("module"):
        spec = walk.finder.find(asked["module"])
        if spec is False:
            walk.absent(asked["module"], spec, [], True)
        elif spec and spec.submodule_search_locations is not None:
            spec = walk.finder.find(asked["module"] + ".__main__")
        file = spec.origin if spec else None
        package = spec.name if spec else ""
    else:
        file, package = asked.get("script"), ""
    if asked.get("code") is not None:
        source = asked["code"].encode("utf-8", "surrogateescape")
        walk.start("<command line>", "", ast.parse(source), source)
    elif file and walk.tree(file):
        walk.start(file, package, *walk.tree(file))
    said = [name for name in asked["said"] if walk.finder.find(name) in (False, None)]
    names = first_names(walk.finder.path) if walk.found or said else {}
    json.dump({
        "version": "{}.{}".format(*sys.version_info[:2]), "prefix": sys.prefix,
        "base_prefix": sys.base_prefix, "path": walk.finder.path,
        "suffixes": machinery.EXTENSION_SUFFIXES, "found": walk.found[:20], "late": walk.late,
        "extensions": walk.extensions[:500], "said": said, "names": names,
        "stdlib": walk.stdlib,
    }, sys.stdout)  # fmt: skip


if __name__ == "__main__":
    main()
