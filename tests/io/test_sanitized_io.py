"""libbrigade_io and its C tests under the compiler's sanitizers: no byte beside what is ours, no
undefined step, no leak, no race."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from io_cases import case, driver_of, make

ROOT = Path(__file__).parents[2]
OPTIONS = {
    "address,undefined": {
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
        "LSAN_OPTIONS": "exitcode=0",
    },
    "thread": {"TSAN_OPTIONS": "halt_on_error=1:allocator_may_return_null=1"},
}
# What an MPI does by itself is its own affair.
MPIS_OWN = "".join(
    f"called_from_lib:{name}\n" for name in ("libopen-pal.so", "libopen-rte.so", "libmpi.so")
) + "race:mca_\nrace:libpmix\n"  # fmt: skip
# Called when a thread gives its stack back: the sanitizer has nothing left to stand on.
NO_HOOKS = {"OMPI_MCA_memory": "^patcher", "UCX_MEM_EVENTS": "no"}

pytestmark = [pytest.mark.all, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=list(OPTIONS))
def sanitizer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def built(sanitizer: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("build")
    if not shutil.which("cmake"):
        pytest.skip("needs cmake")
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", build, f"-DBRIGADE_SANITIZE={sanitizer}"], check=True
    )
    subprocess.run(["cmake", "--build", build, "--parallel", "2"], check=True)
    return build


def test_the_c_tests_pass(built: Path, sanitizer: str) -> None:
    command = ["ctest", "--output-on-failure", "--test-dir", built]
    done = subprocess.run(
        command, text=True, capture_output=True, env={**os.environ, **OPTIONS[sanitizer]}
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.parametrize("ranks", [1, 3])
def test_random_cases_come_out_without_a_word(
    built: Path, sanitizer: str, tmp_path: Path, ranks: int
) -> None:
    native = built / "native"
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=undefined"]
    flags += [f"-L{native}", f"-Wl,-rpath,{native}"]
    driver = driver_of("openmpi", tmp_path, *flags)
    (tmp_path / "own").write_text(MPIS_OWN)
    told = {**OPTIONS[sanitizer], **NO_HOOKS, "ASAN_OPTIONS": f"log_path={tmp_path}/said"}
    if sanitizer == "thread":
        told["TSAN_OPTIONS"] += f":suppressions={tmp_path}/own:log_path={tmp_path}/said"
    pick = random.Random(f"sanitized {ranks}")
    cases = [case(pick, ranks) for _ in range(60)]
    if sanitizer == "thread" and ranks > 1:  # it cannot see that one process waits for another
        cases = [one.replace(":share=yes", "").replace(":share=no", "") for one in cases]
        cases = [one + ":share=no" for one in cases]
    make("openmpi", driver, tmp_path, ranks, cases, **told)
    said = "".join(path.read_text() for path in tmp_path.glob("said.*"))
    ours = [part for part in said.split("\n\n") if f"{ROOT}/src/" in part]
    assert not ours, "\n\n".join(ours[:3])
