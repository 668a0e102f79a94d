"""Render a manual page for `brigade`, for each of its commands, and for the calls of a library,
from the commands and the header themselves.

    tools/man.py FOLDER        writes FOLDER/brigade.1, FOLDER/brigade-run.1, ..., brigade_io.3
                          and brigade_shmemio.3

What `brigade COMMAND --help` says is what the page says: one source. A paragraph that click keeps
as it is (marked with \\b) stays as it is here too.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[1]


def escaped(text: str) -> str:
    """Text that troff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line[:1] in ".'" else line for line in text.split("\n"))


def paragraphs(help_text: str) -> Iterator[str]:
    """The paragraphs of a click help text, in troff."""
    for paragraph in help_text.split("\f")[0].strip().split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f".PP\n.nf\n{escaped(paragraph[2:])}\n.fi"
        else:
            yield f".PP\n{escaped(' '.join(paragraph.split()))}"


def definitions(rows: list[tuple[str, str]]) -> Iterator[str]:
    for term, meaning in rows:
        yield f".TP\n\\fB{escaped(term)}\\fR\n{escaped(' '.join(meaning.split()))}"


def page(command: click.Command, context: click.Context, version: str) -> str:
    """The manual page of one command."""
    name = context.command_path
    summary = command.get_short_help_str(limit=200).rstrip(".")
    lines = [
        f'.TH "{name.replace(" ", "-").upper()}" "1" "" "Brigade {version}" "Brigade"',
        ".SH NAME",
        f"{escaped(name.replace(' ', '-'))} \\- {escaped(summary)}",
        ".SH SYNOPSIS",
        f"\\fB{escaped(name)}\\fR {escaped(' '.join(command.collect_usage_pieces(context)))}",
    ]
    if command.help:
        lines += [".SH DESCRIPTION", *paragraphs(command.help)]
    named = [p for p in command.get_params(context) if isinstance(p, click.Option)]
    options = [row for row in (option.get_help_record(context) for option in named) if row]
    if options:
        lines += [".SH OPTIONS", *definitions(options)]
    if command.epilog:
        lines += [".SH NOTES", *paragraphs(inspect.cleandoc(command.epilog))]
    if isinstance(command, click.Group):
        children = list(subcommands(command, context))
        rows = [(str(inner.info_name), child.get_short_help_str(200)) for child, inner in children]
        lines += [".SH COMMANDS", *definitions(rows)]
        lines += [".SH SEE ALSO"]
        pages = [inner.command_path.replace(" ", "-") for _, inner in children]
        lines += [",\n".join(f"\\fB{escaped(page_name)}\\fR(1)" for page_name in pages)]
    return "\n".join(lines) + "\n"


def subcommands(
    group: click.Group, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            settings = command.context_settings
            yield command, click.Context(command, info_name=name, parent=context, **settings)


def pages(
    command: click.Command, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    """A command and all below it."""
    yield command, context
    if isinstance(command, click.Group):
        for child, inner in subcommands(command, context):
            yield from pages(child, inner)


def commented(text: str) -> str:
    """A C comment as troff: paragraphs, and indented lines as they are."""
    lines = [re.sub(r"^ ?/?\*+/? ?", "", line).replace(" */", "") for line in text.split("\n")]
    out = []
    for paragraph in "\n".join(lines).strip().split("\n\n"):
        plain = escaped(paragraph.replace("**", ""))
        code = all(line.startswith("    ") for line in paragraph.split("\n"))
        out.append(f".PP\n.nf\n{plain}\n.fi" if code else f".PP\n{plain}")
    return "\n".join(out)


def header_page(name: str, header: str, version: str, build: str) -> str:
    """The manual page of a public header: its comments, and what they stand before. `build`: the
    command that builds a program with it."""
    head, rest = header.split("*/\n", 1)
    summary = head.removeprefix("/* ").split("\n")[0].rstrip(".")
    lines = [
        f'.TH "{name.upper()}" "3" "" "Brigade {version}" "Brigade"',
        f".SH NAME\n{escaped(name)} \\- {escaped(summary)}",
        f".SH SYNOPSIS\n.nf\n#include <brigade/{name.split('_')[1]}.h>",
        f"{escaped(build)}\n.fi",
        ".SH DESCRIPTION",
        commented(head.split("\n", 1)[1]),
        ".SH CALLS",
    ]
    body = rest.split('extern "C" {\n#endif\n', 1)[1].split("#ifdef __cplusplus")[0]
    for comment, code in re.findall(r"(/\*.*?\*/)?((?:(?!\n/\*).)+)", body, re.DOTALL):
        calls = re.sub(r"BRG_API ([^;]*;)", lambda m: m[1].replace("\n        ", "\n"), code)
        declared = calls.strip("\n")
        lines += [commented(comment)] if comment else []
        lines += [f".PP\n.nf\n.RS 4\n{escaped(declared)}\n.RE\n.fi"] if declared.strip() else []
    return "\n".join([*lines, ".SH SEE ALSO", "\\fBbrigade\\-io\\-config\\fR(1)"]) + "\n"


def main(folder: Path) -> None:
    sys.path.insert(0, str(ROOT / "python"))
    from brigade import __version__
    from brigade.cli import cli

    folder.mkdir(parents=True, exist_ok=True)
    top = click.Context(cli, info_name="brigade", **cli.context_settings)
    for command, context in pages(cli, top):
        path = folder / f"{context.command_path.replace(' ', '-')}.1"
        path.write_text(page(command, context, __version__))
    for name, compiler in (("io", "cc app.c $(brigade io-config"),
                           ("shmemio", "oshcc app.c $(brigade io-config --shmem")):  # fmt: skip
        header = (ROOT / f"include/brigade/{name}.h").read_text()
        build = f"{compiler} --cflags --libs)"
        text = header_page(f"brigade_{name}", header, __version__, build)
        (folder / f"brigade_{name}.3").write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/man.py FOLDER")
    main(Path(sys.argv[1]))
