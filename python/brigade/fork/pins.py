"""What the user wishes otherwise than an image's plan, as a template is told: `BRIGADE_FORK_PINS`.

Of a module that is left all that import it are, so that one wish may be thousands of modules (of
TensorFlow, or when NumPy is left), and the kernel takes 128 KiB in one variable. So each word has
of the one before it of its kind only how much is the same, and the modules are sorted.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import commonprefix

from brigade.errors import UsageError
from brigade.fork.plan import Plan

ROOM = (128 << 10) - 64  # MAX_ARG_STRLEN of Linux, less the variable's name


def pins(plan: Plan, wanted: Plan) -> dict[str, str]:
    """What a template must know to follow `wanted` where its image says `plan`: module -> why it is
    left, "" if it is warm. Only differences, and what the user has warm whatever it is given."""
    told = {name: left.why for name, left in wanted.left.items() if name not in plan.left}
    told.update({name: "" for name in plan.left if name not in wanted.left})
    told.update({name: "" for name in wanted.named if name not in wanted.left})
    return told


def pins_text(told: Mapping[str, str]) -> str:
    """The same as the value of `BRIGADE_FORK_PINS`, in hexadecimal digits; "" if nothing differs.

    Words are parted by NUL: module, why, module, why. Two digits before each say how many of its
    first characters are those of the module, or reason, before. `_brigade_fork.py` reads it. Raises
    UsageError if it is too long for a variable.
    """
    words, before = [], ["", ""]
    for pair in sorted(told.items()):
        for kind, word in enumerate(pair):
            word = word.encode("utf-8", "backslashreplace").decode()
            same = min(len(commonprefix([word, before[kind]])), 0xFF)
            words.append(f"{same:02x}{word[same:]}")
            before[kind] = word
    text = "\0".join(words).encode().hex()
    if len(text) > ROOM:
        raise UsageError(
            f"--fork-warm and --fork-leave change what becomes of {len(told):,} modules,"
            " which is more than ranks can be told",
            hint="name fewer, or such as fewer others import",
        )
    return text
