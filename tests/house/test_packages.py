"""tools/packages: asks before it installs, and never lets a service start.

The script runs against stand-ins for dpkg-query, apt-cache and apt-get, found first on PATH.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path: Path):
    """A machine where gcc and make are installed and which offers nano; what apt-get is told."""
    tools = {
        "dpkg-query": "echo asked dpkg >>$HERE/questions; "
        "printf 'installed gcc\\ninstalled make\\nconfig-files vim\\n'",
        "apt-cache": '[ "$2" = nano ] && echo "  Candidate: 1.0" || echo "  Candidate: (none)"',
        "apt-get": 'echo "$@" >>"$HERE/asked"; ! [ -e "$POLICY" ] || cp "$POLICY" "$HERE/during"',
        "id": "echo 0",
    }
    for name, body in tools.items():
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    script = (ROOT / "tools/packages").read_text()
    policy = tmp_path / "policy-rc.d"
    script = script.replace("/usr/sbin/policy-rc.d", str(policy))
    (tmp_path / "packages").write_text(script)

    class Machine:
        asked = tmp_path / "asked"
        questions = tmp_path / "questions"
        during = tmp_path / "during"

        def __init__(self) -> None:
            self.policy = policy

        def packages(self, wanted: str, *options: str) -> subprocess.CompletedProcess[str]:
            (tmp_path / "list").write_text(wanted)
            return subprocess.run(
                ["sh", tmp_path / "packages", *options, tmp_path / "list"],
                env={
                    "PATH": f"{tmp_path}:{os.environ['PATH']}",
                    "HERE": str(tmp_path),
                    "POLICY": str(policy),
                },
                capture_output=True,
                text=True,
            )

    return Machine()


def test_nothing_is_asked_of_apt_when_everything_is_there(machine):
    assert machine.packages("gcc # the compiler\nmake\n").returncode == 0
    assert not machine.asked.exists()


def test_a_removed_package_whose_settings_remain_counts_as_missing(machine):
    assert machine.packages("vim\n", "--dry-run").stdout.split() == ["vim"]


def test_only_what_is_missing_is_installed_and_the_first_offered_alternative_taken(machine):
    assert machine.packages("gcc\npico | nano\n").returncode == 0
    update, install = machine.asked.read_text().splitlines()
    assert update.split()[-1] == "update"
    assert install.split()[-1] == "nano"
    assert "gcc" not in install


def test_an_installed_alternative_is_enough(machine):
    assert machine.packages("nano | make\n").returncode == 0
    assert not machine.asked.exists()


def test_a_package_that_the_release_lacks_is_named(machine):
    result = machine.packages("emacs\n")
    assert result.returncode != 0
    assert "no package named 'emacs'" in result.stderr
    releases = "Debian 12 or 13, or Ubuntu 24.04"
    assert releases in result.stderr and releases in (ROOT / "README.md").read_text()


def test_services_are_forbidden_during_the_installation_and_the_ban_is_lifted_after_it(machine):
    assert machine.packages("nano\n").returncode == 0
    assert "exit 101" in machine.during.read_text()
    assert not machine.policy.exists()


def test_a_policy_that_allows_services_is_put_aside_and_put_back(machine):
    machine.policy.write_text("#!/bin/sh\nexit 0\n")
    machine.policy.chmod(0o755)
    assert machine.packages("nano\n").returncode == 0
    assert "exit 101" in machine.during.read_text()
    assert machine.policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_a_policy_that_forbids_services_is_left_alone(machine):
    machine.policy.write_text("#!/bin/sh\n# mine\nexit 101\n")
    machine.policy.chmod(0o755)
    assert machine.packages("nano\n").returncode == 0
    assert "# mine" in machine.during.read_text()
    assert "# mine" in machine.policy.read_text()


def test_one_question_to_dpkg_is_enough_for_the_whole_list(machine):
    assert machine.packages("gcc\nmake\nnano | gcc\nmake | nano\n").returncode == 0
    assert machine.questions.read_text() == "asked dpkg\n"
