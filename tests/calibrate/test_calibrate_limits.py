"""A calibration keeps to what the user allows; the clients' answers are computed here."""

from __future__ import annotations

from typing import Any


from brigade.calibrate import measure, plan


class Computed(measure._Calibration):
    """A calibration whose clients are answered by a formula: one server, `service_s` a request."""

    service_s = 1e-3
    ranks = 1
    asked: list[dict[str, Any]]

    def _started(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.asked += steps
        clients = [
            {"client": number, "step": step["name"], "found": self._answered(step, number)}
            for step in steps
            for number in range(step["clients"])
        ]
        first = {"rank": 0, "host": "n0", "answers": clients}
        others = [{"rank": i, "host": f"n{i}", "answers": []} for i in range(1, self.ranks)]
        return [first, *others]

    def _answered(self, step: dict[str, Any], client: int) -> dict[str, list[list[int]]]:
        each = self.service_s * step["clients"]
        gap_s = max(each, step.get("gap_s", 0.0))

        def some(number: int, took_s: float = self.service_s) -> list[list[int]]:
            return [[int(i * gap_s * 1e9), int(took_s * 1e9)] for i in range(number)]

        if step["do"] == "load":
            return {"absent": some(step["ops"], each), "busy": [[1, 10]]}
        if step["do"] == "bursts":
            sizes = [size for _, size in step["at"]]
            return {str(i): some(1) for i, size in enumerate(sizes) if client < size}
        if step["do"] == "kinds":
            kinds = {"stat": 40, "open": 40, "read": 40, "list": 20, "link": 20}
            return {kind: some(number) for kind, number in kinds.items()}
        if step["do"] == "memory":
            names = [f"{kind} {delay}" for kind in ("files", "absent") for delay in step["delays"]]
            return {name: some(plan.PROBES) for name in names}
        return {"bytes": some(8)}


def computed(folder, limits: plan.Limits, ranks: int = 1) -> Computed:
    made = plan.plan(limits)
    launcher = ["launcher"] if ranks > 1 else []
    one = Computed(made, folder, launcher, lambda step: None)
    one.asked, one.ranks = [], ranks
    return one


def test_a_rate_that_is_reached_is_told_and_is_not_taken_for_the_servers(tmp_path):
    found = computed(tmp_path, plan.Limits(rate=700.0)).run()
    assert "allowed rate of 700" in found.stopped
    assert found.held_down and not found.fitted().reached and not found.bursts
