#!/usr/bin/env python3
"""The report page in headless Chromium: page_test.py HOTPACK WRITE_REPORT_SAMPLE

Exit code 77 (skipped) where no Chromium or no chromedriver is there.
"""

import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

from webdriver import Browser, find_browser

HOTPACK, SAMPLE = sys.argv[1:3] if len(sys.argv) > 2 else ("", "")
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data")
SCRATCH = tempfile.TemporaryDirectory(prefix="hotpack-report-")
MANY = 100_000


def path(name):
    return os.path.join(SCRATCH.name, name)


def report(recording, name, *options):
    subprocess.run([HOTPACK, "report", recording, "--force", "--out", path(name), *options], check=True, stderr=subprocess.DEVNULL)
    return path(name)


def write_csv(name, events):
    with open(path(name), "w") as file:
        file.write("event,id,bytes\n")
        file.writelines(f"{kind},{block},{size}\n" for kind, block, size in events)
    return path(name)


def never_repeats(count):
    """Requests of drawn sizes, each released at a drawn time: most live shortly, some for long."""
    draw, events, releases = random.Random(7), [], {}
    for i in range(count):
        events.append(("alloc", i, 512 * draw.randrange(1, 4000)))
        releases.setdefault(i + 1 + int(draw.expovariate(1 / draw.choice([3, 30, 3000]))), []).append(i)
        events += [("free", block, "") for block in releases.pop(i, [])]
    return events


class BrowserTest(unittest.TestCase):
    def test_a_test_that_is_killed_leaves_no_browser(self):
        program = "from webdriver import Browser; browser = Browser(); print(browser.home.name, flush=True); import time; time.sleep(600)"
        killed = subprocess.Popen([sys.executable, "-c", program], cwd=os.path.dirname(os.path.abspath(__file__)), stdout=subprocess.PIPE, text=True)
        home = killed.stdout.readline().strip()
        killed.stdout.close()
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)

        def running():
            found = 0
            for path in glob.glob("/proc/[0-9]*/cmdline"):
                try:
                    with open(path, "rb") as file:
                        found += os.fsencode(home) in file.read()
                except OSError:  # it has ended meanwhile
                    pass
            return found

        self.assertGreater(running(), 0)
        killed.kill()
        killed.wait()
        deadline = time.monotonic() + 60
        while running() > 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(running(), 0)


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(1280, 800)
        cls.addClassCleanup(cls.browser.close)
        subprocess.run([SAMPLE, path("sample.html")], check=True)
        cls.sample = path("sample.html")
        cls.mlp = report(os.path.join(DATA, "mlp-adam.trace"), "mlp.html")

    def show(self, file):
        self.browser.size(1280, 800)
        self.browser.open(file)
        self.browser.run("localStorage.clear()")
        self.browser.open(file)
        self.browser.frame()

    def tearDown(self):
        self.assertEqual(self.browser.log(), [], "the browser's console is empty")

    def js(self, script, *arguments):
        return self.browser.run("const {figure, blocks, curves, data, controls} = window.hotpackReport; " + script, *arguments)

    def view(self):
        return self.js("return {t0: figure.view.t0, t1: figure.view.t1, o0: figure.view.o0, o1: figure.view.o1, ...figure.raster.stats}")

    def middle(self, block):
        """Where the block's middle is in the window."""
        return self.js("""
            const box = figure.stage.getBoundingClientRect(), i = arguments[0];
            return [box.left + figure.x((blocks.begin[i] + blocks.end[i]) / 2), box.top + figure.y(blocks.offset[i] + blocks.size[i] / 2)]""", block)

    def largest(self):
        return self.js("let best = 0; for (let i = 0; i < blocks.count; ++i) if (blocks.size[i] > blocks.size[best]) best = i; return best")

    def test_every_block_is_drawn_where_it_is(self):
        self.show(self.mlp)
        seen = self.js("""
            const pixels = figure.raster, result = [];
            for (let i = 0; i < blocks.count; ++i) {
              const x = Math.floor(((blocks.begin[i] + blocks.end[i]) / 2 - figure.view.t0) / (figure.view.t1 - figure.view.t0) * pixels.width);
              const y = Math.floor((figure.view.o1 - blocks.offset[i] - blocks.size[i] / 2) / (figure.view.o1 - figure.view.o0) * pixels.height);
              const palette = figure.palette, entry = figure.colours.of[i], pixel = pixels.pixels[y * pixels.width + x];
              result.push([pixel === palette.fill[entry] || pixel === palette.edge[entry], blocks.size[i] / (figure.view.o1 - figure.view.o0) * pixels.height]);
            }
            return result""")
        self.assertEqual(self.view()["drawn"], self.js("return blocks.count + blocks.end2.filter((e) => e > 0).length"))
        self.assertEqual(len(seen), self.js("return data.figures.blocks"))
        for right, height in seen:
            self.assertTrue(right or height < 2, "a block of two pixels or more has its colour in its middle")
        self.assertGreater(sum(right for right, _ in seen), len(seen) / 2)

    def test_hover_tells_what_is_known_of_a_block(self):
        self.show(self.sample)
        block = self.largest()
        self.browser.move(*self.middle(block))
        tip = self.browser.run("const tip = document.getElementById('tip'); return [tip.hidden, tip.innerText]")
        self.assertFalse(tip[0])
        for words in ("λ 0", "4.0 MiB (4\u202f194\u202f304 bytes)", "[0, 8)", "k_forward", "k_backward<float>", "step / forward", "loss() (train.py:7)"):
            self.assertIn(words, tip[1])
        self.assertNotIn("train.py:1)", tip[1], "a tooltip has the innermost frame alone")
        self.assertIn("clock ", self.browser.run("return document.getElementById('readout').textContent"))
        self.browser.click(*self.middle(block))
        self.assertIn("train.py:1", self.browser.run("return document.getElementById('detail').innerText"))
        self.browser.move(3, 3)
        self.assertTrue(self.browser.run("return document.getElementById('tip').hidden"))

    def test_the_facts_are_beside_the_picture_and_above_the_fold(self):
        self.show(self.sample)
        boxes = "return ['stage', 'detail'].map(id => { const b = document.getElementById(id).getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; })"
        for width, height in ((1400, 900), (1000, 800)):
            self.browser.size(width, height)
            self.js("controls.hold(-1)")
            self.browser.frame()
            wide = self.js("return figure.stage.clientWidth")
            self.js("window.scrollTo(0, 0); controls.hold(arguments[0])", self.largest())
            self.browser.frame()
            stage, detail = self.browser.run(boxes)
            self.assertGreaterEqual(detail[0], stage[2], "to the right of the picture")
            self.assertAlmostEqual(detail[1], stage[1], delta=2)
            self.assertLess(detail[1], height - 200, "its beginning is to be seen")
            self.assertLessEqual(detail[3] - detail[1], stage[3] - stage[1] + 2, "long facts scroll")
            self.assertLess(self.js("return figure.stage.clientWidth"), wide)
            self.assertLessEqual(detail[2], width)
        self.browser.size(700, 800)
        self.browser.frame()
        stage, detail = self.browser.run(boxes)
        self.assertGreaterEqual(detail[1], stage[3], "below the picture where there is no room")
        self.js("controls.hold(-1)")
        self.assertFalse(self.browser.run("return document.getElementById('scene').classList.contains('open')"))

    def test_what_is_live_at_the_peak_by_line(self):
        self.show(self.sample)
        rows = self.browser.run("return [...document.querySelectorAll('#lines tbody tr')].map(row => row.innerText)")
        self.assertGreater(len(rows), 0)
        shares = [float(re.search(r"([0-9.]+) %", row).group(1)) for row in rows]
        self.assertEqual(shares, sorted(shares, reverse=True))
        self.assertAlmostEqual(sum(shares), 100, delta=0.5)
        self.show(self.mlp)
        self.assertTrue(self.browser.run("return document.getElementById('lines-section').hidden"), "no stacks")
        snapshot = report(os.path.join(DATA, "mlp-torch.pickle"), "snapshot.html")
        self.show(snapshot)
        if self.browser.run("return document.getElementById('lines-section').hidden"):
            return  # without frames
        self.assertNotIn("unwind", self.browser.run("return document.getElementById('lines').textContent"))

    def test_names_of_a_recording_are_text(self):
        self.show(self.sample)
        self.js("controls.hold([...blocks.search('evil')][0])")
        self.assertIn("</script><b>evil", self.browser.run("return document.getElementById('detail').innerText"))
        self.assertIsNone(self.browser.run("return document.querySelector('#detail b')"))
        self.assertEqual(self.browser.run("return document.querySelector('h1').textContent"), "train <b>&co")

    def test_names_that_nobody_should_have(self):
        subprocess.run([SAMPLE, path("names.html"), "hostile"], check=True)
        self.show(path("names.html"))
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, script:not(#data)').length"), 1, "the page's own script alone")
        self.assertIn("'\"><img src=x onerror=alert(1)>", self.browser.run("return document.querySelector('h1').textContent"))
        for mode in ("range", "kernel", "life"):
            self.browser.run("const s = document.getElementById('colour'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))", mode)
            self.browser.frame()
        self.assertEqual(len(self.search("TTTT")), 8)
        self.assertEqual(len(self.search("rrrr")), 4)
        self.assertEqual(len(self.search("alert(1)")), 1)
        for block in range(self.js("return blocks.count")):
            self.js("controls.hold(arguments[0])", block)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), 1280)
        block = self.search("alert(1)")[0]
        self.js("controls.hold(arguments[0])", block)
        self.assertIn("</script><script>alert(1)</script>", self.browser.run("return document.getElementById('detail').innerText"))

    def test_a_long_name_is_shortened_in_few_steps(self):
        self.show(self.sample)
        shortened, calls, wider = self.js("""
            const context = figure.base.getContext('2d'), measure = context.measureText.bind(context), name = 'W'.repeat(20000);
            let calls = 0;
            context.measureText = (text) => { ++calls; return measure(text); };
            const result = fitText(context, name, 200);
            delete context.measureText;
            return [measure(result).width, calls, measure('W' + result).width]""")
        self.assertLessEqual(shortened, 200)
        self.assertGreater(wider, 200, "no more fits")
        self.assertLess(calls, 40)

    def test_words_in_the_picture_do_not_overlap_and_are_whole(self):
        pages = [self.sample, self.mlp, report(write_csv("ticks.csv", never_repeats(1842)), "ticks.html")]
        for file in pages:
            self.show(file)
            for width in (1280, 1120, 990, 800, 660):
                self.browser.size(width, 800)
                self.browser.frame()
                words = self.js("""
                    const words = [], context = figure.base.getContext('2d');
                    context.fillText = (text, x, y) => {
                      const { width } = context.measureText(text), left = x - { left: 0, right: width, center: width / 2 }[context.textAlign];
                      words.push([text, left, left + width, y]);
                    };
                    figure.draw();
                    delete context.fillText;
                    return words""")
                self.assertGreater(len(words), 10)
                for i, (text, left, right, y) in enumerate(words):
                    if width >= 990 and left > self.js("return figure.frames_.map.x + figure.frames_.map.width"):
                        self.assertNotIn("…", text)
                    for other in words[i + 1:]:
                        if abs(y - other[3]) < 9:
                            self.assertFalse(left < other[2] and other[1] < right, f"{text} and {other[0]} at {width} pixels")

    def test_what_is_below_a_resting_pointer_is_told_after_the_picture_moved(self):
        self.show(self.mlp)
        at = self.middle(self.largest())
        self.browser.move(*at)
        before = self.js("return figure.hovered")
        self.browser.run("document.getElementById('stage').focus()")
        seen = set()
        for key in "++\ue014\ue014\ue014\ue013\ue013-":
            self.browser.keys(key)
            self.browser.frame()
            hovered, below = self.js("""
                const { map } = figure.frames_, { x, y } = figure.pointer, { view } = figure;
                return [figure.hovered, blocks.at(figure.clockAt(x), figure.offsetAt(y), 1.5 * (view.t1 - view.t0) / map.width, 1.5 * (view.o1 - view.o0) / map.height)]""")
            self.assertEqual(hovered, below)
            if hovered >= 0:
                self.assertEqual(self.browser.run("return document.getElementById('tip').dataset.block"), str(hovered))
            seen.add(hovered)
        self.assertGreater(len(seen | {before}), 1)

    def test_the_tip_stays_in_the_picture(self):
        self.show(self.sample)
        for x, y in ((0.001, 0.02), (0.999, 0.02), (0.001, 0.98), (0.999, 0.98)):
            at = self.js("""
                const box = figure.stage.getBoundingClientRect(), { map } = figure.frames_;
                figure.view.set(2, 6, 0, figure.view.top / 8);
                figure.draw();
                return [box.left + map.x + arguments[0] * map.width, box.top + map.y + arguments[1] * map.height]""", x, y)
            self.browser.move(*at)
            box = self.browser.run("const t = document.getElementById('tip'), b = t.getBoundingClientRect(); return t.hidden ? null : [b.left, b.right]")
            self.assertIsNotNone(box)
            self.assertGreaterEqual(box[0], 0)
            self.assertLessEqual(box[1], 1280)

    def test_shares_are_not_rounded_to_all_or_nothing(self):
        self.show(self.sample)
        self.assertEqual(self.browser.run("return [[0, 9], [1, 99999], [6398, 6400], [6400, 6400], [1, 3]].map(([a, b]) => percentText(a, b))"),
                         ["0 %", "< 0.1 %", "> 99.9 %", "100 %", "33.3 %"])

    def test_wheel_drag_and_keys_change_what_is_seen(self):
        self.show(self.mlp)
        whole, at = self.view(), self.middle(self.largest())
        self.browser.wheel(*at, -400)
        self.browser.frame()
        closer = self.view()
        self.assertLess(closer["t1"] - closer["t0"], whole["t1"] - whole["t0"])
        self.assertLess(closer["o1"] - closer["o0"], whole["o1"] - whole["o0"])
        self.assertLessEqual(closer["drawn"], whole["drawn"])
        self.browser.drag(*at, -120, 0)
        self.browser.frame()
        moved = self.view()
        self.assertGreater(moved["t0"], closer["t0"])
        self.assertAlmostEqual(moved["t1"] - moved["t0"], closer["t1"] - closer["t0"])
        self.browser.run("document.getElementById('stage').focus()")
        self.browser.keys("0")
        self.browser.frame()
        self.assertEqual({**self.view(), "pixels": 0}, {**whole, "pixels": 0})
        self.browser.keys("+")
        self.browser.frame()
        self.assertLess(self.view()["t1"] - self.view()["t0"], whole["t1"] - whole["t0"])
        self.browser.keys("]]]")
        self.assertEqual(self.js("return figure.held"), 2)
        self.assertIn(self.js("return blocks.title(2)"), self.browser.run("return document.getElementById('detail').innerText"))
        self.browser.keys("[")
        self.assertEqual(self.js("return figure.held"), 1)
        self.browser.run("document.getElementById('zoom-all').click()")
        self.browser.frame()
        self.assertTrue(self.js("return figure.view.isAll"))

    def search(self, text):
        self.browser.run("const box = document.getElementById('search'); box.value = arguments[0]; box.dispatchEvent(new Event('input'));"
                         "return new Promise(done => setTimeout(done, 250))", text)
        self.browser.frame()
        return self.js("return figure.matches === null ? null : [...figure.matches].sort((a, b) => a - b)")

    def test_search_highlights(self):
        self.show(self.sample)
        fill = self.js("return figure.palette.fill.length")
        self.assertEqual(len(self.search("k_forward")), 2)
        self.assertEqual(len(self.search("backward")), 8, "the ranges of four, the last kernel of four more")
        self.assertEqual(len(self.search("step / backward")), 4)
        self.assertEqual(len(self.search("λ3")), 1)
        self.assertEqual(len(self.search("700000")), 4)
        self.assertEqual(self.search("stream 2"), self.search("700000"))
        self.assertEqual(self.search("thread 1"), self.search("700000"))
        self.assertEqual(len(self.search("stream 0")), 4)
        self.assertEqual(len(self.search("> 1.5M")), 3)
        found = self.search("4M")
        self.assertEqual(found, [self.largest()])
        self.assertEqual(self.browser.run("return document.getElementById('found').textContent"), "1 block")
        self.assertEqual(self.browser.run("return document.querySelectorAll('#blocks tbody tr').length"), 1)
        dimmed = self.js("""
            const count = (colours) => { const set = new Set(colours); let n = 0; for (const p of figure.raster.pixels) n += set.has(p) ? 1 : 0; return n; };
            return [count(figure.palette.dimFill), count(figure.palette.fill)]""")
        self.assertGreater(dimmed[0], 0, "what is not found is dimmed")
        self.assertGreater(dimmed[1], 0, "what is found is not")
        self.assertEqual(self.search("no such thing"), [])
        self.assertIsNone(self.search(""))
        self.assertGreater(fill, 1)

    def test_the_table_sorts_and_leads_to_the_picture(self):
        self.show(self.mlp)

        def first():
            return self.browser.run("return [...document.querySelectorAll('#blocks tbody tr')].map(row => row.innerText.split('\\t'))")

        sizes = self.js("return [...blocks.size].sort((a, b) => b - a)")
        rows = first()
        self.assertEqual(len(rows), min(100, len(sizes)))
        shown = self.browser.run("return [...document.querySelectorAll('#blocks tbody tr')].map(row => window.hotpackReport.blocks.size[row.dataset.block])")
        self.assertEqual(shown, sizes[:100])
        self.browser.run("document.querySelector('#blocks th button').click()")
        self.assertEqual(self.browser.run("return document.querySelector('#blocks th[aria-sort]').getAttribute('aria-sort')"), "ascending")
        order = self.browser.run("return [...document.querySelectorAll('#blocks tbody tr')].map(row => window.hotpackReport.blocks.request[row.dataset.block])")
        self.assertEqual(order, sorted(order))
        self.browser.run("document.querySelectorAll('#blocks tbody tr')[4].click()")
        self.browser.frame()
        block = int(self.browser.run("return document.querySelectorAll('#blocks tbody tr')[4].dataset.block"))
        self.assertEqual(self.js("return figure.held"), block)
        view = self.view()
        self.assertGreater(view["t1"], self.js("return blocks.begin[arguments[0]]", block))
        self.assertFalse(self.js("return figure.view.isAll"))
        self.browser.run("document.querySelectorAll('#blocks tbody tr')[7].focus()")
        self.browser.keys("\ue007")
        self.assertEqual(self.js("return figure.held"), int(self.browser.run("return document.querySelectorAll('#blocks tbody tr')[7].dataset.block")))

    def test_light_and_dark(self):
        self.show(self.sample)
        paper = "return getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(paper)
        self.browser.run("document.getElementById('theme').click()")
        self.browser.frame()
        dark = self.browser.run(paper)
        self.assertNotEqual(light, dark)
        self.assertLess(sum(map(int, re.findall(r"\d+", dark)[:3])), 150)
        self.assertEqual(self.js("return figure.theme.paper"), "#14171c")
        self.browser.run("document.getElementById('theme').click()")
        self.assertEqual(self.browser.run(paper), light)

    def test_a_narrow_window_has_no_sideways_scroll(self):
        self.show(self.sample)
        for width in (360, 700, 1000):
            self.browser.size(width, 800)
            self.browser.frame()
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
            self.assertGreater(self.view()["drawn"], 0)

    def test_prints(self):
        self.show(self.sample)
        self.browser.run("document.getElementById('theme').click()")
        self.browser.frame()
        pdf = self.browser.pdf()
        self.assertTrue(pdf.startswith(b"%PDF"))
        self.assertGreater(len(pdf), 20_000)
        self.browser.media("print")
        seen = self.browser.run("""
            const box = document.querySelector('.paper svg').getBoundingClientRect();
            return [box.width, box.height, getComputedStyle(document.getElementById('stage')).display, getComputedStyle(document.body).backgroundColor,
                    getComputedStyle(document.querySelector('.strip')).breakInside]""")
        text = self.browser.run("return document.getElementById('blocks-text').innerText")
        self.browser.media("")
        self.assertNotIn("click", text)
        self.assertGreater(min(seen[:2]), 200, "the figure on paper")
        self.assertEqual(seen[2:], ["none", "rgb(255, 255, 255)", "avoid"], "of the dark page too")

    def test_paper_says_how_many_blocks_it_lists(self):
        self.show(report(write_csv("hundred.csv", never_repeats(120)), "hundred.html"))
        self.browser.media("print")
        text, rows = self.browser.run("""
            return [document.getElementById('blocks-text').innerText,
                    [...document.querySelectorAll('#blocks tbody tr')].filter((row) => row.getBoundingClientRect().height > 0).length]""")
        self.browser.media("")
        self.assertIn(f"{rows} of them are on paper", text)

    def test_what_is_small_or_empty_is_shown(self):
        one = report(write_csv("one.csv", [("alloc", 0, 5)]), "one.html")
        self.show(one)
        self.assertEqual(self.view()["drawn"], 1)
        self.assertIn("kept to the end", self.browser.run("return document.getElementById('share').innerText"))
        instance = path("instance.csv")
        with open(instance, "w") as file:
            file.write("id,lower,upper,size\nweights,0,1000000,3\nx,10,20,5\n")
        self.show(report(instance, "instance.html"))
        self.assertEqual(self.view()["drawn"], 2)
        self.assertTrue(self.browser.run("return document.getElementById('run-section').hidden"))
        self.assertEqual(self.search("weights"), [0])
        with open(instance, "w") as file:
            file.write("id,lower,upper,size\n7,0,10,30\n0,10,20,50\n")
        self.show(report(instance, "instance.html"))
        for text, found in (("7", ["7"]), ("λ0", ["0"]), ("1", []), ("50", ["0"])):
            self.search(text)
            self.assertEqual(self.js("return [...figure.matches].map((i) => blocks.ids[i])"), found, text)

    def test_a_hundred_thousand_blocks(self):
        file = report(write_csv("many.csv", never_repeats(MANY)), "many.html")
        self.show(file)
        view = self.view()
        self.assertEqual(view["drawn"], MANY)
        area = self.js("return figure.raster.width * figure.raster.height")
        # Blocks do not overlap: a frame's work is the picture's pixels, and one more for each that is smaller than one.
        self.assertLess(view["pixels"], 3 * area + 2 * MANY)
        milliseconds = self.browser.run("""
            const { figure } = window.hotpackReport, times = [];
            for (let i = 0; i < 20; ++i) { const began = performance.now(); figure.draw(); times.push(performance.now() - began); }
            return times.sort((a, b) => a - b)[10]""")
        print(f"{MANY} blocks: {os.path.getsize(file) / 1e6:.1f} MB, {milliseconds:.1f} ms a frame", file=sys.stderr)
        self.browser.wheel(*self.middle(self.largest()), -2000)
        self.browser.wheel(640, 500, -2000)
        for _ in range(12):
            self.browser.run("document.getElementById('zoom-in').click()")
        self.browser.frame()
        self.assertLess(self.view()["drawn"], MANY / 20, "what is out of sight is not looked at")
        limited = report(path("many.csv"), "limited.html", "--blocks", "1000")
        self.show(limited)
        self.assertEqual(self.view()["drawn"], 1000)
        self.assertIn("There are 100000 blocks; the 1000 with the largest area", self.browser.run("return document.body.innerText"))

    def test_the_picture_without_a_script_is_xml(self):
        for recording in ("mlp-adam.trace", "lstm.csv"):
            out = path("picture.svg")
            subprocess.run([HOTPACK, "export", os.path.join(DATA, recording), "--format", "svg", "--force", "--out", out], check=True, stderr=subprocess.DEVNULL)
            root = xml.etree.ElementTree.parse(out).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.browser.open(out)


if __name__ == "__main__":
    found = find_browser()
    if isinstance(found, str):
        print("skipped:", found)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
