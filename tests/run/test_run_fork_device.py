"""`brigade run --fork` of a program that computes on a GPU: PyTorch is imported once, and every
rank opens the device for itself. Needs a GPU, and PyTorch in this Python or in the one that
BRIGADE_TEST_PYTHON names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import torch
import json, sys
device = torch.device("cuda")
torch.manual_seed(7)
there = torch.randn(256, 256, device=device)
weights = torch.nn.Linear(256, 4).to(device)
loss = weights(there).square().mean()
loss.backward()
text = json.dumps({
    "initialized": torch.cuda.is_initialized(), "name": torch.cuda.get_device_name(0),
    "product": (there @ there).double().sum().item(), "loss": loss.item(),
    "gradient": weights.weight.grad.double().sum().item(), "host": torch.randn(4).tolist(),
    "threads": torch.get_num_threads(), "modules": sorted(sys.modules),
})
sys.stdout.write(text + "\\n")  # one write: ranks share the pipe
"""
PROBE = "import sys, torch; sys.exit(not torch.cuda.is_available())"


@pytest.fixture(scope="module")
def python() -> str:
    for python in filter(None, (sys.executable, os.environ.get("BRIGADE_TEST_PYTHON"))):
        if subprocess.run([python, "-c", PROBE], capture_output=True, check=False).returncode == 0:
            return python
    pytest.skip("needs a GPU and PyTorch (BRIGADE_TEST_PYTHON: a Python that has it)")


def test_forked_ranks_compute_on_a_gpu_what_plain_ones_do(tmp_path: Path, python: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [python, str(tmp_path / "program.py")]
    run = [sys.executable, "-m", "brigade", "run", "--quiet", "--json", str(tmp_path / "report")]
    env = {**os.environ, "BRIGADE_CACHE": str(tmp_path / "cache")}
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    for _ in range(2):  # the first makes the image
        forked = subprocess.run(
            [*run, "--fork", "-n", "4", "--", *words], env=env, capture_output=True, text=True
        )
        assert forked.returncode == 0, forked.stderr
        ranks = [json.loads(line) for line in forked.stdout.splitlines()]
        assert ranks == [json.loads(plain.stdout)] * 4
    fork = json.loads((tmp_path / "report").read_text())["fork"]
    assert (fork["ranks"], fork["plain"]) == (4, []) and fork["modules"] > 500, fork
