// The curves below the blocks: load, fragmentation, and lines for bound, height and the most that allocators hold in
// the run.

// The allocators that a job would otherwise use; the table has all.
const drawnPeers = ["hotpack", "chainer", "pytorch", "pytorch-expandable", "best-fit"];

class Curves {
  constructor(data) {
    this.unit = data.unit;
    this.end = data.figures.clock_end;
    this.at = column(data.curves.at);
    this.load = column(data.curves.load);
    this.top = column(data.curves.top);
    this.besideAt = column(data.curves.beside_at);
    this.beside = Float64Array.from(column(data.curves.beside), (units) => units * data.curves.beside_unit);
    const figures = data.figures, beside = figures.beside_bytes;
    this.lines = [
      { name: "height", title: "plan", bytes: figures.height + beside, kind: "ours" },
      { name: "bound", title: "lower bound", bytes: Math.max(figures.live_peak, figures.lower_bound + figures.beside_least), kind: "bound" },
      ...data.peers.filter((peer) => drawnPeers.includes(peer.name)).map((peer) => ({ name: peer.name, title: peer.name + " held", bytes: peer.peak, kind: peer.name === "hotpack" ? "held" : "peer" })),
    ];
    // Peers that hold a multiple would flatten the curve, so they are named above the frame's upper edge.
    const limit = 1.6 * (figures.height + beside);
    this.most = Math.max(1, ...this.lines.map((line) => line.bytes).filter((bytes) => bytes <= limit)) * 1.04;
  }

  // Those beyond the frame's upper edge are named there, with an arrow.
  label(line) { return (line.bytes > this.most ? "↑ " : "") + line.title + " " + sizeText(line.bytes); }

  peak() {
    let best = 0;
    for (let i = 1; i < this.load.length; ++i) if (this.load[i] > this.load[best]) best = i;
    return best;
  }

  indexAt(t) { return Math.max(0, lowerBound(this.at, t + 1e-9) - 1); }

  besideOn(t) { return this.beside[Math.max(0, lowerBound(this.besideAt, t + 1e-9) - 1)]; }

  // Returns the largest load and top, and the most outside the plan, in each of `width` columns of [t0, t1), in bytes.
  sample(t0, t1, width) {
    const load = new Float64Array(width), top = new Float64Array(width), step = (t1 - t0) / width;
    let i = this.indexAt(t0);
    for (let x = 0; x < width; ++x) {
      const until = t0 + (x + 1) * step;
      while (i + 1 < this.at.length && this.at[i + 1] <= t0 + x * step) ++i;
      let most = 0, high = 0;
      for (let k = i; k < this.at.length && (k === i || this.at[k] < until); ++k) {
        most = Math.max(most, this.load[k]);
        high = Math.max(high, this.top[k]);
        i = k;
      }
      load[x] = most * this.unit;
      top[x] = high * this.unit;
    }
    return { load, top, beside: this.sampleBeside(t0, step, width) };
  }

  // Returns the most outside the plan in each column, in bytes.
  sampleBeside(t0, step, width) {
    const { besideAt, beside } = this, most = new Float64Array(width);
    if (beside.length === 0) return most;
    for (let x = 0, i = Math.max(0, lowerBound(besideAt, t0 + 1e-9) - 1); x < width; ++x) {
      while (i + 1 < besideAt.length && besideAt[i + 1] <= t0 + x * step) ++i;
      most[x] = beside[i];
      for (; i + 1 < besideAt.length && besideAt[i + 1] < t0 + (x + 1) * step; ++i) most[x] = Math.max(most[x], beside[i + 1]);
    }
    return most;
  }

  // frame: {x, y, width, height} in CSS pixels; view: the clock values shown.
  draw(context, frame, view, theme) {
    const { x, y, width, height } = frame, columns = Math.max(1, Math.round(width));
    const { load, top, beside } = this.sample(view.t0, view.t1, columns), scale = height / this.most;
    const level = (bytes) => y + height - bytes * scale;
    const area = (upper, lower, colour) => {
      context.beginPath();
      for (let i = 0; i < columns; ++i) { context.lineTo(x + i, level(upper(i))); context.lineTo(x + i + 1, level(upper(i))); }
      for (let i = columns - 1; i >= 0; --i) { context.lineTo(x + i + 1, level(lower(i))); context.lineTo(x + i, level(lower(i))); }
      context.fillStyle = colour;
      context.fill();
    };
    context.save();
    context.beginPath();
    context.rect(x, y - 1, width, height + 2);
    context.clip();
    area((i) => beside[i], () => 0, theme.base);
    area((i) => beside[i] + load[i], (i) => beside[i], theme.fill);
    area((i) => beside[i] + Math.max(top[i], load[i]), (i) => beside[i] + load[i], theme.hole);
    context.beginPath();
    for (let i = 0; i < columns; ++i) { context.lineTo(x + i, level(beside[i] + load[i])); context.lineTo(x + i + 1, level(beside[i] + load[i])); }
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.25;
    context.stroke();
    context.restore();
    if (width > 200 && beside.slice(0, 170).every((bytes) => bytes * scale > 15)) {
      context.fillStyle = theme.soft;
      context.fillText("not in the plan: " + sizeText(beside[0]), x + 6, level(beside[0]) + 11);
    }
    this.drawLines(context, frame, level, theme);
  }

  drawLines(context, frame, level, theme) {
    const { x, y, width } = frame, strokes = { ours: theme.accent, bound: theme.ink, held: theme.accent, peer: theme.warm };
    const labels = [];
    const named = frame.margin >= 60;  // a narrow window has no space: the table has the others
    for (const line of this.lines) {
      if (!named && (line.kind === "peer" || line.kind === "held")) continue;
      const beyond = line.bytes > this.most, at = beyond ? y : Math.round(level(line.bytes)) + 0.5;
      if (!beyond) {
        context.beginPath();
        context.setLineDash(line.kind === "ours" ? [] : line.kind === "bound" ? [5, 4] : [2, 3]);
        context.moveTo(x, at);
        context.lineTo(x + width, at);
        context.strokeStyle = strokes[line.kind];
        context.lineWidth = line.kind === "ours" ? 1.5 : 1;
        context.stroke();
      }
      labels.push({ at, text: this.label(line), colour: strokes[line.kind], beyond });
    }
    context.setLineDash([]);
    if (!named) return;
    labels.sort((a, b) => a.at - b.at || b.beyond - a.beyond);
    const rows = spread(labels.map((label) => label.at), 13, y + 4, y + frame.height - 4);
    context.textBaseline = "middle";
    labels.forEach((label, i) => {
      context.fillStyle = label.colour;
      context.fillText(fitText(context, label.text, frame.margin - 10), x + width + 8, rows[i]);
    });
  }
}

// Moves ascending positions apart to at least `gap`, within [low, high] as far as they fit.
function spread(positions, gap, low, high) {
  const rows = positions.slice();
  for (let i = 0; i < rows.length; ++i) rows[i] = Math.max(rows[i], i === 0 ? low : rows[i - 1] + gap);
  for (let i = rows.length - 1, limit = high; i >= 0; --i, limit -= gap) rows[i] = Math.min(rows[i], limit);
  return rows;
}

function fitText(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = 1;  // the length that fits; C++ names may have thousands of characters
  for (let beyond = text.length; beyond - end > 1;) {
    const middle = (end + beyond) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width > width) beyond = middle; else end = middle;
  }
  return end > 1 ? text.slice(0, end) + "…" : "";
}
