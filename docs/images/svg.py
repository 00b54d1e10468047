"""A few shapes as SVG text, in a frame with time to the right and offset up."""

import html

INK = "#24292f"
FAINT = "#8a929c"
PAPER = "#f6f7f9"
ACCENT = "#c2410c"
BLUE = "#1d4ed8"
FILLS = ("#c7d7ee", "#d8e6c8", "#f0dfc0", "#dccfe6", "#c9e3e0", "#ead0d0")


class Picture:
    """Collects shapes; `width` and `height` in pixels. The background is neutral, so that a dark page does no harm."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.shapes = []

    def rect(self, x, y, width, height, fill="none", stroke=INK, stroke_width=1, dash=None):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
                           f'stroke="{stroke}" stroke-width="{stroke_width}"{dashes}/>')

    def line(self, x1, y1, x2, y2, stroke=INK, width=1, dash=None):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" '
                           f'stroke-width="{width}"{dashes}/>')

    def text(self, x, y, words, size=12, anchor="start", fill=INK, weight="normal"):
        self.shapes.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
                           f'font-weight="{weight}">{html.escape(words)}</text>')

    def path(self, points, stroke=INK, width=1, fill="none"):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.shapes.append(f'<polyline points="{joined}" fill="{fill}" stroke="{stroke}" stroke-width="{width}"/>')

    def svg(self):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="Helvetica, Arial, sans-serif" role="img">')
        hatch = ('<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
                 f'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="{FAINT}"/></pattern></defs>')
        ground = f'<rect width="{self.width}" height="{self.height}" rx="6" fill="{PAPER}"/>'
        title = f"<title>{html.escape(self.title)}</title>"
        return "\n".join([head, title, hatch, ground, *self.shapes, "</svg>"]) + "\n"


class Frame:
    """A part of a picture: clock values [begin, end) against offsets [0, top)."""

    def __init__(self, picture, left, upper, width, height, begin, end, top):
        self.picture = picture
        self.left, self.upper, self.width, self.height = left, upper, width, height
        self.begin, self.end, self.top = begin, end, top

    def x(self, clock):
        return self.left + (clock - self.begin) * self.width / (self.end - self.begin)

    def y(self, offset):
        return self.upper + self.height - offset * self.height / self.top

    def axes(self):
        self.picture.line(self.left, self.upper - 8, self.left, self.y(0))
        self.picture.line(self.left, self.y(0), self.left + self.width + 8, self.y(0))

    def box(self, begin, end, offset, top, fill, label="", **how):
        x, y = self.x(begin), self.y(top)
        width, height = self.x(end) - x, self.y(offset) - y
        self.picture.rect(x, y, width, height, fill, **how)
        if label and width > 9 and height > 10:
            self.picture.text(x + width / 2, y + height / 2 + 4, label, 11, "middle")

    def level(self, begin, end, offset, stroke=INK, width=3, dash=None):
        self.picture.line(self.x(begin), self.y(offset), self.x(end), self.y(offset), stroke, width, dash)
