"""The generators of random numbers that all modules of a process share: who moves them.

    generators = Generators()
    generators.look()      for each of SHARED, how often it was found to give other numbers next
                           than at the look before: seeded, or drawn from
    generators.open(), close()   in between, a look costs little
    numpy_state()          what decides which numbers NumPy's gives next; None where there is none

A module that seeds one when it is imported has the program's numbers be the same in each run; one
that draws has numbers of its own in each rank. Neither is so if that is done once for all ranks.

A generator that is there for the first time has not been moved: the module that owns it has made
it. That of PyTorch is asked when all of `torch` has been imported, which may not be asked before.

What must stay true: the rules of _brigade_view.py; looking moves none.
"""

import sys

SHARED = "random", "numpy.random", "torch"
_modules = sys.modules
_posix = sys.modules["posix"]
_HEAD_BYTES = object.__basicsize__  # the count of references is there
_LEAST_BYTES, _MOST_BYTES = 624 * 4, 1 << 14  # of what holds the state of a Mersenne twister
_NUMPY = "numpy.random.mtrand"


def _plain(value):
    """Without arrays, which nobody compares in one word."""
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in value}
    return value.tobytes() if hasattr(value, "tobytes") else value


def _held(module, name):
    """Not as an attribute: for one that is not there (yet), Python asks whether the module is being
    imported, which is an import of it to who watches."""
    return _modules[module].__dict__[name]


def numpy_state():
    try:
        return _plain(_held(_NUMPY, "_rand").get_state(legacy=False))
    except Exception:
        return None  # not there, or of a kind that has none


def _random_state():
    return _held("random", "_inst").getstate()


def _random_holders():
    held = _held("random", "_inst")
    return (held,), held.gauss_next


def _numpy_holders():
    held = _held(_NUMPY, "_rand")
    return (held, held._bit_generator), None


class _Torchs:
    """The state of PyTorch's generator for the processor: a tensor, which compares otherwise."""

    def __init__(self, state):
        self._state = state

    def __eq__(self, other):
        return self._state.equal(other._state)

    __hash__ = None


def _torch_state():
    module = _modules["torch"]
    if module.__spec__.__dict__.get("_initializing"):
        return None
    code = module._C
    if code._len_torch_function_stack() or code._len_torch_dispatch_stack():
        return None  # somebody sees, or changes, all that is done with tensors
    return _Torchs(code.default_generator.get_state())


class Generators:
    def __init__(self):
        self._memory = -1  # of this process
        self._counts = [0] * len(SHARED)
        self._states = [None] * len(SHARED)
        self._bytes = [None] * len(SHARED)

    def open(self):
        try:
            self._memory = _posix.open("/proc/self/mem", _posix.O_RDONLY | _posix.O_CLOEXEC)
        except OSError:
            pass  # then each look asks for all of the states

    def close(self):
        if self._memory >= 0:
            _posix.close(self._memory)
        self._memory = -1

    def forget(self, number, count):
        """What has moved that of SHARED since it was found `count` times to have been moved."""
        self._counts[number] = count

    def look(self):
        self._compare(0, _random_state, _random_holders)
        self._compare(1, numpy_state, _numpy_holders)
        self._compare(2, _torch_state, None)
        return tuple(self._counts)

    def _compare(self, number, state_now, holders):
        try:
            if holders is not None and self._memory >= 0:
                held = self._read(*holders())
                if held is not None and held == self._bytes[number]:
                    return
                self._bytes[number] = held
            state = state_now()
        except Exception:
            return  # it is not there (yet)
        before = self._states[number]
        if state is not None:
            self._states[number] = state
            self._counts[number] += before is not None and state != before

    def _read(self, holders, more):
        """What these objects consist of: CPython's and NumPy's generators have their states in
        themselves. To ask for one makes 600 numbers of it, which takes 30 times as long."""
        found = [more]
        for held in holders:
            size = type(held).__basicsize__ - _HEAD_BYTES
            if size > _MOST_BYTES:
                return None
            found.append(_posix.pread(self._memory, size, id(held) + _HEAD_BYTES))
        return found if sum(map(len, found[1:])) >= _LEAST_BYTES else None
