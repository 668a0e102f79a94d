"""By its pulses a process is known to live, to have ended, or to be lost."""

from __future__ import annotations

import pytest

from brigade.errors import UsageError
from brigade.job.pulse import Pulses, patience


def started(*ranks: int, size: int = 3, counted: bool = True) -> Pulses:
    pulses = Pulses(8.0, counted)
    for rank in ranks:
        assert pulses.hear(f"pulse {rank} {size} n{rank}\n")
    return pulses


def ticks(pulses: Pulses, seconds: float, *alive: int, size: int = 3) -> str | None:
    """Half-second steps, in which the `alive` go on; the verdict, once there is one."""
    for _ in range(round(seconds * 2)):
        why = pulses.tick(0.5)
        if why:
            return why
        for rank in alive:
            pulses.hear(f"pulse {rank} {size} n{rank}")
    return None


def test_a_step_that_never_speaks_is_silent_after_the_patience() -> None:
    assert ticks(Pulses(8.0), 8.0) is None
    assert ticks(Pulses(8.0), 9.0) == "it was silent for 8 s"


def test_any_word_ends_the_silence() -> None:
    pulses = Pulses(8.0)
    assert ticks(pulses, 7.5) is None
    assert not pulses.hear("srun: Job step creation temporarily disabled, retrying")
    assert ticks(pulses, 7.5) is None


def test_a_process_that_goes_silent_is_named_though_others_speak() -> None:
    pulses = started(0, 1, 2)
    assert ticks(pulses, 4.0, 0, 2) is None
    assert ticks(pulses, 1.0, 0, 2) == "no word from n1 for 4 s"
    for rank in (0, 2):
        assert pulses.any_heard
        pulses.hear(f"pulse {rank} 3 n{rank} end")
    assert pulses.any_live and not pulses.any_heard, "there is nobody left to wait for"


def test_a_process_that_has_ended_is_not_missed() -> None:
    pulses = started(0, 1, 2)
    assert pulses.hear("1: pulse 1 3 n1 end")  # srun --label
    assert ticks(pulses, 60.0, 0, 2) is None
    assert pulses.any_live
    for rank in (0, 2):
        pulses.hear(f"pulse {rank} 3 n{rank} end")
    assert not pulses.any_live


def test_a_process_that_never_starts_is_missed() -> None:
    assert ticks(started(0, 1), 6.0, 0, 1) is None
    assert ticks(started(0, 1), 7.0, 0, 1) == "only 2 of 3 nodes had started it after 6 s"
    assert ticks(started(0, 1, 2), 60.0, 0, 1, 2) is None
    assert ticks(started(0, counted=False), 60.0, 0) is None, "the number is another launcher's"


def test_a_late_start_is_waited_for_while_others_start() -> None:
    pulses = started(0, size=9)
    for rank in range(1, 9):
        assert ticks(pulses, 5.0, *range(rank), size=9) is None
        pulses.hear(f"pulse {rank} 9 n{rank}")
    assert ticks(pulses, 60.0, *range(9), size=9) is None


def test_patience_grows_with_the_ranks_and_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BRIGADE_PATIENCE", raising=False)
    assert patience(None) == patience(0) == 8.0
    assert patience(60_000) == 68.0
    monkeypatch.setenv("BRIGADE_PATIENCE", "30")
    assert patience(60_000) == 30.0
    monkeypatch.setenv("BRIGADE_PATIENCE", "")
    assert patience(0) == 8.0
    for wrong in ("soon", "nan"):
        monkeypatch.setenv("BRIGADE_PATIENCE", wrong)
        with pytest.raises(UsageError, match=f"BRIGADE_PATIENCE={wrong}"):
            patience(0)
