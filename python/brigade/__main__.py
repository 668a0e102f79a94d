"""`python -m brigade` and the `brigade` command; the one place that catches BrigadeError."""

from __future__ import annotations

import sys

from brigade.errors import BrigadeError


def main() -> int:
    """Run the command line; returns the exit code of an error, and otherwise exits by itself."""
    from brigade.cli import cli

    try:
        cli.main(prog_name="brigade")
    except BrigadeError as error:
        print(f"brigade: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
