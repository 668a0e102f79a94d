"""What calls do to other modules, told by their names, and what is alike in all jobs.

    of_home("numpy.random.seed")   -> Does, of a function in a module; "builtins.len"
    of_value("strip")              -> Does, of a method of a value of one of Python's own types
    is_alike(home)                 whether what lies in a module is the same whatever is given
    decorates(home)                whether a decorator leaves uncalled what it is given

Lists of what is known to be harmless: what is not in them may do anything. Pure.
"""

from __future__ import annotations

import builtins
import enum

from brigade.fork.source import homes


class Does(enum.Enum):
    NOTHING = enum.auto()  # changes no other module; what comes out is known if what goes in is
    LOOKS = enum.auto()  # nor this; but what comes out depends on where and how the program runs
    SETS = enum.auto()  # sets something, by what goes in
    ANYTHING = enum.auto()


_HARMLESS = (Does.NOTHING, Does.LOOKS)


def _table(does: Does, text: str) -> dict[str, Does]:
    return dict.fromkeys(text.split(), does)


def _by_package(names: dict[str, str]) -> dict[str, frozenset[str]]:
    return {package: frozenset(text.split()) for package, text in names.items()}


VARIABLES = ("os.environ", "os.environb", "os.getenv", "os.getenvb")
ARGUMENTS = ("argv", "orig_argv")
# functions that hand arguments out
PARSES = frozenset(["parse_args", "parse_known_args", "parse_intermixed_args"])
# what comes out depends on the working folder, unless it begins with one that does not
FROM_FOLDER = frozenset(["abspath", "realpath", "resolve", "absolute"])
EXPAND = ("expanduser", "expandvars")  # by variables
# what comes out is always the same thing, and in it there may be whatever somebody has set
SAME = {"logging.getLogger": "logging.logger", "decimal.getcontext": "decimal.context"}
# what is consumed by who asks for it next, maybe by choice
ITERATORS = frozenset(
    "accumulate chain combinations combinations_with_replacement compress count cycle dropwhile"
    " enumerate filter filterfalse finditer from_iterable groupby islice iter iter_unpack map"
    " pairwise permutations product repeat reversed starmap takewhile tee zip zip_longest".split()
)
# these call what they are given (which argument, or arguments); all others, those of these names
CALLERS = {
    **dict.fromkeys("accumulate groupby".split(), (1, 2)),
    **dict.fromkeys("defaultdict dropwhile filter filterfalse iter map reduce".split(), (0, 1)),
    **dict.fromkeys("starmap takewhile".split(), (0, 1)),
    **dict.fromkeys("sub subn".split(), (0, 1)),
}
OF_PATTERNS = ("sub", "subn")  # methods; functions of re have the pattern before all others
CALLED = frozenset(
    "action callback cls default_factory formatter_class key Loader object_hook"
    " object_pairs_hook onerror opener parse_constant parse_float parse_int parser_class type"
    " repl func function".split()
)
# functions that open a file: which argument says how
OPENERS = {"builtins.open": 1, "io.open": 1, "argparse.FileType": 0}
CONSUMERS = frozenset(
    "all any bytearray bytes dict frozenset join list max min set sorted sum tuple".split()
)
# may have options of any names
OF_ANY_NAMES = frozenset(["dict", "format", "Namespace", "SimpleNamespace"])

_BUILTINS = {
    **_table(
        Does.NOTHING,
        "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod"
        " enumerate exit filter float format frozenset hasattr hex int isinstance issubclass iter"
        " len list map max min object oct ord pow property quit range repr reversed round set"
        " slice sorted staticmethod str sum tuple type zip",
    ),
    **_table(Does.LOOKS, "dir hash id next open vars"),
}
_METHODS = {
    **_table(
        Does.NOTHING,
        "absolute as_integer_ratio as_posix astype bit_length capitalize casefold center copy"
        " count decode difference digest encode end endswith expandtabs expanduser find findall"
        " finditer format format_map from_bytes from_iterable fromhex fromisoformat fromkeys"
        " fullmatch get getChild group groupdict groups hex hexdigest index intersection"
        " is_absolute is_integer isalnum isalpha isascii isdecimal isdigit isdisjoint isidentifier"
        " islower isnumeric isspace issubset issuperset istitle isupper items join joinpath keys"
        " ljust lower lstrip maketrans match most_common pack partition relative_to removeprefix"
        " removesuffix replace reshape resolve rfind rindex rjust rpartition rsplit rstrip search"
        " span split splitlines startswith strip strptime sub subn swapcase symmetric_difference"
        " title to_bytes tolist total_seconds translate union unpack upper values with_name"
        " with_stem with_suffix zfill",
    ),
    **_table(
        Does.LOOKS,
        "add_argument add_argument_group add_command add_mutually_exclusive_group add_option"
        " add_parser add_subparsers add_typer astimezone close date error exists exit getvalue"
        " glob is_dir is_file is_symlink isatty isoformat iterdir lstat now open read read_bytes"
        " read_text readline readlines rglob set_defaults stat strftime time timestamp today"
        " utcnow",
    ),
    **dict.fromkeys(PARSES, Does.LOOKS),
    **_table(
        Does.SETS,
        "addFilter addHandler append extend insert pop seed setFormatter setLevel setdefault"
        " update",
    ),
}
# of text; nobody has others by these names
OF_TEXT = frozenset(
    "capitalize casefold decode encode endswith isdigit lower lstrip removeprefix removesuffix"
    " rsplit rstrip split splitlines startswith strip title upper zfill".split()
)
# All that these have changes nothing, but for what is named below.
_PURE = frozenset(
    "abc base64 binascii cmath collections contextlib contextvars copy dataclasses datetime"
    " decimal enum errno fnmatch fractions functools hashlib html itertools keyword math numbers"
    " operator os.path posixpath re string struct textwrap types typing unicodedata urllib.parse"
    " zlib".split()
)
_BUT = frozenset(
    "abc.ABCMeta copy.replace dataclasses.make_dataclass dataclasses.replace enum.EnumMeta"
    " enum.EnumType functools.update_wrapper operator.call operator.delitem operator.iadd"
    " operator.iand operator.iconcat operator.ifloordiv operator.ilshift operator.imatmul"
    " operator.imod operator.imul operator.ior operator.ipow operator.irshift operator.isub"
    " operator.itruediv operator.ixor operator.methodcaller operator.setitem re.purge"
    " struct.pack_into types.new_class types.prepare_class types.resolve_bases"
    " typing.get_type_hints".split()
)
# as a decorator, of what is new; called with something, they may change that
_CHANGE_WHAT_THEY_GET = frozenset(
    "dataclass deprecated final no_type_check overload override runtime_checkable"
    " total_ordering unique update_abstractmethods".split()
)
_LIBRARY_S = {
    **_table(
        Does.NOTHING,
        "json.dumps logging.Formatter logging.NullHandler"
        " logging.StreamHandler logging.getLevelName logging.getLogger os.fsdecode os.fsencode"
        " os.fspath os.getenv os.getenvb pathlib.Path pathlib.PosixPath pathlib.PurePath"
        " pathlib.PurePosixPath shlex.quote sys.exit sys.getdefaultencoding"
        " sys.getfilesystemencoding sys.getrecursionlimit sys.getsizeof sys.intern"
        " threading.Barrier threading.BoundedSemaphore threading.Condition threading.Event"
        " threading.Lock threading.RLock threading.Semaphore threading.Thread threading.Timer"
        " threading.local uuid.UUID warnings.catch_warnings",
    ),
    **_table(
        Does.LOOKS,
        "argparse.ArgumentParser argparse.FileType argparse.Namespace atexit.register"
        " collections.ChainMap collections.defaultdict configparser.ConfigParser"
        " configparser.RawConfigParser contextvars.copy_context csv.DictReader csv.reader"
        " getopt.getopt getopt.gnu_getopt getpass.getuser glob.glob glob.iglob"
        " io.BytesIO io.StringIO io.open json.load json.loads locale.getlocale marshal.load"
        " marshal.loads multiprocessing.cpu_count optparse.OptionParser os.access os.cpu_count"
        " os.getcwd os.getegid os.geteuid os.getgid os.getlogin os.getpid os.getppid os.getuid"
        " os.isatty os.listdir os.lstat os.process_cpu_count os.scandir os.sched_getaffinity"
        " os.stat os.uname os.walk os.path.exists os.path.getatime os.path.getctime"
        " os.path.getmtime os.path.getsize os.path.isdir os.path.isfile os.path.islink"
        " os.path.ismount os.path.lexists os.path.relpath os.path.samefile pathlib.Path.cwd"
        " pathlib.Path.home pickle.load pickle.loads platform.architecture platform.machine"
        " platform.node platform.platform platform.processor platform.python_implementation"
        " platform.python_version platform.release platform.system platform.uname"
        " platform.version plistlib.load plistlib.loads random.Random shutil.get_terminal_size"
        " shutil.which shlex.split socket.getfqdn socket.gethostname tempfile.gettempdir"
        " time.localtime time.monotonic time.perf_counter time.perf_counter_ns time.process_time"
        " time.strftime time.time time.time_ns tomllib.load tomllib.loads uuid.uuid1 uuid.uuid4",
    ),
    **_table(
        Does.SETS,
        "decimal.setcontext faulthandler.enable gc.disable gc.enable locale.setlocale"
        " logging.addLevelName logging.basicConfig logging.captureWarnings logging.disable"
        " multiprocessing.set_start_method random.seed site.addsitedir sys.setrecursionlimit"
        " warnings.filterwarnings warnings.simplefilter",
    ),
}
_MAKERS = frozenset(
    "argparse.ArgumentParser builtins.abs builtins.bool builtins.bytes builtins.float"
    " builtins.format builtins.int builtins.len builtins.open builtins.ord builtins.range"
    " builtins.repr builtins.round builtins.str io.open json.dumps json.load json.loads"
    " os.getenv os.listdir os.stat pathlib.Path pathlib.PurePath"
    " tomllib.load tomllib.loads".split()
)
LIBRARY = homes.LIBRARY.union(home.partition(".")[0] for home in [*_PURE, *_LIBRARY_S, "argparse"])
_LOADERS = frozenset(["orjson", "simplejson", "toml", "tomli", "ujson", "yaml"])
_LOADS = frozenset(["full_load", "load", "loads", "safe_load"])
_OTHERS_SET = frozenset(
    "append enable extend insert manual_seed manual_seed_all pop seed setLevel set_default_dtype"
    " set_float32_matmul_precision set_num_interop_threads set_num_threads set_option"
    " set_printoptions setdefault seterr update use".split()
)
_OF_ARRAYS = (
    "arange array asarray bool_ complex128 complex64 deg2rad dtype exp eye finfo float16 float32"
    " float64 full iinfo int16 int32 int64 int8 linspace log logspace ones sqrt uint16 uint32"
    " uint64 uint8 zeros"
)
_VALUES_OF_ARRAYS = frozenset(
    "bfloat16 bool bool_ complex128 complex64 double e euler_gamma float float16 float32 float64"
    " half inf int int16 int32 int64 int8 long nan ndarray newaxis pi uint16 uint32 uint64"
    " uint8".split()
)
_OTHERS_S = _by_package(
    {
        "click": "Abort Argument BadParameter Choice Command DateTime File FloatRange Group"
        " IntRange Option Path Tuple",
        "numpy": _OF_ARRAYS,
        "torch": _OF_ARRAYS + " device tensor Size",
        "typer": "Argument Context Exit Option Typer",
        "typing_extensions": "NewType ParamSpec TypeVar TypeVarTuple",
    }
)
_OF_COMMANDS = ("click", "typer")
_DECORATORS = _by_package(
    {
        "click": "argument command confirmation_option group help_option option pass_context"
        " pass_obj password_option version_option",
        "hydra": "main",
        "numba": "jit njit vectorize guvectorize",
        "pytest": "fixture",
        "torch": "no_grad inference_mode",
        "typing_extensions": "deprecated final overload override runtime_checkable",
    }
)
# methods by which a command or a property is given another function
OF_DECORATED = frozenset("callback command deleter getter group register setter".split())
ADD = ("add_command", "add_typer")
OF_COMMANDS = OF_DECORATED.union(ADD)
# managers of contexts that leave all as it was, and let exceptions pass
CONTEXTS = frozenset(
    "builtins.open io.open contextlib.nullcontext warnings.catch_warnings numpy.errstate"
    " torch.no_grad torch.inference_mode".split()
)
SUPPRESS = "contextlib.suppress"

_OF_SYS = frozenset(
    "api_version base_exec_prefix base_prefix builtin_module_names byteorder copyright exec_prefix"
    " float_info hash_info hexversion implementation int_info maxsize maxunicode path platform"
    " platlibdir prefix stderr stdlib_module_names stdout thread_info version version_info".split()
)
_OF_OS = frozenset("altsep curdir devnull extsep linesep name pardir pathsep sep".split())
_GIVEN = frozenset(
    "os.environ os.environb sys.argv sys.flags sys.orig_argv sys.stderr sys.stdin sys.stdout"
    " sys.path".split()
)
_STREAMS = ("sys.stderr", "sys.stdout")
_OF_MODULES = frozenset(["__doc__", "__file__", "__name__", "__path__", "__version__"])
_COMMON = frozenset("jax matplotlib numba numpy pandas scipy tensorflow torch".split())
_CONSTANTS = ("builtins.Ellipsis", "builtins.NotImplemented", "builtins.__debug__")
_NOT_ALIKE = frozenset(["__main__", "builtins", "site", "test"])


def of_home(home: str, *, with_value: bool = False) -> Does:
    """Of what is in a module; `with_value`: it has an argument that is no option."""
    package, _, rest = home.partition(".")
    if package not in LIBRARY:
        return _of_other(package, rest)
    if package != "builtins":
        return _of_library(home, with_value)
    kind = getattr(builtins, rest, None)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        return Does.NOTHING
    return of_value(rest.rpartition(".")[2]) if "." in rest else _of_builtin(rest)


def is_harmless(module: str) -> bool:
    """Of the standard library: nothing that lies in it changes anything."""
    return module in _PURE or module == "__future__"


def _of_builtin(name: str) -> Does:
    return _BUILTINS.get(name, Does.ANYTHING)


def of_value(method: str) -> Does:
    return _METHODS.get(method, Does.ANYTHING)


def _of_library(home: str, with_value: bool) -> Does:
    last = home.rpartition(".")[2]
    if home in _BUT or with_value and last in _CHANGE_WHAT_THEY_GET:
        return Does.ANYTHING
    if home.startswith("posixpath."):
        home = f"os.path.{last}"
    does = _LIBRARY_S.get(home)
    if does is not None:
        return does
    if last.endswith(("Error", "Exception")):
        return Does.NOTHING
    pure = _pure_module(home)
    if pure and home.count(".") == pure.count(".") + 1:
        return Does.NOTHING
    has_values = pure or home.partition(".")[0] in ("logging", "os", "pathlib", "sys")
    return of_value(last) if has_values and home.count(".") > 1 else Does.ANYTHING


def _of_other(package: str, rest: str) -> Does:
    last = rest.rpartition(".")[2]
    if package in _LOADERS and rest in _LOADS:
        return Does.LOOKS
    if rest in _OTHERS_S.get(package, ()):
        return Does.LOOKS if package in _OF_COMMANDS else Does.NOTHING
    if last in _OTHERS_SET or rest in ("errstate", "no_grad", "inference_mode"):
        return Does.SETS
    return Does.NOTHING if "." in rest and last in OF_TEXT else Does.ANYTHING


def is_function(home: str) -> bool:
    """Of what changes nothing: whether it lies in a module or class, and not in a value there,
    which may be another one."""
    package, _, rest = home.partition(".")
    if package not in LIBRARY:
        return rest in _OTHERS_S.get(package, ())
    return not (home.startswith(("os.environ", "sys.")) and "." in rest)


def makes(home: str) -> bool:
    """Whether what comes out of it is of a type of Python's own and holds nothing of what goes in,
    or only as the parser of arguments does."""
    package, _, rest = home.partition(".")
    of_paths = _pure_module(home) in ("os.path", "posixpath")
    is_command = package in _OF_COMMANDS and rest in _OTHERS_S[package]
    return of_paths or is_command or home in _MAKERS or package in _LOADERS and rest in _LOADS


def decorates(home: str) -> bool:
    package, _, name = home.partition(".")
    if package == "builtins":
        return name in ("classmethod", "property", "staticmethod")
    if package in LIBRARY:
        return of_home(home) in _HARMLESS and home.rpartition(".")[2] not in CALLERS
    return name in _DECORATORS.get(package, ())


def is_loader(home: str) -> bool:
    """A class of a package that reads files: `yaml.SafeLoader`."""
    return home.partition(".")[0] in _LOADERS


def is_library(home: str) -> bool:
    return home.partition(".")[0] in LIBRARY


def is_common(home: str) -> bool:
    """Of Python's library, or of packages in which things stay where they are."""
    top = home.partition(".")[0]
    return top in LIBRARY or top in _COMMON


def is_alike(home: str) -> bool:
    """Of a dotted name below a module of whatever package."""
    top, _, rest = home.partition(".")
    first, _, deeper = rest.partition(".")
    last = home.rpartition(".")[2]
    if not rest:
        return False
    if last in _OF_MODULES or last.endswith("Warning"):
        return True
    if top == "sys":
        return first in _OF_SYS and not (deeper and f"{top}.{first}" in _STREAMS)
    if top == "builtins":
        return of_home(home) in _HARMLESS or home in _CONSTANTS
    if top in ("numpy", "torch"):
        return rest in _VALUES_OF_ARRAYS
    if top not in LIBRARY:
        return False
    if _pure_module(home):
        return _of_library(home, False) is Does.NOTHING
    if home in VARIABLES:
        return True
    return first in _OF_OS if top == "os" and not first.isupper() else _is_constant(top, first)


def is_fresh(home: str) -> bool:
    """Whether nothing of anybody's can be in it: what is given, or a function that is harmless."""
    is_given = ".".join(home.split(".")[:2]) in _GIVEN
    return is_given or is_library(home) and of_home(home) in _HARMLESS


def _is_constant(top: str, name: str) -> bool:
    """A constant or a class, as they are written."""
    return name[0].isupper() and top not in _NOT_ALIKE


def _pure_module(home: str) -> str:
    """The one of _PURE in which it lies, or ""."""
    top, _, rest = home.partition(".")
    below = f"{top}.{rest.partition('.')[0]}"
    return next((name for name in (top, below) if name in _PURE), "")
