"""Random numbers and names of ranks that are forked: nothing that differs between processes is the
same in two ranks, and what a program seeds is what it is in an ordinary start."""

from __future__ import annotations

import json
import sysconfig

import pytest
from project import Site

# what each process has of its own, by a name, from modules that were warm. libc's generators are
# asked first, while nobody has seeded them: then they are the same in every process
OWN = """
import ctypes, json, os, random, secrets, ssl, sys, tempfile, uuid
import numpy, numpy.random, multiprocessing.process
libc = ctypes.CDLL(None)
unseeded = [libc.rand(), libc.random(), libc.lrand48()]
buffer = ctypes.create_string_buffer(16)
assert libc.getentropy(buffer, 16) == 0
own = {
    "random": random.random(), "random.Random": random.Random().random(),
    "random.SystemRandom": random.SystemRandom().random(), "secrets": secrets.token_hex(8),
    "os.urandom": os.urandom(8).hex(), "getrandom": os.getrandom(8).hex(),
    "uuid1": str(uuid.uuid1()), "uuid4": str(uuid.uuid4()),
    "mktemp": tempfile.mktemp(), "mkdtemp": tempfile.mkdtemp(dir="."),
    "numpy legacy": numpy.random.random(), "numpy RandomState": numpy.random.RandomState().rand(),
    "numpy default_rng": numpy.random.default_rng().random(),
    "numpy SeedSequence": str(numpy.random.SeedSequence().entropy),
    "ssl": ssl.RAND_bytes(8).hex(), "getentropy": buffer.raw.hex(),
    "authkey": bytes(multiprocessing.process.current_process().authkey).hex(),
    "pid": os.getpid(),
}
"""
# what a program makes that seeds
SEEDED = """
random.seed(7); numpy.random.seed(7); libc.srand(7); libc.srandom(7)
seeded = {
    "random": random.random(), "shuffled": random.sample(range(99), 9),
    "random.Random": random.Random("x").random(),
    "numpy legacy": numpy.random.random(), "numpy normal": numpy.random.standard_normal(3).tolist(),
    "numpy default_rng": numpy.random.default_rng(7).random(),
    "numpy Philox": int(numpy.random.Philox(7).random_raw()),
    "rand": libc.rand(), "random of libc": libc.random(),
    "uuid5": str(uuid.uuid5(uuid.NAMESPACE_DNS, "x")),
}
said = json.dumps({"own": own, "seeded": seeded, "unseeded": unseeded, "hash": hash("a string"),
                   "parent": os.getppid()})
os.write(1, (said + "\\n").encode())
"""
RANKS = 3


def test_no_two_ranks_have_the_same_numbers_and_seeds_are_obeyed(site: Site) -> None:
    pytest.importorskip("numpy")
    site.app.write_text(OWN + SEEDED)
    (site.package.parent / "numpy.pth").write_text(sysconfig.get_path("platlib") + "\n")
    run = ("--fork", "-n", str(RANKS))
    environment = {"PYTHONHASHSEED": "12"}
    done = site.brigade(run=run, cwd=site.base, env=environment)
    assert done.returncode == 0, done.stderr
    fork = site.report()["fork"]
    assert fork["ranks"] == RANKS and fork["modules"] > 100 and not fork["dropped"], fork
    ranks = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(ranks) == RANKS and len({one["parent"] for one in ranks}) == 1
    plain = site.plain(cwd=site.base)
    assert plain.returncode == 0, plain.stderr
    alone = json.loads(plain.stdout)
    for name in alone["own"]:
        seen = [str(one["own"][name]) for one in (alone, *ranks)]
        assert len(set(seen)) == RANKS + 1, (name, seen)
    for one in ranks:
        assert (one["seeded"], one["unseeded"]) == (alone["seeded"], alone["unseeded"])
    assert len({one["hash"] for one in ranks}) == 1 and ranks[0]["hash"] != alone["hash"]


def test_ranks_share_the_seed_of_hashes_and_no_other_job_does(site: Site) -> None:
    site.app.write_text("import os\nos.write(1, b'%d\\n' % hash('a string'))\n")
    seen = [site.brigade(run=("--fork", "-n", "2")).stdout.split() for _ in range(2)]
    assert all(len(one) == 2 and len(set(one)) == 1 for one in seen)
    assert seen[0] != seen[1] and site.report()["fork"]["ranks"] == 2
