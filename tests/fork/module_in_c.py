"""A module in C that imports as Cython's do: past `__import__`, so that only importlib's own code
sees it, and that only where the module is not there yet.

    build(folder, python, kind, "thing json", "import sys\nsys.marked = 1\n")    folder/in_c.so

When it is executed it imports those modules, keeps each, and runs the text in its own names. `kind`
says what it is when it is made once more in a process: MULTIPHASE, as Cython's, the only object;
SINGLE, as those of NumPy and pybind11, a copy; EACH_TIME: a new one, which is executed.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

MULTIPHASE, SINGLE, EACH_TIME = "multiphase", "single", "each_time"

SOURCE = r"""
#include <Python.h>
static int execute(PyObject *module)
{
    static const char *names[] = {%(names)s NULL};
    PyObject *own = PyModule_GetDict(module);
    PyDict_SetItemString(own, "__builtins__", PyEval_GetBuiltins());
    for (const char **name = names; *name; name++) {
        PyObject *got = PyImport_ImportModuleLevel(*name, own, NULL, NULL, 0);
        if (!got || PyDict_SetItemString(own, *name, got)) return -1;
    }
    PyObject *done = PyRun_String(%(text)s, Py_file_input, own, own);
    return done ? 0 : -1;
}
"""
OLDER = r"""
static PyObject *function(PyObject *module, PyObject *none)
{
    (void)module;
    Py_INCREF(none);
    return none;
}
static PyMethodDef methods[] = {{"function", function, METH_O, 0}, {0}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "in_c", 0, %d, methods, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_in_c(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && execute(module)) Py_CLEAR(module);
    return module;
}
"""
KINDS = {
    MULTIPHASE: r"""
static PyObject *only;
static PyObject *create(PyObject *spec, PyModuleDef *definition)
{
    (void)definition;
    if (only) { Py_INCREF(only); return only; }
    return PyModule_NewObject(PyObject_GetAttrString(spec, "name"));
}
static int begin(PyObject *module)
{
    if (module == only) return 0;
    Py_XDECREF(only);
    only = module;
    Py_INCREF(only);
    if (!execute(module)) return 0;
    Py_CLEAR(only);
    return -1;
}
static PyModuleDef_Slot slots[] = {{Py_mod_create, create}, {Py_mod_exec, begin}, {0}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "in_c", 0, 0, 0, slots, 0, 0, 0};
PyMODINIT_FUNC PyInit_in_c(void) { return PyModuleDef_Init(&definition); }
""",
    SINGLE: OLDER % -1,
    EACH_TIME: OLDER % 0,
}


def headers(python: str) -> str:
    """The folder of this interpreter's Python.h; "" if it is not there."""
    text = "import sysconfig; print(sysconfig.get_path('include'))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip())
    return str(folder) if (folder / "Python.h").exists() else ""


def build(folder: Path, python: str, kind: str, names: str = "", text: str = "") -> None:
    quoted = {"names": "".join(f'"{name}", ' for name in names.split()), "text": json.dumps(text)}
    words = ["cc", "-x", "c", "-", "-shared", "-fPIC", f"-I{headers(python)}"]
    source = SOURCE % quoted + KINDS[kind]
    subprocess.run([*words, "-o", folder / "in_c.so"], input=source, text=True, check=True)
