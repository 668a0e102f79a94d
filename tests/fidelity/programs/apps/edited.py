"""A package that is installed editable, started by its entry point; it finds itself and others."""

import importlib.metadata
import importlib.resources
import inspect
import sys


def main():
    import edited

    print("edited", importlib.metadata.version("edited"), edited.__file__, __spec__.origin)
    print(edited.__path__, type(__loader__).__name__, len(inspect.getsource(main)))
    found = importlib.metadata.entry_points()
    points = found["console_scripts"] if isinstance(found, dict) else found
    print(sorted(point.name for point in points if "edited" in point.value))
    print([str(finder)[:40] for finder in sys.meta_path], sys.argv, sys.path)
    try:
        import edited.absent
    except ImportError as error:
        print(repr(error), error.path)
    return 4
