"""The files in which a demand and a system are kept: JSON, with one way to fail."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any, TypeVar

from brigade.errors import BrigadeError
from brigade.load_json import load_json

T = TypeVar("T")


def fields(data: Any, what: str, kind: Any, schema: int, hint: str) -> dict[str, Any]:
    """The fields of the dataclass `kind` that JSON gives. Raises BrigadeError if it is something
    else than `what` ("a demand"), of another schema, or has a field that is none."""
    if not isinstance(data, dict) or data.get("schema") != schema:
        raise BrigadeError(f"this is not {what} of schema {schema}", hint=hint)
    given = {name: value for name, value in data.items() if name not in ("schema", "kind")}
    unknown = sorted(set(given) - {one.name for one in dataclasses.fields(kind)})
    if unknown:
        raise BrigadeError(f"{what} has no field {unknown[0]!r}", hint=hint)
    return given


def load(path: str | os.PathLike[str], what: str, parse: Callable[[Any], T], hint: str) -> T:
    """What `parse` makes of a file. Raises BrigadeError, with the path, if there is none, or it is
    something else than `what` ("a demand")."""
    try:
        with open(path, encoding="utf-8") as text:
            return parse(load_json(text.read()))
    except OSError as error:
        raise BrigadeError(f"{os.fspath(path)}: {error.strerror}", hint=hint) from error
    except (ValueError, TypeError) as error:
        raise BrigadeError(f"{os.fspath(path)} is not {what} ({error})", hint=hint) from error
    except BrigadeError as error:
        raise BrigadeError(f"{os.fspath(path)}: {error.message}", hint=error.hint) from error
