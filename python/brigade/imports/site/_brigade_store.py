"""What a template has imported, laid out so that a rank writes to few pages when it is shown.

    pool = modules_of_one_block(count)     empty modules that lie beside each other
    table = Table(nodes, again)            Nodes of _brigade_nodes.py, by number

A rank shares its template's memory until it writes to it, a page at a time, and an object that is
referred to is written to: it counts. What showing a module refers to lies together here, so that a
thousand modules cost a rank tens of pages and not thousands: modules, copies of their names, and
what their executions did, as numbers.

What must stay true: the rules of _brigade_view.py; a module that is in `modules` as such is nobody
else's, and one that a rank has seen is only referred to weakly.
"""

import sys

from _brigade_nodes import DEP, MISSING
from _brigade_state import Settings

_reference = sys.modules["_weakref"].ref
_Module = type(sys)
# of CPython's allocator of small objects: Objects/obmalloc.c
_STEP, _LARGEST = 16, 512
_POOL_BYTES = 1 << 14 if sys.version_info >= (3, 10) else 1 << 12
_POOL_HEAD = 48
_BYTES_HEAD = sys.getsizeof(b"")
_MAKERS = {16: lambda _: object(), 32: lambda size: 1 << 40 | size + 99}
_MOST_BYTES = 1 << 22  # of a size
KIND_BITS, NAME = 5, 16  # NAME: asked for, and no module of the table: it was there before
KINDS = (1 << KIND_BITS) - 1
NOT_HERE, TOP = -2, -1  # instead of the number of a module's package
STORED, SHOWING, SHOWN, FORGOTTEN = range(4)


def modules_of_one_block(count):
    """As `importlib` makes them, but without their names."""
    return [_Module.__new__(_Module) for _ in range(count)][::-1]  # used from the end


def fill_gaps():
    """Objects that take what is free among those that are here, for as long as they are held; what
    is made next lies together. None where Python does not lay out its small objects itself
    (PYTHONMALLOC, builds of other kinds)."""
    held = []
    for size in range(_LARGEST, 0, -_STEP):
        items = _until_one_after_the_other(size)
        if not items:
            return []
        held += items
    return held


def _until_one_after_the_other(size):
    """Objects of that size, the last of which take a whole pool: there was none with a gap left.
    Counting makes objects, too, so two pools' worth are made before they are counted; and a list
    of as many as 64 does not grow in a pool."""
    make, payload = _MAKERS.get(size, bytes), size - _BYTES_HEAD
    of_a_pool = (_POOL_BYTES - _POOL_HEAD) // size
    batch, held, run, last = (None,) * (2 * of_a_pool), [None] * 64, 0, 0
    while len(held) * size < _MOST_BYTES:
        first = len(held)
        for _ in batch:
            held.append(make(payload))
        for item in held[first:]:
            run = run + 1 if id(item) == last + size else 1
            last = id(item)
            if run == of_a_pool:
                return held
    return []


def _copy(text):
    """An equal string, at the end of what is allocated."""
    coded = text.encode("utf-8", "surrogatepass")
    return coded.decode("utf-8", "surrogatepass")


def _numbers(items):
    block = b"".join([item.to_bytes(4, sys.byteorder, signed=True) for item in items])
    return memoryview(block or bytes(4)).cast("i")


class Table:
    """
    names, index     names by number, and numbers by name
    modules          the module; once it is shown, a weak reference to it
    forgotten        modules that are never to be shown
    states           STORED, SHOWING: in sys.modules, and may be taken back; SHOWN: the program's;
                     FORGOTTEN: never to be shown
    packages         number of the package that a module is in; TOP; NOT_HERE: it is no module of
                     this table
    within           whether its execution was a part of its package's: the package has it then
    inner            numbers of the modules in a package for which that is so
    children         what its package is to have it by, unless that is so; None: it is not to
    paths            of a package: where it looks for modules, if tables answer for all of it
    elsewhere        folders of packages that are found through a link
    starts, ops      what the execution of number n did: ops[starts[n]:starts[n + 1]], kind of
                     _brigade_nodes.py or NAME, and shifted by KIND_BITS a module's number (DEP), or
                     the number of what is in `others`
    """

    def __init__(self, nodes, again):
        self.nodes = list(nodes.values())
        self.index = index = {name: number for number, name in enumerate(nodes)}
        self.modules = [node.module for node in self.nodes]
        self.forgotten = []
        self.again = {index[name]: actions for name, actions in again.items() if name in index}
        self.failed = bytes([node.failed for node in self.nodes])
        self.states = bytearray(len(self.nodes))
        self.within = bytearray([node.within for node in self.nodes])
        self.others, ops, starts = [], [], [0]
        for node in self.nodes:
            ops += [self._op(kind, what) for kind, what in node.ops]
            starts.append(len(ops))
            node.ops, node.known, node.module = (), (), MISSING
        self.ops, self.starts = _numbers(ops), _numbers(starts)
        packages = [name.rpartition(".")[0] for name in nodes]
        self.packages = _numbers([index.get(name, NOT_HERE) if name else TOP for name in packages])
        self.inner = {}
        for number, node in enumerate(self.nodes):
            if node.within and node.bound:
                self.inner.setdefault(self.packages[number], []).append(number)

    def lay_out(self):
        """The last that a template does before ranks are made of it: it frees nothing after."""
        self.elsewhere = self._elsewhere()
        self._gaps = fill_gaps()
        self.names = [_copy(name) for name in self.index]
        self.index = {name: number for number, name in enumerate(self.names)}
        self.children = [
            _copy(node.name.rpartition(".")[2]) if node.bound else None for node in self.nodes
        ]
        self.paths = [self._path(module) for module in self.modules]

    def _op(self, kind, what):
        if kind == DEP and what in self.index:
            return self.index[what] << KIND_BITS | DEP
        self.others.append(what)
        return len(self.others) - 1 << KIND_BITS | (NAME if kind == DEP else kind)

    @staticmethod
    def _path(module):
        path = getattr(module, "__dict__", {}).get("__path__")  # __getattr__ may import
        if type(path) is list and all(entry in Settings.tables for entry in path):
            return tuple([_copy(entry) for entry in path])
        return None

    def _elsewhere(self):
        """Where packages really are that lie behind a link: no path tells it."""
        real = sys.modules["os"].path.realpath
        places = [place for node in self.nodes for place in node.places or ()]
        return frozenset(
            [folder for folder, place in zip(map(real, places), places) if folder != place]
        )

    def done_by(self, number):
        return self.ops[self.starts[number] : self.starts[number + 1]]

    def take_out(self, number):
        """Have a package not know the modules in it yet that its own execution imported: somebody
        may look before they are shown."""
        for inner in self.inner.pop(number, ()):
            names, child = self.modules[number].__dict__, self.children[inner]
            before = self.nodes[inner].before
            self.within[inner] = 0
            if before is MISSING or before is self.modules[inner]:
                names.pop(child, None)
            else:
                names[child] = before

    def is_module(self, number, module):
        held = self.modules[number]
        if self.states[number] == SHOWN and type(held) is _reference:
            held = held()
        return module is held

    def shown(self, number):
        """The program owns the module from now on: what it deletes is gone."""
        self.states[number] = SHOWN
        try:
            self.modules[number] = _reference(self.modules[number])
        except TypeError:
            pass  # an object of the module's own making that cannot be referred to weakly

    def forget(self, number):
        self.forgotten.append(self.modules[number])
        self.states[number], self.modules[number] = FORGOTTEN, MISSING
