"""Which page goes: the kernel's two lists, the strict queue, and how far is read ahead."""

from __future__ import annotations

import random

import pytest

from brigade.model.cache import readahead
from brigade.model.cache.lists import Chunk, Fifo, Lists, TwoLists


def chunks(number: int) -> list[Chunk]:
    return [Chunk("a", index, 10) for index in range(number)]


def filled(lists: Lists, number: int) -> list[Chunk]:
    made = chunks(number)
    for one in made:
        lists.add(one, by_read=True)
    return made


def order(lists: Lists) -> list[int]:
    found = []
    while (one := lists.victim()) is not None:
        found.append(one.index)
    return found


def test_first_in_is_first_out_whatever_is_read_meanwhile() -> None:
    queue = Fifo()
    made = filled(queue, 20)
    chance = random.Random(1)
    for _ in range(100):
        queue.touch(chance.choice(made))
    assert order(queue) == list(range(20))


def test_a_queue_waits_for_its_oldest_to_be_written() -> None:
    queue = Fifo()
    made = filled(queue, 3)
    made[0].dirty = 1
    assert queue.victim() is None
    made[0].dirty = 0
    assert order(queue) == [0, 1, 2]


def test_what_was_read_once_goes_in_order() -> None:
    lists = TwoLists()
    for one in filled(lists, 20):
        lists.touch(one)
    assert order(lists) == list(range(20))


def test_what_was_read_twice_goes_last() -> None:
    lists = TwoLists()
    made = filled(lists, 20)
    for one in made[5:8]:
        lists.touch(one)
        lists.touch(one)
    assert order(lists)[-3:] == [5, 6, 7]


def test_no_more_than_half_is_kept_active() -> None:
    lists = TwoLists()
    made = filled(lists, 20)
    for one in made:
        lists.touch(one)
        lists.touch(one)
    assert lists.active_bytes == 200
    assert lists.victim() is made[0], "the first that became active"
    assert lists.active_bytes <= lists.inactive_bytes + 10


def test_with_gibibytes_more_may_be_active() -> None:
    lists = TwoLists()
    made = [Chunk("a", index, 1 << 30) for index in range(10)]
    for one in made:
        lists.add(one, by_read=True)
    for one in made[:9]:
        lists.touch(one)
        lists.touch(one)
    assert lists.victim() is made[9]
    assert lists.active_bytes == 9 << 30, "ten times as much may be active"


def test_what_is_dirty_never_goes_and_is_first_when_it_is_written() -> None:
    lists = TwoLists()
    made = filled(lists, 6)
    made[0].dirty = made[2].writing = 1
    assert lists.victim() is made[1]
    assert made[0].active
    made[0].dirty = 0
    lists.written(made[0])
    assert lists.victim() is made[0]
    assert lists.victim() is made[3]
    assert order(lists) == [4, 5]
    assert lists.victim() is None and made[2].key in lists.active


def test_what_comes_back_soon_is_active_at_once() -> None:
    def comes_back(active: int, gone: int) -> bool:
        lists = TwoLists()
        made = filled(lists, 40)
        for one in made[:active]:
            lists.touch(one)
            lists.touch(one)
        victims = [lists.victim() for _ in range(gone)]
        first = victims[0]
        assert first is not None
        lists.add(first, by_read=True)
        return first.active

    assert comes_back(active=10, gone=10)
    assert not comes_back(active=10, gone=15)


@pytest.mark.parametrize("seed", range(5))
def test_bytes_on_the_lists_are_those_of_their_chunks(seed: int) -> None:
    chance, lists, there, number = random.Random(seed), TwoLists(), [], 0
    for _ in range(500):
        what = chance.random()
        if what < 0.4 or not there:
            there.append(Chunk("a", number, chance.randint(1, 9)))
            lists.add(there[-1], by_read=chance.random() < 0.5)
            number += 1
        elif what < 0.7:
            lists.touch(chance.choice(there))
        elif what < 0.8:
            lists.remove(there.pop(chance.randrange(len(there))))
        elif (one := lists.victim()) is not None:
            there.remove(one)
        assert sum(c.bytes for c in there if c.active) == lists.active_bytes
        assert sum(c.bytes for c in there if not c.active) == lists.inactive_bytes
        assert len(lists.active) + len(lists.inactive) == len(there)


def test_windows_double_until_the_most() -> None:
    most, window, found = 128 << 10, readahead.first(4096, 128 << 10), []
    for _ in range(5):
        found.append(window >> 10)
        window = readahead.following(window, most)
    assert found == [16, 32, 64, 128, 128]
    assert readahead.first(1 << 20, most) == most
    assert readahead.first(16 << 10, most) == 32 << 10


def test_a_sequential_read_takes_its_bytes_and_a_latency_a_window() -> None:
    took, window = readahead.seconds(1 << 20, 128 << 10, 128 << 10, 100e6, 0.001)
    assert took == pytest.approx((1 << 20) / 100e6 + 8 * 0.001)
    assert window == 128 << 10
    took, window = readahead.seconds(48 << 10, 16 << 10, 128 << 10, 100e6, 0.001)
    assert took == pytest.approx((48 << 10) / 100e6 + 2 * 0.001)
    assert window == 64 << 10
