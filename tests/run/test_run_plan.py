"""`brigade run --fork`: the image must have a plan, which a trial for it gives."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner
from project import Site

from brigade.cli.explain import command as explain
from brigade.fork.plan import from_json
from brigade.image.reader import Image


def plan_of(site: Site):
    (path,) = Path(site.base / "cache/images").glob("*.brg")
    with Image(str(path)) as image:
        return from_json(image.meta["fork"]) if "fork" in image.meta else None


def test_an_image_without_a_plan_is_made_anew_for_fork_and_serves_both(site: Site) -> None:
    (site.package / "deep/leaf.py").write_text("import os\npid = os.getpid()\n")
    assert site.brigade().returncode == 0
    assert plan_of(site) is None
    forked = site.brigade(run=("-n", "2", "--fork"))
    assert forked.returncode == 0, forked.stderr
    assert site.report()["image"]["renewed"] == "no plan for --fork"
    plan = plan_of(site)
    assert plan is not None and plan.ranks == 2
    warm = {module.name for module in plan.warm}
    assert {"pkg", "pkg.deep", "json", "json.decoder"} <= warm
    assert plan.left["pkg.deep.leaf"].why == "asks for the process's number"
    contents = "it holds no contents: it was made for ranks forked on one machine"
    for run, renewed in (
        ("--fork", None), ("--no-fork", contents), ("--no-fork", None), ("--fork", None),
    ):  # fmt: skip
        assert site.brigade(run=(run,)).returncode == 0
        assert site.report()["image"]["renewed"] == renewed
    assert plan_of(site) is not None
    (path,) = Path(site.base / "cache/images").glob("*.brg")
    told = CliRunner().invoke(explain, ["--fork", "--image", str(path), "pkg.deep.leaf"])
    assert "asks for the process's number" in told.output and told.exit_code == 0
