"""bench/cost: the models that are fitted, what counts as superlinear, the limits on memory, the plot."""

import importlib.machinery
import importlib.util
import math
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH / "tables"))
from cost_model import best, fits, power, superlinear  # noqa: E402
from log_plot import Series, render  # noqa: E402

loader = importlib.machinery.SourceFileLoader("cost", str(BENCH / "cost"))
cost = importlib.util.module_from_spec(importlib.util.spec_from_loader("cost", loader))
loader.exec_module(cost)

SIZES = (1_000, 10_000, 100_000, 1_000_000)


def run(blocks: int, **more) -> dict:
    """What scale_bench says of an iteration of so many blocks."""
    memory = {"kept_bytes": 50 * blocks, "peak_bytes": 60 * blocks, "resident_bytes": 1}
    names = ("pack, best fit", "pack, auto", "compile", "follower", "iteration 1", "planning after it", "iteration 2",
             "planning after it", "served", "served")
    return {"blocks": blocks, "steps": [{"name": name, "wall_s": 1, "cpu_s": 1e-7 * blocks * (2 if name == "served" else 1), **memory}
                                        for name in names],
            "plan_file_bytes": 17 * blocks, "plan_file_read": True, "by_script": 1.0, "ratio": 1.0, "steady_after": 2, **more}


class Models(unittest.TestCase):
    def test_exact_points_have_no_residuals(self):
        for model, shape in (("a·n", lambda n: n), ("a·n·log2 n", lambda n: n * math.log2(n))):
            found = best(fits([(n, 3e-9 * shape(n)) for n in SIZES]))
            self.assertEqual(found.model, model)
            self.assertAlmostEqual(found.factor, 3e-9)
            self.assertTrue(all(abs(residual) < 1e-9 for residual in found.residuals))

    def test_quadratic_is_found_and_is_superlinear(self):
        points = [(n, 1e-12 * n * n) for n in SIZES]
        found = best(fits(points))
        self.assertEqual(found.model, "a·n^p")
        self.assertAlmostEqual(found.exponent, 2)
        self.assertTrue(superlinear(points))
        self.assertFalse(superlinear([(n, n * math.log2(n)) for n in SIZES]))

    def test_residuals_are_measured_over_modelled(self):
        linear = fits([(10, 10), (100, 100), (1000, 4000)])[0]
        self.assertAlmostEqual(linear.factor, 4 ** (1 / 3))
        self.assertAlmostEqual(linear.residuals[2], 4 / linear.factor - 1)
        self.assertAlmostEqual(power([(1, 5), (100, 500)]).exponent, 1)


class Command(unittest.TestCase):
    def test_steps_are_added_up(self):
        slow = run(1000)
        for step in slow["steps"]:
            step["cpu_s"] *= 10
        point = cost.summarize([run(1000), slow])
        self.assertAlmostEqual(point["steps"]["planning"]["cpu_s"], 2e-4)  # two of them, of the quicker run
        self.assertAlmostEqual(point["steps"]["served"]["cpu_s"], 2e-4)  # a mean
        self.assertAlmostEqual(point["steps"]["observed"]["cpu_s"], 1e-4)
        self.assertEqual(point["steps"]["planning"]["kept_bytes"], 100_000)
        with self.assertRaises(cost.Failure):
            cost.summarize([run(1000, steady_after=-1)])

    def test_limits(self):
        self.assertEqual(cost.too_large([cost.summarize([run(100_000)])]), [])
        self.assertIn("plan file", cost.too_large([cost.summarize([run(100_000, plan_file_bytes=100_000 * 30)])])[0])
        self.assertIn("refused", cost.too_large([cost.summarize([run(100_000, plan_file_read=False)])])[0])
        self.assertIn("by script", cost.too_large([cost.summarize([run(100_000, by_script=0.99)])])[0])
        large = run(100_000)
        large["steps"][3]["kept_bytes"] = 101 * 100_000 + cost.FIXED
        self.assertIn("follower", cost.too_large([cost.summarize([large])])[0])

    def test_documents(self):
        points = [cost.summarize([run(blocks)]) for blocks in SIZES]
        rows = cost.models(points)
        lines = cost.to_csv(points, rows).splitlines()
        self.assertEqual(len(lines), 1 + len(SIZES) * len(points[0]["steps"]))
        document = {"points": points, "lives": "nested", "command": "c", "date": "2026-01-01T00:00:00Z",
                    "machine": {"processor": "p", "cores": 1, "gpu": None}, "hotpack": {"version": "v", "commit": "0" * 40}}
        text = cost.to_markdown(document, rows)
        self.assertIn("1,000,000", text)
        self.assertIn("a·n", text)
        self.assertNotIn("superlinear", text)

    def test_plot_is_xml_with_every_point(self):
        picture = ElementTree.fromstring(render("a < b", "n", "s", [Series("one & two", [(10, 1e-3), (1000, 2e-2)], lambda n: n * 1e-5),
                                                                     Series("three", [(10, 0.5)])]))
        circles = picture.findall("{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), 3)
        self.assertLess(float(circles[1].get("cy")), float(circles[0].get("cy")))  # more is higher up


if __name__ == "__main__":
    unittest.main()
