// The figure: blocks, axes, curves and the overview on one canvas; the pointer's marks on another.

class Figure {
  constructor(stage, blocks, colours, curves, figures) {
    Object.assign(this, { stage, blocks, colours, curves, figures });
    this.base = stage.querySelector("#base");
    this.over = stage.querySelector("#over");
    this.view = new View(figures.clock_end, figures.height / blocks.unit * 1.02);
    this.raster = new Raster();
    this.matches = null;
    this.hovered = this.held = -1;
    this.pointer = null;
    this.frames = [];
    this.pending = false;
    this.refresh();
    new ResizeObserver(() => this.refresh()).observe(stage);
  }

  // Reads sizes and colours again: after a change of the window, of the theme or of the colours' meaning.
  refresh() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue("--" + name).trim();
    this.theme = Object.fromEntries(["paper", "wash", "ink", "soft", "faint", "line", "grid", "accent", "warm", "hole", "fill", "base"].map((n) => [n, of(n)]));
    this.palette = this.colours.pixels(this.theme.paper);
    this.font = getComputedStyle(document.body).fontFamily;
    const context = this.base.getContext("2d");
    context.font = "11px " + this.font;
    this.margin = 12 + Math.max(...this.curves.lines.map((line) => context.measureText(this.curves.label(line)).width));
    this.redraw();
  }

  layout() {
    const width = this.stage.clientWidth, height = this.stage.clientHeight, narrow = width < 640;
    const left = 62, right = narrow ? 6 : Math.min(0.3 * width, this.margin), inner = Math.max(40, width - left - right);
    const small = 30, load = Math.round(Math.max(84, Math.min(150, height * 0.22)));
    const map = Math.max(60, height - 8 - 24 - load - 22 - small);
    const place = (y, h) => ({ x: left, y, width: inner, height: h, margin: right });
    this.frames_ = { map: place(8, map), load: place(8 + map + 24, load), small: place(height - small, small) };
    return { width, height };
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  prepare(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px " + this.font;
    context.textBaseline = "middle";
    return context;
  }

  draw() {
    const began = performance.now(), { width, height } = this.layout();
    if (width < 60 || height < 60) return;
    const context = this.prepare(this.base, width, height), { map, load, small } = this.frames_;
    this.drawGrid(context, map, load);
    this.drawBlocks(context, map);
    this.drawFrames(context, [map, load]);
    this.curves.draw(context, load, this.view, this.theme);
    this.drawMarks(context, map);
    this.drawSmall(context, small);
    this.drawOver();
    this.frames.push(performance.now() - began);
    if (this.frames.length > 240) this.frames.shift();
    this.stage.dispatchEvent(new CustomEvent("drawn"));
  }

  x(t) { const { map } = this.frames_; return map.x + (t - this.view.t0) / (this.view.t1 - this.view.t0) * map.width; }
  y(o) { const { map } = this.frames_; return map.y + (this.view.o1 - o) / (this.view.o1 - this.view.o0) * map.height; }
  clockAt(x) { const { map } = this.frames_; return this.view.t0 + (x - map.x) / map.width * (this.view.t1 - this.view.t0); }
  offsetAt(y) { const { map } = this.frames_; return this.view.o1 - (y - map.y) / map.height * (this.view.o1 - this.view.o0); }

  drawGrid(context, map, load) {
    const { view, theme } = this, unit = this.blocks.unit;
    context.strokeStyle = theme.grid;
    context.lineWidth = 1;
    context.fillStyle = theme.soft;
    const line = (x0, y0, x1, y1) => { context.beginPath(); context.moveTo(x0, y0); context.lineTo(x1, y1); context.stroke(); };
    const level = (bytes, y) => {
      line(map.x, Math.round(y) + 0.5, map.x + map.width, Math.round(y) + 0.5);
      context.textAlign = "right";
      context.fillText(sizeText(bytes, bytes > 0 && bytes / 1024 ** Math.floor(Math.log2(bytes) / 10) % 1 ? 1 : 0), map.x - 8, y);
    };
    const step = niceStep((view.o1 - view.o0) * unit, map.height / 52, true);
    for (let bytes = Math.ceil(view.o0 * unit / step) * step; bytes <= view.o1 * unit; bytes += step) level(bytes, this.y(bytes / unit));
    const loadStep = niceStep(this.curves.most, load.height / 34, true);
    for (let bytes = 0; bytes <= this.curves.most; bytes += loadStep) level(bytes, load.y + load.height - bytes / this.curves.most * load.height);
    const ticks = niceStep(view.t1 - view.t0, map.width / 90, false);
    const axis = "clock →", room = map.x + map.width - context.measureText(axis).width - 6;
    context.textAlign = "center";
    for (let t = Math.ceil(view.t0 / ticks) * ticks; t <= view.t1; t += ticks) {
      const x = Math.round(this.x(t)) + 0.5;
      line(x, map.y, x, map.y + map.height);
      line(x, load.y, x, load.y + load.height);
      if (x + context.measureText(countText(t)).width / 2 < room) context.fillText(countText(t), x, map.y + map.height + 12);
    }
    context.textAlign = "right";
    context.fillText(axis, map.x + map.width, map.y + map.height + 12);
    context.textAlign = "left";
  }

  drawBlocks(context, map) {
    const ratio = window.devicePixelRatio || 1, labels = [];
    this.raster.resize(Math.max(1, Math.round(map.width * ratio)), Math.max(1, Math.round(map.height * ratio)));
    this.raster.paint(this.blocks, this.view, this.colours, this.palette, this.matches, { width: 50 * ratio, height: 15 * ratio },
      (block, x0, y0, x1, y1) => { if (labels.length < 400) labels.push([block, x0 / ratio, y0 / ratio, x1 / ratio, y1 / ratio]); });
    this.scratch ||= document.createElement("canvas");
    this.scratch.width = this.raster.width;
    this.scratch.height = this.raster.height;
    this.scratch.getContext("2d").putImageData(this.raster.image, 0, 0);
    context.drawImage(this.scratch, map.x, map.y, map.width, map.height);
    for (const [block, x0, y0, x1, y1] of labels) {
      if (this.matches !== null && !this.matches.has(block)) continue;
      context.fillStyle = this.palette.ink[this.colours.of[block]];
      const range = this.blocks.name(this.blocks.range[block]).split(" / ").pop(), room = x1 - x0 - 8;
      let text = sizeText(this.blocks.bytes(block));
      if (context.measureText(text).width > room) continue;
      if (range !== "" && y1 - y0 < 30) text = fitText(context, text + "  " + range, room);
      context.fillText(text, map.x + x0 + 4, map.y + (y1 - y0 > 30 ? y0 + 10 : (y0 + y1) / 2));
      if (range !== "" && y1 - y0 >= 30) context.fillText(fitText(context, range, room), map.x + x0 + 4, map.y + y0 + 23);
    }
  }

  drawFrames(context, frames) {
    context.strokeStyle = this.theme.line;
    for (const { x, y, width, height } of frames) context.strokeRect(Math.round(x) - 0.5, Math.round(y) - 0.5, Math.round(width) + 1, Math.round(height) + 1);
  }

  // Height and lower bound, in the blocks' own frame.
  drawMarks(context, map) {
    const { theme, figures, view } = this, unit = this.blocks.unit, marks = [];
    for (const [bytes, text, colour, dash] of [[figures.height, "plan " + sizeText(figures.height), theme.accent, []],
                                               [figures.lower_bound, "lower bound " + sizeText(figures.lower_bound), theme.ink, [5, 4]]]) {
      const o = bytes / unit;
      if (o < view.o0 || o > view.o1) continue;
      const y = this.y(o);
      context.beginPath();
      context.setLineDash(dash);
      context.moveTo(map.x, y);
      context.lineTo(map.x + map.width, y);
      context.strokeStyle = colour;
      context.lineWidth = 1.25;
      context.stroke();
      marks.push({ y, text, colour });
    }
    context.setLineDash([]);
    if (map.margin < 60) return;
    marks.sort((a, b) => a.y - b.y);
    const rows = spread(marks.map((mark) => mark.y), 14, map.y + 6, map.y + map.height - 6);
    marks.forEach((mark, i) => { context.fillStyle = mark.colour; context.fillText(fitText(context, mark.text, map.margin - 10), map.x + map.width + 8, rows[i]); });
  }

  // The overview of the whole iteration, with the visible part marked.
  drawSmall(context, small) {
    const { theme, view } = this, columns = Math.max(1, Math.round(small.width)), most = this.figures.height;
    const { load } = this.curves.sample(0, view.clockEnd, columns);
    context.fillStyle = theme.wash;
    context.fillRect(small.x, small.y, small.width, small.height);
    context.beginPath();
    context.moveTo(small.x, small.y + small.height);
    for (let i = 0; i < columns; ++i) context.lineTo(small.x + i, small.y + small.height - load[i] / most * (small.height - 3));
    context.lineTo(small.x + small.width, small.y + small.height);
    context.fillStyle = theme.base;
    context.fill();
    const x0 = small.x + view.t0 / view.clockEnd * small.width, x1 = small.x + view.t1 / view.clockEnd * small.width;
    context.fillStyle = theme.fill;
    if (!view.isAll) context.fillRect(x0, small.y, x1 - x0, small.height);
    context.strokeStyle = view.isAll ? theme.line : theme.accent;
    context.strokeRect(x0 + 0.5, small.y + 0.5, Math.max(2, x1 - x0 - 1), small.height - 1);
  }

  outline(context, block, colour, width) {
    const { map } = this.frames_, low = this.blocks.offset[block], high = low + this.blocks.size[block];
    const box = (begin, end) => {
      if (end <= begin || end <= this.view.t0 || begin >= this.view.t1) return;
      const x0 = this.x(begin), x1 = this.x(end), y0 = this.y(high), y1 = this.y(low);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x0 - 1, y0 - 1, Math.max(3, x1 - x0 + 2), Math.max(3, y1 - y0 + 2));
    };
    context.save();
    context.beginPath();
    context.rect(map.x - 2, map.y - 2, map.width + 4, map.height + 4);
    context.clip();
    box(this.blocks.begin[block], this.blocks.end[block]);
    box(this.blocks.begin2[block], this.blocks.end2[block]);
    context.restore();
  }

  drawOver() {
    const context = this.prepare(this.over, this.stage.clientWidth, this.stage.clientHeight), { map, load } = this.frames_;
    if (this.matches !== null && this.matches.size <= 400) {
      for (const block of this.matches) this.outline(context, block, this.theme.warm, 1.5);
    }
    if (this.held >= 0) this.outline(context, this.held, this.theme.ink, 2);
    if (this.hovered >= 0 && this.hovered !== this.held) this.outline(context, this.hovered, this.theme.ink, 1.5);
    if (this.pointer === null) return;
    const { x, y } = this.pointer;
    context.strokeStyle = this.theme.faint;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(Math.round(x) + 0.5, map.y);
    context.lineTo(Math.round(x) + 0.5, load.y + load.height);
    if (y <= map.y + map.height) {
      context.moveTo(map.x, Math.round(y) + 0.5);
      context.lineTo(map.x + map.width, Math.round(y) + 0.5);
    }
    context.stroke();
    context.setLineDash([]);
  }
}
