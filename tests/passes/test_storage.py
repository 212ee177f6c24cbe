"""Tests of the placement algorithm of the memory planner."""

from __future__ import annotations

import time
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from relvm.passes.memory import arena_allocator
from relvm.passes.memory.arena_allocator import Arena, Request, align, lower_bound, plan_arena


@st.composite
def requests(draw: st.DrawFn) -> list[Request]:
    made = []
    for i in range(draw(st.integers(0, 40))):
        first = draw(st.integers(-5, 60))
        size = draw(st.one_of(st.integers(0, 300), st.integers(0, 10**6)))
        last = first + draw(st.integers(0, 20))
        made.append(Request(str(i), size, first, last, draw(st.sampled_from((1, 4, 8, 64, 96, 4096)))))
    return made


def pairs_that_overlap(arena: Arena) -> list[tuple[str, str]]:
    placed = list(zip(arena.requests, arena.offsets, strict=True))
    return [
        (a.name, b.name)
        for i, (a, x) in enumerate(placed)
        for b, y in placed[:i]
        if a.first <= b.last and b.first <= a.last and x < y + b.size_bytes and y < x + a.size_bytes
    ]


@given(requests(), st.sampled_from((0, 10, 1_000_000)))
@settings(max_examples=300)
def test_every_plan_is_a_plan(wanted: list[Request], neighbors: int) -> None:
    with mock.patch.object(arena_allocator, "_NEIGHBORS", neighbors):
        arena = plan_arena(wanted)
    assert arena.requests == tuple(wanted)
    assert pairs_that_overlap(arena) == []
    assert all(x >= 0 and x % r.alignment == 0 for r, x in zip(wanted, arena.offsets, strict=True))
    assert arena.size_bytes == max((x + r.size_bytes for r, x in zip(wanted, arena.offsets, strict=True)), default=0)
    assert arena.lower_bound_bytes <= arena.size_bytes


@given(requests())
@settings(max_examples=100)
def test_the_lower_bound_is_the_most_alive_at_one_point(wanted: list[Request]) -> None:
    points = range(-6, 90)
    alive = [sum(r.size_bytes for r in wanted if r.first <= point <= r.last) for point in points]
    assert lower_bound(wanted) == max(alive)


@given(requests())
@settings(max_examples=30)
def test_the_same_requests_give_the_same_plan(wanted: list[Request]) -> None:
    assert plan_arena(wanted) == plan_arena(wanted)


def test_no_request() -> None:
    assert plan_arena([]) == Arena((), (), 0, 0)
    assert plan_arena([]).ratio == 1.0


def test_lifetimes_apart_share_and_lifetimes_that_touch_do_not() -> None:
    apart = [Request("a", 100, 0, 1), Request("b", 100, 2, 3)]
    assert plan_arena(apart).offsets == (0, 0)
    touching = [Request("a", 100, 0, 2), Request("b", 100, 2, 3)]
    assert sorted(plan_arena(touching).offsets) == [0, 128]


def test_another_order_is_found_where_the_first_wastes_room() -> None:
    # In order of size: a (6) and b (5) are at 0, c (4) is above a, and d (4) is above b and c, which takes 14 bytes.
    # If c and d are placed at 0 first, 10 bytes are enough.
    wanted = [
        Request("a", 6, 0, 1, 1),
        Request("b", 5, 3, 4, 1),
        Request("c", 4, 1, 2, 1),
        Request("d", 4, 2, 3, 1),
    ]
    assert plan_arena(wanted).size_bytes == lower_bound(wanted) == 10


def test_chains_as_models_have_them_need_little_more_than_the_lower_bound() -> None:
    import random

    worst = 0.0
    for seed in range(40):
        rng = random.Random(seed)
        wanted = []
        for i in range(150):
            lasts = i + rng.choice((1, 1, 1, 2, 3, 12))
            wanted.append(Request(str(i), align(rng.choice((4, 1 << 10, 1 << 12, 3 << 12, 1 << 16))), i, lasts))
        worst = max(worst, plan_arena(wanted).ratio)
    assert worst < 1.05


def test_ten_thousand_requests_take_seconds_at_most() -> None:
    wanted = [Request(str(i), 64 * (1 + i * 7919 % 500), i, i + 1 + 3 * (i % 7 == 0)) for i in range(10_000)]
    started = time.process_time()
    arena = plan_arena(wanted)
    assert time.process_time() - started < 30
    assert arena.ratio < 1.3


def test_many_requests_at_once_take_seconds_at_most() -> None:
    wanted = [Request(str(i), 64 * (1 + i * 7919 % 500), 0, i) for i in range(20_000)]
    started = time.process_time()
    arena = plan_arena(wanted)
    assert time.process_time() - started < 30
    assert arena.ratio == 1
