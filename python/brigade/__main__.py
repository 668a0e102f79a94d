"""`python -m brigade` and the `brigade` command; the one place that catches BrigadeError."""

from __future__ import annotations

import sys

from brigade.errors import BrigadeError


def main() -> int:
    """Run the command line; returns the exit code."""
    from brigade.cli import cli

    try:
        return cli.main(prog_name="brigade", standalone_mode=True) or 0
    except BrigadeError as error:
        print(f"brigade: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
