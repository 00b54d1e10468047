#!/usr/bin/env python3
"""Takes the README's picture of a report in headless Chromium (Debian: chromium, chromium-driver).

    hotpack run --simulate --report report.html -- build/bin/train_conv --steps 20
    docs/images/screenshot.py report.html docs/images/report.png
"""

import os
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "tools", "report"))
from webdriver import Browser  # noqa: E402

WIDTH, HEIGHT = 1280, 836


def chunks(png):
    at = 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at:at + 4])
        yield png[at + 4:at + 8], png[at + 8:at + 8 + length]
        at += 12 + length


def smaller(png):
    """The same picture, compressed as well as zlib can, without what is not needed to show it."""
    kept = [(name, data) for name, data in chunks(png) if name in (b"IHDR", b"PLTE", b"IEND")]
    pixels = zlib.decompress(b"".join(data for name, data in chunks(png) if name == b"IDAT"))
    kept.insert(len(kept) - 1, (b"IDAT", zlib.compress(pixels, 9)))
    out = png[:8]
    for name, data in kept:
        out += struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    return out


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    page, picture = sys.argv[1:]
    with Browser(WIDTH, HEIGHT) as browser:
        browser.open(os.path.abspath(page))
        browser.frame()
        browser.screenshot(picture)
        said = browser.log()
    if said:
        sys.exit("\n".join(said))
    with open(picture, "rb") as file:
        png = smaller(file.read())
    with open(picture, "wb") as file:
        file.write(png)


if __name__ == "__main__":
    main()
