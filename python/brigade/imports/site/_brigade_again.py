"""What a rank does again for a warm module, at the moment when the program sees the module.

A plan names the actions (python/brigade/fork/rules.py decides which). Each is a function of the
module; what it makes anew is what the module's own execution would have made in this process.

What must stay true: the rules of _brigade_view.py; nothing is imported that the module has not
imported itself.
"""

import sys

_posix = sys.modules["posix"]


def _nothing(_module):
    """os.fork, or the library's own handlers of it, have done it."""


def _random_seed(module):
    """`random`: the generator behind random.random() and its friends."""
    module._inst.seed()


def _numpy_random(module):
    """`numpy.random` or `numpy.random.mtrand`: the global generator, with a seed of its own."""
    state = getattr(module, "mtrand", module)._rand
    generator = type(state._bit_generator)
    change = getattr(module, "set_bit_generator", None)
    if change is not None:
        change(generator())
    else:
        state.seed()


def _logging_start(module):
    """`logging`: the time that relativeCreated counts from."""
    now = module.time
    module._startTime = now.time_ns() if isinstance(module._startTime, int) else now.time()


def _multiprocessing_key(module):
    """`multiprocessing.process`: the secret of the main process."""
    config = module._current_process._config
    config["authkey"] = module.AuthenticationString(_posix.urandom(32))


def _uuid_node(module):
    """`uuid`: what tells this process's time-based numbers from others'."""
    module._last_timestamp = None
    module._node = None


def _tempfile_names(module):
    """`tempfile`: the generator of names, and the folder that was found."""
    module._name_sequence = None
    module.tempdir = None


def _threading(module):
    """`threading`: the main thread's number in the kernel. os.fork has made the rest anew."""
    main = module._main_thread
    if hasattr(main, "_set_native_id"):
        main._set_native_id()


def _torch_random(module):
    """`torch._C`: the generator of the processor's random numbers."""
    module.default_generator.seed()


def _torch_contract(module):
    """`torch.distributed._composable.contract`: the names of what it keeps in modules."""
    module.STATE_KEY = module.generate_state_key()
    module.REGISTRY_KEY = module.generate_state_key()


def _numexpr_threads(module):
    """`numexpr`: as many threads as it had started in the template, which has ended them."""
    module.set_num_threads(module.nthreads)


def _no_numexpr_threads(module):
    module.set_num_threads(1)


def _numcodecs_pid(module):
    """`numcodecs.blosc`: the process that may use Blosc's threads."""
    module._importer_pid = _posix.getpid()


def _numba_width(module):
    """`numba.core.types.functions`: how wide the terminal is, or what stands for it."""
    module._termwidth = module.get_terminal_size().columns


def _sympy_random(module):
    """`sympy.core.random`: both of its generators."""
    module.rng.seed()
    module._assumptions_rng.seed()


def _sympy_dummies(module):
    """`sympy.core.symbol`: the number that tells this process's dummies from others'. Those made at
    import keep theirs, and none made later may have it, too."""
    dummy = module.Dummy
    was = dummy._base_dummy_index
    dummy._prng.seed()
    while abs(dummy._base_dummy_index - was) < 10**6:
        dummy._base_dummy_index = dummy._prng.randint(10**6, 9 * 10**6)


def _xarray_locks(module):
    """`xarray.backends.locks`: what its locks are known by when they are sent elsewhere."""
    for lock in module.HDF5_LOCK, module.NETCDFC_LOCK:
        lock.__init__()


def _datasets_random(module):
    """`datasets.fingerprint`: the generator of random fingerprints."""
    module.fingerprint_rng.seed()


def _distributed_futures(module):
    """`distributed.client`: what tells this process's futures from others'."""
    module.Future._uid = module.uuid.uuid4().hex


def _transformers_session(module):
    """`transformers.utils.hub`: what this process calls itself when it asks for files."""
    module.SESSION_ID = module.uuid4().hex


def _tempfile_folder(_module):
    """`dill.session` and others that look for it: `tempfile` keeps the folder that it finds."""
    sys.modules["tempfile"].gettempdir()


def _jax_colours(module):
    """`jax._src.pretty_printer`: whether output goes to a terminal that shows colours."""
    module.CAN_USE_COLOR = module._can_use_color()


ACTIONS = {
    "random-seed": _random_seed,
    "numpy-random": _numpy_random,
    "logging-start": _logging_start,
    "multiprocessing-key": _multiprocessing_key,
    "uuid-node": _uuid_node,
    "tempfile-names": _tempfile_names,
    "threading": _threading,
    "matplotlib": _nothing,
    "openblas": _nothing,
    "openmp": _nothing,
    "mkl": _nothing,
    "torch-random": _torch_random,
    "torch-contract": _torch_contract,
    "numba-width": _numba_width,
    "numexpr-threads": _numexpr_threads,
    "numcodecs-pid": _numcodecs_pid,
    "sympy-random": _sympy_random,
    "sympy-dummies": _sympy_dummies,
    "xarray-locks": _xarray_locks,
    "datasets-random": _datasets_random,
    "distributed-futures": _distributed_futures,
    "transformers-session": _transformers_session,
    "tempfile-folder": _tempfile_folder,
    "jax-colours": _jax_colours,
}
BEFORE_A_FORK = {"numexpr-threads": _no_numexpr_threads}  # what a template does
