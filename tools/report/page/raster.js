// Paints blocks into pixels. Blocks of a placement never overlap, so for any number of blocks a frame writes little
// more than the picture's own pixels. A block smaller than a pixel costs one pixel.

class Raster {
  constructor() {
    this.width = this.height = 0;
    this.stats = { drawn: 0, merged: 0, pixels: 0 };
  }

  resize(width, height) {
    if (width === this.width && height === this.height) return;
    this.width = width;
    this.height = height;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  // view: {t0, t1, o0, o1}, clock and units; palette: Colours.pixels(); matches: a Set of blocks not to dim, or null.
  // label(block, x0, y0, x1, y1) is called for blocks with space for words.
  paint(blocks, view, colours, palette, matches, room, label) {
    const { width, height, pixels } = this, { t0, t1, o0, o1 } = view;
    const sx = width / (t1 - t0), sy = height / (o1 - o0);
    const { fill, edge, dimFill, dimEdge } = palette;
    let drawn = 0, merged = 0, touched = 0;
    pixels.fill(0);
    blocks.query(t0, t1, (block, begin, end) => {
      const low = blocks.offset[block], high = low + blocks.size[block];
      if (high <= o0 || low >= o1) return;
      const left = (begin - t0) * sx, right = (end - t0) * sx, up = (o1 - high) * sy, down = (o1 - low) * sy;
      const x0 = Math.max(0, Math.min(width - 1, Math.round(left))), y0 = Math.max(0, Math.min(height - 1, Math.round(up)));
      const x1 = Math.min(width, Math.max(x0 + 1, Math.round(right))), y1 = Math.min(height, Math.max(y0 + 1, Math.round(down)));
      ++drawn;
      const entry = colours.of[block], dim = matches !== null && !matches.has(block);
      const colour = dim ? dimFill[entry] : fill[entry];
      if (x1 - x0 === 1 && y1 - y0 === 1) {
        ++merged;
        ++touched;
        pixels[y0 * width + x0] = colour;
        return;
      }
      const border = dim ? dimEdge[entry] : edge[entry];
      const wide = x1 - x0 > 3, tall = y1 - y0 > 3;
      touched += (x1 - x0) * (y1 - y0);
      for (let y = y0; y < y1; ++y) {
        const row = y * width;
        if (tall && y === y1 - 1) { pixels.fill(border, row + x0, row + x1); continue; }
        if (x1 - x0 > 12) pixels.fill(colour, row + x0, row + x1);
        else for (let x = x0; x < x1; ++x) pixels[row + x] = colour;
        if (wide) pixels[row + x1 - 1] = border;
      }
      if (label !== null && x1 - x0 > room.width && y1 - y0 > room.height) label(block, x0, y0, x1, y1);
    });
    this.stats = { drawn, merged, pixels: touched };
  }
}
