"""Optimizer state that leaves and comes back while a pass runs: never above the room, and with the values of plain steps whatever the
program does with it in between."""

import contextlib
import copy
import io
import os
import pickle
import random
import unittest
from unittest import mock

import torch
from budget import training
from budget.training import budget
from hotpack._budget import paging
from hotpack._budget.clock import Rates
from hotpack._budget.paged_state import PagedState
from hotpack._budget.paging import Pager
from hotpack._budget.state_moves import Moving, moves_within
from hotpack._budget.timeline import StateMoves, Timeline

torch.set_num_threads(1)
SEED = int(os.environ.get("HOTPACK_TEST_SEED", "11"))


class MovesTest(unittest.TestCase):
    def test_they_have_room_and_the_links_time(self):
        draw, moved, hidden = random.Random(SEED), 0, 0
        for number in range(400):
            turn = draw.randrange(1, 20)
            count = turn + draw.randrange(1, 20)
            timeline = Timeline([draw.choice((0.0, draw.random())) for _ in range(count)],
                                Rates(draw.choice((20.0, 300.0)), draw.choice((20.0, 300.0)), True), 0.0)
            room, load = 100, [draw.randrange(0, 111) for _ in range(count)]
            moving = Moving(draw.randrange(1, 120), draw.randrange(-5, 130), draw.random())
            back = sorted((draw.randrange(turn, count), draw.randrange(1, 30)) for _ in range(draw.randrange(4)))
            found = moves_within(room, load, timeline, turn, back, moving)
            if found is None:
                continue
            said = f"HOTPACK_TEST_SEED={SEED} number {number}"
            moved += 1
            self.assertEqual((len(found.stays), len(found.comes)), (count, count), said)
            for position, size in enumerate(load):
                there = found.stays[position] + found.comes[position]
                self.assertLessEqual(there, found.room[position], said)
                self.assertLessEqual(found.room[position], max(0, room - size), said)
            self.assertEqual(found.stays, sorted(found.stays, reverse=True), said)
            self.assertEqual(found.comes, sorted(found.comes), said)
            self.assertEqual(set(found.comes[:turn]) | set(found.stays[turn:]), {0}, said)
            self.assertLessEqual(max(found.stays + found.comes), min(moving.outside, moving.bytes), said)
            self.assertTrue(0 <= found.exposed <= moving.seconds, said)
            come, brought = found.comes[-1], sum(size for _, size in back)
            seconds = sum(timeline.durations[turn:])
            self.assertLessEqual(come, seconds * timeline.rates.back, said)
            hidden += come > 0 and come + brought < seconds * timeline.rates.back
        self.assertGreater(moved, 100)
        self.assertGreater(hidden, 30)

    def test_what_hides_is_not_in_the_way(self):
        """An idle device: all moves beside the pass."""
        timeline = Timeline([1.0] * 10, Rates(100.0, 100.0, True), 0.0)
        load = [10, 10, 10, 10, 100, 100, 10, 10, 10, 10]
        found = moves_within(100, load, timeline, 5, [], Moving(80, 80, 3.0))
        self.assertEqual((found.stays[0], found.comes[-1], found.exposed), (80, 80, 0.0))
        self.assertEqual((found.stays[4], found.comes[5]), (0, 0))
        self.assertEqual(timeline.seconds([], [], [], {}, {}, found), 10.0)
        found = moves_within(100, load, timeline, 5, [], Moving(80, 20, 3.0))  # little room while the optimizer steps
        self.assertAlmostEqual(found.exposed, 3.0 * 60 / 80)
        self.assertIsNone(moves_within(100, [100] * 10, timeline, 5, [], Moving(80, 80, 3.0)))
        slow = Timeline([1.0] * 10, Rates(10.0, 10.0, True), 0.0)
        found = moves_within(100, load, slow, 5, [], Moving(80, 80, 3.0))  # the host's link is too slow for all
        self.assertEqual(slow.seconds([], [], [], {}, {}, found), 10.0)
        self.assertEqual((found.stays[0], found.comes[-1]), (32, 32))
        self.assertAlmostEqual(found.exposed, 3.0 * 48 / 80)


class Copying:
    """An event: the host's tensor is whole when someone has waited for it."""

    def __init__(self, state, name):
        self.state, self.name = state, name

    def synchronize(self):
        dict.__setitem__(self.state, self.name, "whole")


class PagedStateTest(unittest.TestCase):
    def test_whoever_reads_waits_for_the_copies(self):
        ways = {
            "[]": lambda state: state["a"], "get": lambda state: state.get("a"), "items": lambda state: dict(state.items())["a"],
            "values": lambda state: next(iter(state.values())), "pop": lambda state: state.pop("a"), "dict": lambda state: dict(state)["a"],
            "popitem": lambda state: state.popitem()[1], "setdefault": lambda state: state.setdefault("a", 0),
            "**": lambda state: {**state}["a"], "|": lambda state: (state | {})["a"], "r|": lambda state: ({} | state)["a"],
            "update": lambda state: [other := {}, other.update(state)][0]["a"], "copy": lambda state: state.copy()["a"],
            "copy.copy": lambda state: copy.copy(state)["a"], "deepcopy": lambda state: copy.deepcopy(state)["a"],
            "pickle": lambda state: pickle.loads(pickle.dumps(state))["a"], "match": lambda state: next(v for k, v in state.items() if k == "a"),
        }
        for name, way in ways.items():
            with self.subTest(way=name):
                state = PagedState({"a": "torn"})
                state.events.append(Copying(state, "a"))
                self.assertEqual(dict.get(state, "a"), "torn")
                self.assertEqual(way(state), "whole")
                self.assertEqual(state.events, [])
        state = PagedState({"a": "torn"})
        state.events.append(Copying(state, "a"))
        self.assertEqual((len(state), "a" in state, list(state)), (1, True, ["a"]))  # names need no values
        self.assertEqual(len(state.events), 1)
        self.assertIn("whole", repr(state))
        state.events.append(Copying(state, "a"))
        self.assertTrue(state == {"a": "whole"})

    def test_what_is_saved_is_a_plain_dict(self):
        self.assertIs(type(pickle.loads(pickle.dumps(PagedState({"a": 1})))), dict)
        self.assertIs(type(copy.deepcopy(PagedState({"a": 1}))), dict)
        model = Network()
        with budget("30%", slice_bytes=5000):
            updates = torch.optim.Adam(model.parameters())
            for _ in range(2):
                model(torch.randn(16, 32)).backward()
                updates.step()
            self.assertIn(PagedState, {type(state) for state in updates.state.values()})
            saved = updates.state_dict()
            self.assertEqual({type(state) for state in saved["state"].values()}, {dict})
            file = io.BytesIO()
            torch.save(saved, file)
            file.seek(0)
            self.assertEqual(set(torch.load(file, weights_only=True)["state"]), set(range(10)))


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*[part for _ in range(5) for part in (torch.nn.Linear(32, 32), torch.nn.Tanh())])

    def forward(self, x):
        return self.layers(x).pow(2).mean()


class PagesTest(unittest.TestCase):
    """On the CPU, whose copies are as early as they begin."""

    def trained(self, within, between=None, before=None, parts=1, kind=torch.optim.Adam):
        """All values left by 12 steps. between(updates, step): after a step; before(updates, step): before one."""
        torch.manual_seed(5)
        model = Network()
        draw = random.Random(SEED)
        batches = [torch.randn(16, 32, generator=torch.Generator().manual_seed(number)) for number in range(12)]
        left, early = [], 0
        with budget(within, slice_bytes=5000) as session:
            updates = kind(model.parameters(), lr=1e-2)
            self.found = session
            if session is not None:
                session._pager.early = True
            for step, batch in enumerate(batches):
                for part in batch.chunk(parts):
                    model(part).backward()
                if session is not None:
                    pages = session._pager._pages.get(updates)
                    early += pages is not None and pages.ahead_bytes > 0
                if before is not None:
                    before(updates, step)
                updates.step()
                updates.zero_grad()
                if session is not None:
                    self.plan(session, draw)
                if between is not None:
                    between(updates, step)
                left += [p.detach().clone() for p in model.parameters()]
                left += [value.clone() for entry in copy.deepcopy(updates.state_dict())["state"].values() for value in entry.values()]
        return left, early, session

    @contextlib.contextmanager
    def adam(self):
        torch.manual_seed(5)
        model = Network()
        with budget("30%") as session:
            session._pager.early = True
            yield session, model, torch.optim.Adam(model.parameters())

    @staticmethod
    def plan(session, draw):
        """State moves as drawn: earlier and later than any plan would have it."""
        session._pager.room = draw.choice((0, 3000, 30000, 1 << 20))
        session._pager.after = draw.choice((0, session._pager.room))
        for kind in session._kinds.all:
            if kind.plan is not None:
                count = 2 * len(kind.items) + 1
                stays = sorted((draw.randrange(60000) for _ in range(count)), reverse=True)
                comes = sorted(draw.randrange(-40000, 60000) for _ in range(count))
                kind.plan.state = StateMoves(stays, comes, [draw.randrange(60000) for _ in range(count)], 0.0)

    def equal(self, **options):
        plain, _, _ = self.trained(None, **options)
        left, early, session = self.trained("30%", **options)
        self.assertTrue(training.same(plain, left))
        self.assertGreater(session._pager.moved, 0)
        return early

    def test_equal_bits(self):
        self.assertGreater(self.equal(), 4)
        self.assertGreater(self.equal(kind=torch.optim.RMSprop), 4)

    def test_fetched_in_the_last_pass_of_a_step(self):
        self.assertGreater(self.equal(parts=2), 4)

    def test_a_program_that_changes_the_state(self):
        """In place, or by a tensor of its own, after a step and right before one."""

        def change(updates, step):
            entries = [entry for entry in updates.state.values() if entry]
            for entry in entries[step % 3::3]:
                with torch.no_grad():
                    entry["exp_avg"].mul_(0.5)
                    if step % 2:
                        entry["exp_avg_sq"] = entry["exp_avg_sq"].clone().add_(1e-3)

        self.assertGreater(self.equal(between=change), 4)
        self.assertGreater(self.equal(before=change), 4)

    def test_state_that_is_loaded_again(self):
        def load(updates, step):
            if step % 3 == 1:
                updates.load_state_dict(copy.deepcopy(updates.state_dict()))

        self.assertGreater(self.equal(between=load), 2)
        self.assertGreater(self.equal(before=load), 2)

    def test_steps_that_are_left_out(self):
        """What was fetched for them goes again."""
        with self.adam() as (session, model, updates):
            for step in range(8):
                model(torch.randn(16, 32)).backward()
                updates.step()
                self.plan(session, random.Random(step))
            session.saves.last_pass = 1
            for kind in session._kinds.all:
                if kind.plan is not None:
                    kind.plan.state = StateMoves([0] * 99, [1 << 20] * 99, [1 << 20] * 99, 0.0)
            pages = session._pager._pages[updates]
            model(torch.randn(16, 32)).backward()
            self.assertGreater(pages.ahead_bytes, 0)
            model(torch.randn(16, 32))
            self.assertEqual((pages.ahead_bytes, pages.ahead), (0, {}))

    def test_an_evaluation_has_the_memory(self):
        plain = torch.nn.Module.train
        with self.adam() as (session, model, updates):
            for _ in range(4):
                model(torch.randn(16, 32)).backward()
                session._pager.room = session._pager.after = 1 << 20
                updates.step()
            self.assertGreater(session._pager._waiting, 0)
            model.eval()
            self.assertEqual(session._pager._waiting, 0)
            on_host = session._pager._pages[updates].host
            self.assertEqual(len(on_host), 10)
            for (parameter, name), host in on_host.items():
                self.assertIs(next(entry for of, entry in updates.state.items() if id(of) == parameter)[name], host)
            model.train()
            self.assertIsNot(torch.nn.Module.train, plain)
        self.assertIs(torch.nn.Module.train, plain)

    def test_steps_are_whole_where_all_state_stays_and_there_is_room(self):
        plain, _, _ = self.trained(None)
        slices = []

        def room(updates, step):
            found = self.found
            slices.append(found._slices.calls)
            found._pager.resident, found._pager.together = (None, (step > 5) << 20) if step > 3 else (0, 1 << 20)

        left, _, session = self.trained("30%", between=room)
        self.assertTrue(training.same(plain, left))
        self.assertEqual(len(set(slices[7:])), 1)  # no slice any more: the first step without moves brought the state back
        self.assertEqual(slices[:7], sorted(set(slices[:7])))

    def test_copies_of_what_may_stay_begin_with_the_next_pass(self):
        """Else a program that reads its loss after the step would wait for them. None begins if no pass does."""
        pager = Pager(torch, "cpu")
        pager.early, pager.room, pager.after = True, 1 << 20, 6000
        parameters = [torch.nn.Parameter(torch.zeros(1000)) for _ in range(3)]
        updates = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        parts = [[parameter] for parameter in parameters]
        for _ in range(2):
            idle = []
            pager.begin(updates, parts)
            for part in parts:
                pager.bring(updates, part)
                updates.state[part[0]]["momentum_buffer"] = torch.ones(1000)
                pager.send(updates, part)
                idle.append(pager._idle_bytes)
            moved = pager.moved
            pager.end(updates)
            self.assertEqual((pager._waiting, pager._idle_bytes), (8000, 4000))
        self.assertEqual(idle, [0, 0, 4000])  # the link has work meanwhile
        self.assertEqual((moved, pager.moved), (16000, 16000))  # two of three, in each step: the third stayed in between
        pager.let_stay(8000, 8000)
        self.assertEqual((pager.moved, pager._waiting), (20000, 8000))
        updates.state[parameters[2]]["momentum_buffer"].fill_(2)  # changed since
        self.assertEqual(self.marked(pager, lambda: pager.let_stay(0)), [parameters[2]])  # its copy comes behind that
        self.assertEqual((pager.moved, pager._waiting), (24000, 0))
        self.assertEqual([int(updates.state[parameter]["momentum_buffer"][0]) for parameter in parameters], [1, 1, 2])

    @staticmethod
    def marked(pager, work):
        """Parameters whose copies wait for more than their update's stream had then."""
        found = []
        plain = pager._mark_ready

        def mark(sent):
            found.extend(parameter for optimizer, pages in pager._pages.items() for parameter in optimizer.state
                         for each in sent if each.state is optimizer.state[parameter])
            plain(sent)

        with mock.patch.object(pager, "_mark_ready", mark):
            work()
        return found

    def test_a_change_before_the_copy_begins(self):
        """The copy waits for it, and none of it is lost."""
        pager = Pager(torch, "cpu")
        pager.early, pager.room, pager.after = True, 1 << 20, 1 << 20
        parameters = [torch.nn.Parameter(torch.zeros(1000)) for _ in range(2)]
        updates = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        pager.begin(updates, [parameters])
        for parameter in parameters:
            updates.state[parameter]["momentum_buffer"] = torch.ones(1000)
        pager.send(updates, parameters)
        pager.end(updates)
        self.assertEqual(pager._idle_bytes, 8000)
        updates.state[parameters[1]]["momentum_buffer"].fill_(3)
        self.assertEqual(self.marked(pager, lambda: pager.let_stay(8000, 8000)), [parameters[1]])
        self.assertEqual(self.marked(pager, lambda: pager.let_stay(0)), [])
        self.assertEqual([int(updates.state[parameter]["momentum_buffer"][0]) for parameter in parameters], [1, 3])

    def test_the_smallest_tensors_stay(self):
        self.assertEqual([paging._least(sizes) for sizes in ([], [4096] * 512, [100] + [51200] * 2)], [0, 4096, 51200])
        pager = Pager(torch, "cpu")
        parameters = [torch.nn.Parameter(torch.zeros(size)) for size in (300, 100000, 301, 100000)]
        updates = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
        on_host = []
        for _ in range(3):
            pager.begin(updates, [parameters])
            pager.bring(updates, parameters)
            for parameter in parameters:
                updates.state[parameter]["momentum_buffer"] = torch.ones_like(parameter)
            pager.send(updates, parameters)
            pager.end(updates)
            on_host.append(len(pager._pages[updates].host))
            self.assertEqual(pager.state_bytes[updates], 800000)
        self.assertEqual(on_host, [4, 2, 2])

    def test_slices_whose_state_stays_are_one_as_far_as_there_is_room(self):
        with self.adam() as (session, model, updates):
            for _ in range(3):
                model(torch.randn(16, 32)).backward()
                session._pager.resident = 1 << 20
                updates.step()
            slices = list(session._slices._slices(updates))
            self.assertGreater(len(slices), 3)
            self.assertEqual(session._slices._together(updates), slices)
            sizes = [sum(4 * parameter.numel() for parameter in part) for _, part in slices]
            session._pager.together = sizes[0] + sizes[1] + 4
            joined = session._slices._together(updates)
            self.assertEqual([id(each) for _, part in joined for each in part], [id(each) for _, part in slices for each in part])
            self.assertEqual(sum(4 * parameter.numel() for parameter in joined[0][1]), sizes[0] + sizes[1])
            self.assertLess(len(joined), len(slices))
            session._pager._pages[updates].host[id(slices[1][1][0]), "exp_avg"] = None
            self.assertEqual(session._slices._together(updates)[0], slices[0])

    def test_two_optimizers_have_their_own(self):
        """The step of one leaves the other's state on its way."""
        pager = Pager(torch, "cpu")
        pager.early, pager.room, pager.after = True, 1 << 20, 1 << 20
        parameters = [torch.nn.Parameter(torch.zeros(1000)) for _ in range(2)]
        both = [torch.optim.SGD([parameter], lr=0.1, momentum=0.9) for parameter in parameters]
        for updates, parameter in zip(both, parameters):
            updates.state[parameter]["momentum_buffer"] = torch.ones(1000)
            pager.begin(updates, [[parameter]])
            pager.send(updates, [parameter])
            pager.end(updates)
        self.assertEqual(pager._waiting, 8000)
        pager.begin(both[0], [[parameters[0]]])
        self.assertEqual(pager._waiting, 4000)
        pager.let_stay(0)
        self.assertIs(both[1].state[parameters[1]]["momentum_buffer"],
                      pager._pages[both[1]].host[id(parameters[1]), "momentum_buffer"])


if __name__ == "__main__":
    unittest.main()
