// The meaning of the colour of a block.

function rgb(hex) { return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)); }
function mix(a, b, share) { return a.map((value, i) => Math.round(value + (b[i] - value) * share)); }
function packed([r, g, b]) { return (255 << 24 | b << 16 | g << 8 | r) >>> 0; }
function luminance([r, g, b]) { return (0.299 * r + 0.587 * g + 0.114 * b) / 255; }

function rampColour(ramp, share) {
  const at = Math.min(1, Math.max(0, share)) * (ramp.length - 1), low = Math.min(ramp.length - 2, Math.floor(at));
  return mix(rgb(ramp[low]), rgb(ramp[low + 1]), at - low);
}

class Colours {
  constructor(data, blocks) {
    this.ramp = data.ramp;
    this.kinds = data.kinds;
    this.blocks = blocks;
    this.modes = { life: "lifetime", size: "size", kind: "kind" };
    if (blocks.hasRanges) this.modes.range = "range";
    if (blocks.hasKernels) this.modes.kernel = "first kernel";
    if (blocks.hasStreams) this.modes.stream = "stream";
    if (blocks.hasThreads) this.modes.thread = "thread";
    this.set(blocks.hasRanges ? "range" : "life");
  }

  // Colours of all blocks for one meaning: `rgbs` by palette entry, `of[i]` the entry of block i, `legend` the legend.
  set(mode) {
    this.mode = mode;
    if (mode === "life") this.byNumber((i) => this.blocks.life(i), (v) => plural(v, "tick"));
    else if (mode === "size") this.byNumber((i) => this.blocks.bytes(i), (v) => sizeText(v, v < 1024 ? 0 : 1));
    else if (mode === "kind") this.byClass((i) => this.blocks.kindText(i));
    else if (mode === "range") this.byClass((i) => this.blocks.name(this.blocks.range[i]) || "no range");
    else if (mode === "kernel") this.byClass((i) => this.blocks.name(this.blocks.first_kernel[i]) || "no kernel known");
    else this.byClass((i) => mode + " " + this.blocks[mode][i]);
  }

  // By rank among the different values, so that the colours are used evenly for any distribution of values.
  byNumber(value, text) {
    const { count } = this.blocks, values = Float64Array.from({ length: count }, (_, i) => value(i));
    const different = Float64Array.from(new Set(values)).sort(), last = different.length - 1, steps = Math.max(1, Math.min(256, last + 1));
    this.rgbs = Array.from({ length: steps }, (_, k) => rampColour(this.ramp, steps > 1 ? k / (steps - 1) : 0.5));
    this.of = Uint16Array.from({ length: count }, (_, i) => (last > 0 ? Math.round(lowerBound(different, values[i]) / last * (steps - 1)) : 0));
    this.legend = { marks: last < 2 ? [...different].map(text) : [different[0], different[last >> 1], different[last]].map(text) };
  }

  // The classes with most bytes get their own colours, the others share one.
  byClass(label) {
    const { count } = this.blocks, bytes = new Map();
    for (let i = 0; i < count; ++i) bytes.set(label(i), (bytes.get(label(i)) || 0) + this.blocks.bytes(i));
    const order = [...bytes.keys()].sort((a, b) => bytes.get(b) - bytes.get(a)), own = this.kinds.length - 1;
    const fits = order.length <= own;
    const entry = new Map(order.map((name, k) => [name, fits ? k : Math.min(k, own)]));
    this.rgbs = this.kinds.map(rgb);
    this.of = Uint16Array.from({ length: count }, (_, i) => entry.get(label(i)));
    this.legend = { keys: order.slice(0, own).map((name, k) => [this.kinds[k], name]) };
    if (!fits) this.legend.keys.push([this.kinds[own], plural(order.length - own, "other")]);
  }

  css(i) { return "rgb(" + this.rgbs[this.of[i]].join(",") + ")"; }

  // The palette on a paper: entry → fill, the dimmed fill, and their edges, as pixels.
  pixels(paper) {
    const back = rgb(paper), dark = luminance(back) < 0.5;
    const edge = (colour) => mix(colour, back, dark ? 0.55 : 0.45);
    const dim = (colour) => mix(colour, back, 0.82);
    return {
      fill: Uint32Array.from(this.rgbs, packed), edge: Uint32Array.from(this.rgbs, (c) => packed(edge(c))),
      dimFill: Uint32Array.from(this.rgbs, (c) => packed(dim(c))), dimEdge: Uint32Array.from(this.rgbs, (c) => packed(mix(dim(c), back, 0.4))),
      ink: this.rgbs.map((c) => (luminance(c) > 0.5 ? "rgba(0,0,0,.82)" : "rgba(255,255,255,.92)")),
    };
  }

  drawLegend(into) {
    into.replaceChildren();
    if (this.legend.keys) {
      for (const [colour, name] of this.legend.keys) {
        into.append(element("span", { class: "key", title: name }, element("i", { class: "swatch", style: "background:" + colour }), element("span", {}, name)));
      }
      return;
    }
    const stops = this.rgbs.map((c) => "rgb(" + c.join(",") + ")").join(",");
    const scale = element("span", { class: "scale" }, element("i", { class: "ramp", style: "background:linear-gradient(to right," + (this.rgbs.length > 1 ? stops : stops + "," + stops) + ")" }),
      element("span", { class: "marks" }, ...this.legend.marks.map((mark) => element("span", {}, mark))));
    into.append(element("span", {}, this.modes[this.mode]), scale);
  }
}
