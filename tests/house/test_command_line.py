"""The command line: every command has help, a manual page and completion."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import pytest

from brigade.cli import COMMANDS, cli
from brigade.cli.duration import Duration
from brigade.cli.size import Size, size
from brigade.errors import ImageError, UsageError

ROOT = Path(__file__).resolve().parents[2]


def brigade(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "brigade", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name):
    result = brigade(name, "--help")
    assert result.returncode == 0, result.stderr
    assert "Usage: brigade " + name in result.stdout


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_every_help_is_shown_in_any_encoding(encoding: str) -> None:
    paths = [words.split()[1:] for words, _ in tree(cli, click.Context(cli, info_name="brigade"))]
    assert len(paths) > 50 and ["image", "create"] in paths
    program = (
        "import json, os, sys\nfrom brigade.__main__ import main\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    sys.argv = ['brigade', *words, '--help']\n"
        "    try:\n        sys.exit(main() or f'{words} has not ended')\n"
        "    except SystemExit as end:\n        assert not end.code, (words, end.code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(paths)],
        env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.count(b"Usage: brigade") == len(paths)


BUDGET = ["budget", "--json", "-q", "--max-ops"]


@pytest.mark.parametrize(
    "words",
    [["--help"], ["run", "--help"], ["--version"], ["completion", "bash"],
     [*BUDGET, "100000", "--", "true"], [*BUDGET, "0", "--cover", "/", "--", "true"]],
    ids=" ".join,
)  # fmt: skip
def test_an_output_that_takes_nothing_is_one_line(words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "brigade", *words],
            stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    *before, last = done.stderr.splitlines()
    assert done.returncode == 1
    assert re.fullmatch("brigade: (standard output: )?No space left on device", last)
    assert [line for line in before if not line.startswith("brigade: over the budget")] == []


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_is_told_nothing(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "brigade", *words], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("name", "value"),
    [("STRICT", "2"), ("CHECK", "often"), ("MEMORY", "much"), ("TRANSPORT", "pigeon")],
)
def test_a_setting_that_cannot_be_meant_is_named_as_it_was_set(name: str, value: str) -> None:
    done = brigade("run", "--", "true", **{f"BRIGADE_{name}": value})
    assert done.returncode == 2
    assert f"BRIGADE_{name}: " in done.stderr and "'--" not in done.stderr
    done = brigade("run", "--check", "often", "--", "true", BRIGADE_STRICT="1")
    assert done.returncode == 2 and "'--check'" in done.stderr


def contexts(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    """Of a command and of all below it."""
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from contexts(below, click.Context(below, info_name=name, parent=context))


def tree(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """(words, help) of a command and of all below it."""
    for one in contexts(command, context):
        yield one.command_path, one.command.get_help(one)


def parameters() -> Iterator[tuple[click.Context, click.Parameter]]:
    """Of all commands."""
    for one in contexts(cli, click.Context(cli, info_name="brigade")):
        for parameter in one.command.params:
            yield one, parameter


def accepted(context: click.Context, parameter: click.Parameter, words: Iterable[str]) -> list[str]:
    """Those of the words that a parameter takes; it ends with 2 at the others."""
    taken = []
    for word in words:
        try:
            parameter.type_cast_value(context, word)
            taken.append(f"{context.command_path} {parameter.opts[0]} {word}")
        except (click.ClickException, UsageError) as refused:
            assert refused.exit_code == 2
    return taken


def test_no_option_takes_a_number_without_an_end() -> None:
    endless = ["nan", "inf", "-inf", "1e400", "1e308"]
    kinds = (click.types.FloatParamType, Duration)
    numbers = [(one, option) for one, option in parameters() if isinstance(option.type, kinds)]
    assert len(numbers) > 35
    assert [word for one in numbers for word in accepted(*one, endless)] == []


def test_a_trial_is_given_time_as_a_profile_is() -> None:
    names = ("--trial-quiet", "--trial-limit", "--until-quiet", "--limit")
    times = [(one, option) for one, option in parameters() if option.opts[0] in names]
    assert len(times) > 10
    assert [word for one in times for word in accepted(*one, ["0", "0.01", "-5"])] == []


def test_a_zero_that_is_refused_is_named_as_its_option_is() -> None:
    named = 0
    for one, option in parameters():
        if not isinstance(option.type, (click.FloatRange, click.IntRange, Duration, Size)):
            continue
        try:
            option.type_cast_value(one, "0")
        except UsageError as refused:
            assert refused.message == f"{option.opts[0]} must be above 0"
            named += 1
        except click.BadParameter as refused:
            assert refused.param is option
    assert named > 15


def test_no_option_takes_more_bytes_than_the_system_counts() -> None:
    sizes = [(one, option) for one, option in parameters() if isinstance(option.type, Size)]
    most = "1" + 400 * "0"
    assert len(sizes) > 15
    assert [word for one in sizes for word in accepted(*one, [most, f"{most}G", "8388608T"])] == []
    assert size("8388607T") == 8388607 << 40


def test_the_page_says_whose_json_takes_a_file() -> None:
    page = (ROOT / "docs/reference/command-line.md").read_text().replace("\n", " ")
    named = re.findall("`--json FILE` of (.*?) writes", page)
    takes, flags = set(), set()
    for one in contexts(cli, click.Context(cli, info_name="brigade")):
        for option in one.command.params:
            if "--json" in option.opts:
                is_flag = getattr(option, "is_flag", False)
                (flags if is_flag else takes).add(one.command_path.split()[1])
    assert takes == set(re.findall("`(.*?)`", " ".join(named)))
    assert not takes & flags and len(flags) > 8


def test_every_command_shows_examples_of_itself():
    helps = dict(tree(cli, click.Context(cli, info_name="brigade")))
    assert {"brigade run", "brigade image create", "brigade lab drop-caches"} <= set(helps)
    without = [
        words
        for words, text in helps.items()
        if not re.search(rf"^\W*{words} ?", text.partition("Examples:\n")[2], re.MULTILINE)
        and not re.search(rf'"\$\({words} ', text)
    ]
    assert without == []


def commands_in(line: str) -> Iterator[str]:
    """The command lines of `brigade` in a line of an example, without what is said of them and what
    else the shell is to do. A message of Brigade's, with its colon, is none, nor another program's
    word for it."""
    commands = re.split(r"(?<=\S)(?: {2,}(?!-)|  ?# )", line.strip())[0]
    for one in re.split(r" (?:\|\|?|&&|>) |; ", commands):
        found = re.search(r"(^|\s|\$\()(brigade (?!\w+:)(?!REQUIRED).*)", one)
        if found and found[1] == "$(":
            yield found[2].partition(")")[0]
        elif found and found.string[: found.start()].count('"') % 2 == 0:  # not inside a word
            yield found[2]


def examples() -> Iterator[str]:
    """The lines of all examples of the help, with those of a command that goes on made one."""
    for _, text in tree(cli, click.Context(cli, info_name="brigade")):
        block = text.partition("Examples:\n")[2].split("\n\n")[0].replace("\\\n", "")
        yield from block.splitlines()


def blocks(page: Path) -> Iterator[str]:
    """The lines of a page that stand in blocks of code."""
    fenced = False
    for line in page.read_text().replace("\\\n", "").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line


def understand(line: str) -> None:
    """Words, options and their values; which files there are is another matter."""
    command, context = cli, click.Context(cli, info_name="brigade")
    words = shlex.split(line)[1:]
    if words[0] == "COMMAND" or words[-1] in ("--help", "--version"):
        return
    while isinstance(command, click.Group):
        below = command.get_command(context, words[0]) if words else None
        assert below, line
        command, context = below, click.Context(below, info_name=words.pop(0), parent=context)
    try:
        command.make_context(context.info_name, words, parent=context.parent)
    except click.ClickException as error:
        pytest.fail(f"{line}: {error.message}")
    except ImageError:
        pass  # it is not there


def test_every_example_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, context: value)
    shown = [command for line in examples() for command in commands_in(line)]
    assert len(shown) > 200
    for line in shown:
        understand(line)


def test_every_command_line_on_a_page_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, context: value)
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    shown = [(page, one) for page in pages for line in blocks(page) for one in commands_in(line)]
    assert len(shown) > 150
    for page, line in shown:
        print(page.relative_to(ROOT))
        understand(line)


def test_the_list_of_commands_imports_none_of_them():
    program = (
        "import sys; from brigade.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "sys.exit(any(n.startswith('brigade.cli.') for n in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", program], stdout=subprocess.DEVNULL, check=True)


def test_a_word_that_is_no_command_is_an_error_with_exit_code_2():
    result = brigade("rum")
    assert result.returncode == 2
    assert "rum" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "words",
    ["predict --ranks 8 --profile FILE", "model cache --workload FILE", "profile --from FILE"],
)
def test_ctrl_c_ends_a_command_as_it_ends_others(tmp_path: Path, words: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "brigade", *words.replace("FILE", str(pipe)).split()]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as child:  # fmt: skip
        with pipe.open("w"):  # open when the command reads it
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=100)
    assert (child.returncode, said) == (-signal.SIGINT, "brigade: stopped by SIGINT\n")


def test_no_command_is_listed_with_half_a_sentence() -> None:
    helps = dict(tree(cli, click.Context(cli, info_name="brigade")))
    lists = {words: text for words, text in helps.items() if "\nCommands:\n" in text}
    assert {"brigade", "brigade bench", "brigade lab"} <= set(lists)
    cut = [words for words, text in lists.items() if re.search(r"[^\]]\.\.\.$", text, re.MULTILINE)]
    assert cut == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_valid_where_its_shell_is_installed(shell, tmp_path):
    script = tmp_path / "script"
    script.write_text(brigade("completion", shell).stdout)
    assert "_BRIGADE_COMPLETE" in script.read_text()
    if shutil.which(shell):
        assert subprocess.run([shell, "-n", script]).returncode == 0


def test_completion_offers_the_commands():
    result = brigade(_BRIGADE_COMPLETE="bash_complete", COMP_WORDS="brigade ", COMP_CWORD="1")
    offered = {line.split(",")[-1] for line in result.stdout.split()}
    assert offered == set(COMMANDS)


def test_bash_completes_as_ever_where_nothing_is_offered() -> None:
    script = brigade("completion", "bash").stdout + "complete -p brigade\n"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert {"bashdefault", "default"} <= set(done.stdout.split())


def test_files_are_offered_wherever_a_file_or_a_command_is_named() -> None:
    asked, wrong = 0, []
    for one, parameter in parameters():
        named = parameter.metavar or parameter.type.name.upper()
        words = isinstance(parameter, click.Argument) and parameter.nargs == -1
        if named not in ("FILE", "DIR") and not words:
            continue
        offered = [(item.type, item.value) for item in parameter.shell_complete(one, "part/of")]
        kinds = ["dir"] if named == "DIR" else ["file", "dir"]
        asked += 1
        if offered not in [[(kind, "part/of")] for kind in kinds]:
            wrong.append(f"{one.command_path} {parameter.name}: {offered}")
    assert wrong == [] and asked > 70


@pytest.mark.parametrize(
    "words", ["run -- python b", "run --json b", "profile -- srun ./b", "explain numpy -- b"]
)
def test_a_shell_is_told_to_complete_a_file(words: str) -> None:
    for shell in ("bash", "fish"):
        last = words.split()[-1]
        told = brigade(
            _BRIGADE_COMPLETE=f"{shell}_complete", COMP_WORDS=f"brigade {words}",
            COMP_CWORD=last if shell == "fish" else str(len(words.split())),
        ).stdout  # fmt: skip
        assert told.strip() == f"file,{last}"


def test_every_command_has_a_manual_page(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools/man.py", tmp_path], check=True)
    pages = {path.name for path in tmp_path.iterdir()}
    assert pages >= {"brigade.1", *(f"brigade-{name}.1" for name in COMMANDS)}
    for name in ("io", "shmemio"):
        calls = (tmp_path / f"brigade_{name}.3").read_text()
        header = (ROOT / f"include/brigade/{name}.h").read_text()
        declared = re.findall(r"BRG_API [^;(]*?\b((?:brg|SHMEM)_\w+)\(", header)
        assert len(declared) > 25 and all(call in calls for call in declared)
    for path in tmp_path.glob("*.1"):
        empty = re.findall(r"\.TP\n.*\n\\&\n", path.read_text())
        assert not empty, f"{path.name} explains nothing of {empty}"
        assert "\\fB\\-h, \\-\\-help\\fR" in path.read_text()
    run = (tmp_path / "brigade-run.1").read_text()
    assert ".SH SYNOPSIS\n\\fBbrigade run\\fR" in run
    assert "\\fB\\-\\-json" in run
    overview = (tmp_path / "brigade.1").read_text()
    names = [name.replace("-", "\\-") for name in COMMANDS]
    assert all(f".TP\n\\fB{name}\\fR" in overview for name in names)
