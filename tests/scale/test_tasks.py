"""Which requests travel together, and who is blamed when workers are lost. No Ray is needed for any of it."""

import numpy as np
import pytest

from dualrs.sampling.work import Request
from dualrs.scale.tasks import CHANCES, MOST_BYTES, MOST_REQUESTS, Supply, cut
from dualrs.votes import Part, Stage, Stream, Unit

STREAMS = [Stream(Stage.ROUTER, Part.ESTIMATION, 1.0), Stream(Stage.CLASS, Part.ESTIMATION, 1.0)]


class Work:
    """So many inputs, each with the same requests; says how many were begun."""

    def __init__(self, inputs, votes=100, shape=(1, 2, 2)):
        self.left, self.votes, self.image, self.begun = inputs, votes, np.zeros(shape, dtype=np.uint8), 0

    def more(self):
        if self.begun == self.left:
            return None
        self.begun += 1
        return asked(str(self.begun - 1), self.votes)

    def pixels(self, input_id):
        return self.image

    def deliver(self, request, counts, seconds):
        return ()

    def batch_done(self):
        pass


def asked(name, votes):
    """Requests for units of two networks with the same vote numbers."""
    starts = range(0, votes, 1000)
    return [Request(Unit(name, stream, start, min(start + 1000, votes))) for stream in STREAMS for start in starts]


def names(task):
    return list(dict.fromkeys(request.unit.input_id for request in task.requests))


def drain(supply, votes):
    found = []
    while task := supply.next_task(votes):
        found.append(task)
    return found


def test_small_requests_are_joined_to_the_size_asked_for():
    found = drain(Supply(Work(10, votes=100)), votes=600)
    assert [names(task) for task in found] == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"], ["9"]]


def test_what_was_asked_for_together_stays_together():
    for task in drain(Supply(Work(5, votes=1000)), votes=2000):
        assert sorted(task.requests) == sorted(asked(names(task)[0], 1000))


@pytest.mark.parametrize("votes", [1, 2000, 5000, 19_999, 20_000])
def test_large_requests_are_cut_between_vote_numbers_only(votes):
    parts = cut(asked("a", 10_000), votes)
    assert sorted(request for part in parts for request in part) == sorted(asked("a", 10_000))
    for part in parts:
        first, second = ({u.start for u, *_ in part if u.stream == stream} for stream in STREAMS)
        assert first == second
        assert sum(u.votes for u, *_ in part) <= max(votes, 2000)


def test_no_more_inputs_are_begun_than_a_task_needs():
    work = Work(1_000_000, votes=1)
    supply = Supply(work)
    task = supply.next_task(float("inf"))
    assert MOST_REQUESTS <= len(task.requests) < MOST_REQUESTS + 2
    assert work.begun == MOST_REQUESTS / 2


def test_images_of_a_task_are_bounded():
    work = Work(1_000, votes=1, shape=(3, 500, 500))
    Supply(work).next_task(float("inf"))
    assert work.begun * work.image.nbytes < MOST_BYTES + work.image.nbytes


def test_further_units_of_an_input_go_first():
    supply = Supply(Work(10))
    supply.next_task(1)
    further = asked("0", 300)
    supply.add(further)
    assert supply.next_task(1).requests == further


def test_lost_task_is_tried_again_in_halves_with_nothing_lost():
    supply = Supply(Work(8))
    task = supply.next_task(1600)
    supply.lost(task, alone=False, reason="killed")
    again = drain(supply, 1)
    assert [names(t) for t in again] == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
    assert sorted(r for t in again for r in t.requests) == sorted(task.requests)
    assert not any(t.suspect for t in again)


def test_only_a_single_input_that_costs_workers_alone_is_blamed():
    supply = Supply(Work(16))
    waiting, guilty, tried = [supply.next_task(3200)], "5", []
    while waiting:
        task = waiting.pop(0)
        if guilty in names(task):
            tried.append(names(task))
            supply.lost(task, alone=task.suspect, reason="killed")
        waiting += drain(supply, 1)
        while suspect := supply.next_suspect():
            assert suspect.suspect
            waiting.append(suspect)
    assert [len(t) for t in tried] == [16, 8, 4, 2] + [1] * CHANCES
    assert list(supply.failures) == [guilty]
    assert "workers were lost with it, the last because: killed" in supply.failures[guilty]
    assert supply.is_empty


def test_bad_luck_beside_others_is_no_guilt():
    supply = Supply(Work(1))
    task = supply.next_task(100)
    for _ in range(20):
        supply.lost(task, alone=False, reason="killed")
        task = supply.next_task(100) or supply.next_suspect()
    assert not supply.failures
    assert task.requests == asked("0", 100)


def test_units_of_an_input_that_was_set_aside_are_left_out():
    supply = Supply(Work(2, votes=3000))
    supply.next_task(1)
    supply.set_aside("0", "NaN")
    assert {name for task in drain(supply, 1) for name in names(task)} == {"1"}
