"""What lines of `.pth` files may have asked before a template could watch: found by reading them.

    look()   -> (variables that they may have read, why no rank can be forked or "")
    RENEW    {module: action of _brigade_again.py}, for what they imported of the standard library

`site` executes those lines before Brigade's first code runs, so nobody sees what they do. Read is
the text of each line that is code, and of each module that is there by now and neither Python's
nor Brigade's: variables that are asked for by name are compared with each rank's, and whatever
else a rank may have of its own refuses. That a function is never called is not looked at; but that
a clock's time only decides how long it waits, and that a copy of the environment only goes to its
children, is (editable installs that build anew).

What must stay true: the rules of _brigade_view.py. Code that cannot be read refuses.
"""

import sys

from _brigade_common import read_whole

_posix = sys.modules["posix"]
_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST; the module ast is not the program's import

RENEW = {"logging": "logging-start", "multiprocessing.process": "multiprocessing-key",
         "threading": "threading"}  # fmt: skip

_VARIABLES = ("environ", "environb")
_GETTERS = ("getenv", "getenvb")
_ENVIRONMENT = _VARIABLES + _GETTERS
_OWN = {
    **dict.fromkeys(
        ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
         "process_time", "clock_gettime", "now", "utcnow", "today", "localtime", "gmtime"),
        "the clock",
    ),
    **dict.fromkeys(("getpid", "getppid", "getpgrp", "getpgid", "getsid"), "the process's number"),
    **dict.fromkeys(
        ("urandom", "getrandom", "SystemRandom", "secrets", "random", "randint", "getrandbits",
         "uuid1", "uuid4"),
        "random numbers",
    ),
    **dict.fromkeys(("putenv", "unsetenv", "ctypes", "cffi"), "what cannot be followed"),
    "addsitedir": "more .pth files",
}  # fmt: skip
_MODULES = ("time", "random")  # whose names say nothing, but those of their functions do


def look():
    names, problem = [], ""
    for where, text in _texts():
        if text is None:
            why = "is no Python source"
        else:
            reader = _Reader()
            try:
                reader.read(text)
            except (SyntaxError, ValueError, RecursionError):
                reader.why = "cannot be read"
            names += reader.names
            why = reader.why
        if why and not problem:
            problem = f"{where}, run before all else by a .pth file, {why}"
    return names, problem


def _texts():
    """(what it is, its text) of all such code; None: it has none."""
    site = sys.modules["site"]
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE and site.USER_SITE:
        folders.append(site.USER_SITE)
    for folder in dict.fromkeys(folders):
        try:
            found = sorted([name for name in _posix.listdir(folder) if name.endswith(".pth")])
        except OSError:
            continue
        for name in found:
            for line in read_whole(f"{folder}/{name}").splitlines():
                line = line[3:] if line.startswith(b"\xef\xbb\xbf") else line
                if line.startswith((b"import ", b"import\t")):
                    yield name, line
    own = sys.modules["os"].__file__.rpartition("/")[0] + "/"
    for name, module in list(sys.modules.items()):
        origin = getattr(getattr(module, "__spec__", None), "origin", None)
        if not isinstance(origin, str) or origin in ("built-in", "frozen"):
            continue
        if name == "sitecustomize":
            continue
        packages = "/site-packages/" in origin or "/dist-packages/" in origin
        if packages or not origin.startswith(own):
            yield name, _source(origin)


def _source(path):
    try:
        return read_whole(path) if path.endswith(".py") else None
    except OSError:
        return None


class _Reader:
    """Of a text: which variables of the environment it names, and what speaks against it."""

    def __init__(self):
        self.names = []
        self.why = ""
        self._constants = {}
        self._stays = {}  # id of a call whose value stays in a function: the call

    def read(self, text):
        tree = compile(text, "<early>", "exec", _ONLY_TREE, dont_inherit=True)
        before, self._constants = self._constants, _constants(tree)
        self._walk(tree)
        self._constants = before

    def _walk(self, node):
        kind = type(node).__name__
        if kind == "FunctionDef":
            self._stays.update(_clocks_that_stay(node))
            for call, keys in _copies_that_stay(node):
                if None not in [self._variable(key, key) for key in keys]:
                    self._stays[id(call)] = call
        skip = self._skipped(kind, node)
        for child in _children(node):
            if child is not skip:
                self._walk(child)

    def _skipped(self, kind, node):
        """The part of a node that has been understood, or None; says why where it is doubtful."""
        if kind == "Attribute":
            self._named(node.attr)
        elif kind == "Name" and node.id in _ENVIRONMENT:
            self._named(node.id)
        elif kind == "Constant" and node.value in _ENVIRONMENT:
            self._named(node.value)
        elif kind == "Import":
            for alias in node.names:
                if alias.name not in _MODULES:
                    self._named(alias.name)
        elif kind == "ImportFrom":
            for alias in node.names:
                if alias.asname or alias.name not in _ENVIRONMENT:
                    self._named("environ" if alias.name == "*" else alias.name)
        elif kind == "Subscript":
            if type(node.ctx).__name__ == "Load" and _is(node.value, _VARIABLES):
                return self._variable(node.slice, node.value)
        elif kind == "Compare" and len(node.ops) == 1:
            right = node.comparators[0]
            if type(node.ops[0]).__name__ in ("In", "NotIn") and _is(right, _VARIABLES):
                return self._variable(node.left, right)
        elif kind == "Call":
            return self._called(node)
        return None

    def _called(self, node):
        if id(node) in self._stays:
            return node.func
        function, first = node.func, node.args[0] if node.args else None
        if _is(function, _GETTERS):
            return self._variable(first, function)
        if _is(function, ("get",)) and _is(getattr(function, "value", None), _VARIABLES):
            return self._variable(first, function)
        if _is(function, ("exec", "eval")) and type(function).__name__ == "Name":
            text = getattr(first, "value", None)
            if isinstance(text, str):
                self.read(text)
            else:
                self.why = self.why or "executes what is not known"
        return None

    def _variable(self, key, understood):
        """`key` of the environment is read: if it is a string that is known, that is all."""
        value = getattr(key, "value", None)
        if type(key).__name__ == "Name":
            value = self._constants.get(key.id)
        if isinstance(value, str):
            value = value.encode("utf-8", "surrogateescape")
        if not isinstance(value, bytes):
            return None
        self.names.append(value)
        return understood

    def _named(self, name):
        if name in _ENVIRONMENT:
            self.why = self.why or "may read all of the environment"
        elif name in _OWN:
            self.why = self.why or f"may ask for {_OWN[name]}"


def _is(node, names):
    """A name among those, or an attribute of that name: of a name, or of an attribute of one."""
    name = getattr(node, "attr", getattr(node, "id", None))
    while type(node).__name__ == "Attribute":
        node = node.value
    return name in names and type(node).__name__ == "Name"


def _children(node):
    for field in node._fields:
        value = getattr(node, field, None)
        for child in value if isinstance(value, list) else [value]:
            if hasattr(child, "_fields"):
                yield child


def _names_of(function, made):
    """{name: (calls that bind it, [(a node of that name, those above it, nearest first)])} of the
    names of a function that are bound to what `made(call)` is true of."""
    found, nodes = {}, []

    def visit(node, above):
        nodes.append((node, above))
        for child in _children(node):
            visit(child, [node, *above])

    visit(function, [])
    for node, _above in nodes:
        if _kind(node) == "Assign" and _kind(node.value) == "Call" and made(node.value):
            if len(node.targets) == 1 and _kind(node.targets[0]) == "Name":
                found.setdefault(node.targets[0].id, ([], []))[0].append(node.value)
    for node, above in nodes:
        name = node.arg if _kind(node) == "arg" else getattr(node, "id", None)
        if name in found:
            found[name][1].append((node, above))
        if _kind(node) in ("Global", "Nonlocal"):
            for name in node.names:
                found.pop(name, None)
    return found


def _clocks_that_stay(function):
    """{id: call} of clocks whose time is but compared, where it is decided how to go on."""

    def made(call):
        return _OWN.get(getattr(call.func, "attr", None)) == "the clock" and not call.args

    names = _names_of(function, made)

    def is_harmless(node, above):
        near = above[0]
        if _kind(near) == "Assign":
            target, value = near.targets[0], near.value
            known = getattr(value, "id", None) in names or _kind(value) == "Call" and made(value)
            return len(near.targets) == 1 and getattr(target, "id", None) in names and known
        kinds = [_kind(one) for one in above]
        while kinds[0] == "BinOp":
            del kinds[0]
        return kinds[:2] in (["Compare", "If"], ["Compare", "While"])

    before = None
    while before != len(names):
        before = len(names)
        for name, (_calls, uses) in list(names.items()):
            if False in [is_harmless(node, above) for node, above in uses]:
                del names[name]
    return {id(call): call for calls, _uses in names.values() for call in calls}


def _copies_that_stay(function):
    """(call, keys that are read of it) of copies of the environment that children alone get: that
    one was started, the trial would have seen."""

    def made(call):
        return _is(call.func, ("copy",)) and _is(getattr(call.func, "value", None), _VARIABLES)

    for calls, uses in _names_of(function, made).values():
        keys = []
        for node, above in uses:
            near, far = [*above, None][:2]
            if _kind(near) == "Assign" and near.targets[0] is node and near.value in calls:
                continue
            if _kind(near) == "Subscript" and near.value is node:
                if _kind(near.ctx) == "Load":
                    keys.append(near.slice)
            elif _is(near, ("get",)) and _kind(far) == "Call" and far.func is near and far.args:
                keys.append(far.args[0])
            elif not (_kind(near) == "keyword" and near.arg == "env" and _starts_a_child(far)):
                break
        else:
            for call in calls:
                yield call, keys


def _starts_a_child(node):
    names = ("run", "Popen", "call", "check_call", "check_output")
    function = getattr(node, "func", None)
    module = getattr(getattr(function, "value", None), "id", None)
    return _is(function, names) and module == "subprocess"


def _kind(node):
    return type(node).__name__


def _constants(tree):
    """{name: string} of names that a text binds once, to a string."""
    bound, found, following = {}, {}, [tree]
    while following:
        node = following.pop()
        following += _children(node)
        kind = type(node).__name__
        name = getattr(node, "id", None) if kind == "Name" else getattr(node, "arg", None)
        if kind == "arg" or kind == "Name" and type(node.ctx).__name__ != "Load":
            bound[name] = bound.get(name, 0) + 1
        if kind == "Assign" and type(node.targets[0]).__name__ == "Name":
            found[node.targets[0].id] = getattr(node.value, "value", None)
    return {name: text for name, text in found.items() if bound.get(name) == 1}
