// The blocks: their columns, an index of their residencies, and the description of one.

class Blocks {
  constructor(data) {
    Object.assign(this, columns(data.blocks));
    this.unit = data.unit;
    this.names = data.names;
    this.ids = data.ids;
    this.count = this.begin.length;
    this.clockEnd = data.figures.clock_end;
    this.whole = data.figures.period === 0;
    this.buildIndex();
  }

  // Residencies in classes by length, [2^k, 2^(k+1)), each ascending by begin. Those that meet [t0, t1) begin after
  // t0 - 2^(k+1). So a query of a class is a binary search and a scan of little more than the result.
  buildIndex() {
    const lists = [];
    const add = (block, begin, end) => {
      const k = Math.floor(Math.log2(Math.max(1, end - begin)));
      (lists[k] ||= []).push([begin, end, block]);
    };
    for (let i = 0; i < this.count; ++i) {
      add(i, this.begin[i], this.end[i]);
      if (this.end2[i] > this.begin2[i]) add(i, this.begin2[i], this.end2[i]);
    }
    this.classes = [];
    lists.forEach((list, k) => {
      list.sort((a, b) => a[0] - b[0]);
      const n = list.length, made = { longest: 2 ** (k + 1), begin: new Float64Array(n), end: new Float64Array(n), block: new Uint32Array(n) };
      for (let i = 0; i < n; ++i) [made.begin[i], made.end[i], made.block[i]] = list[i];
      this.classes.push(made);
    });
    this.classes.reverse();  // long ones first: short ones are painted over them in a shared pixel
  }

  // Calls visit(block, begin, end) for each residency that meets [t0, t1).
  query(t0, t1, visit) {
    for (const { longest, begin, end, block } of this.classes) {
      for (let i = lowerBound(begin, t0 - longest); i < begin.length && begin[i] < t1; ++i) {
        if (end[i] > t0) visit(block[i], begin[i], end[i]);
      }
    }
  }

  // Returns the block at a clock value and an offset in units, or the nearest one within the given slack; -1: none.
  at(t, o, slackT = 0, slackO = 0) {
    let best = -1, least = Infinity;
    this.query(t - slackT, t + slackT + 1e-9, (block, begin, end) => {
      const low = this.offset[block], high = low + this.size[block];
      if (high < o - slackO || low > o + slackO) return;
      const dt = Math.max(begin - t, t - end, 0) / (slackT || 1), d = Math.max(low - o, o - high, 0) / (slackO || 1);
      const inside = t >= begin && t < end && o >= low && o < high;
      const distance = inside ? -1 : dt + d;
      if (distance < least) { least = distance; best = block; }
    });
    return best;
  }

  bytes(i) { return this.size[i] * this.unit; }
  life(i) { return this.end[i] - this.begin[i] + this.end2[i] - this.begin2[i]; }
  name(ordinal) { return ordinal === 0 ? "" : this.names[ordinal - 1]; }
  kindText(i) { return [this.whole ? "released" : "within the iteration", "carried over its boundary", "kept to the end"][this.kind[i]]; }
  title(i) { return this.ids ? "block " + this.ids[i] : (this.whole ? "request " : "λ ") + countText(this.request[i]); }

  residencyText(i) {
    const text = "[" + countText(this.begin[i]) + ", " + countText(this.end[i]) + ")";
    return this.end2[i] > this.begin2[i] ? text + " and [" + countText(this.begin2[i]) + ", " + countText(this.end2[i]) + ")" : text;
  }

  // Returns the facts about a block as pairs of words; `all`: also those too long for a tooltip.
  describe(i, all) {
    const first = this.name(this.first_kernel[i]), last = this.name(this.last_kernel[i]);
    const bytes = this.bytes(i), offset = this.offset[i] * this.unit;
    const pairs = [
      ["size", sizeText(bytes) + " (" + countText(bytes) + " bytes)"],
      ["asked for", this.asked[i] !== bytes ? countText(this.asked[i]) + " bytes" : ""],
      ["residency", this.residencyText(i)],
      ["life", plural(this.life(i), "tick")],
      ["offset", sizeText(offset, 2) + (all ? " (" + countText(offset) + ")" : "")],
      ["kind", this.kindText(i)],
      ["stream", this.hasStreams ? String(this.stream[i]) : ""],
      ["thread", this.hasThreads ? String(this.thread[i]) : ""],
      ["range", this.name(this.range[i])],
      ["first used by", first],
      ["last used by", last === first && !all ? "" : last],
      ["launches", this.launches[i] > 0 ? countText(this.launches[i]) : ""],
    ];
    const stack = this.name(this.stack[i]);
    pairs.push(["asked in", all ? stack : stack.split("\n")[0]]);
    return pairs.filter(([, value]) => value !== "");
  }

  get hasStreams() { return this._streams ??= this.stream.some((s) => s !== this.stream[0] || s > 0); }
  get hasThreads() { return this._threads ??= this.thread.some((t) => t !== this.thread[0]); }
  get hasRanges() { return this._ranges ??= this.range.some((r) => r > 0); }
  get hasKernels() { return this._kernels ??= this.first_kernel.some((k) => k > 0); }

  // Ascending by begin: the order in which keys step through them.
  next(i, step) { return this.count === 0 ? -1 : i < 0 ? (step > 0 ? 0 : this.count - 1) : Math.min(this.count - 1, Math.max(0, i + step)); }

  // Returns the blocks that a search names: sizes "12M", "4096" or ">1M", requests "λ12" or "#12", "stream 2", "thread
  // 1", else a part of the name of a kernel, a range or a stack. Null: no search.
  search(text) {
    const query = text.trim().toLowerCase();
    if (query === "") return null;
    const found = new Set();
    const lambda = /^(?:λ|#|lambda)\s*(\d+)$/.exec(query), size = /^([<>]=?)?\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?$/.exec(query);
    const of = /^(stream|thread)\s*(\d+)$/.exec(query);
    if (lambda) {
      for (let i = 0; i < this.count; ++i) if (this.isRequest(i, lambda[1])) found.add(i);
    } else if (of) {
      for (let i = 0; i < this.count; ++i) if (this[of[1]][i] === Number(of[2])) found.add(i);
    } else if (size) {
      this.matchSizes(size[1], Number(size[2]), size[3], size[2], found);
    } else {
      const hit = this.names.map((name) => name.toLowerCase().includes(query));
      const named = (ordinal) => ordinal > 0 && hit[ordinal - 1];
      for (let i = 0; i < this.count; ++i) {
        if (named(this.range[i]) || named(this.first_kernel[i]) || named(this.last_kernel[i]) || named(this.stack[i]) ||
            (this.ids && this.ids[i].toLowerCase().includes(query))) found.add(i);
      }
    }
    return found;
  }

  // Blocks of a packing instance have names, which are often numbers, instead of ordinals.
  isRequest(i, digits) { return this.ids ? this.ids[i] === digits : this.request[i] === Number(digits); }

  // Parses a written size: "1.5M" is 1.5 MiB as displayed. A number alone is bytes, or a request.
  matchSizes(order, number, letter, digits, found) {
    const scale = 1024 ** "_kmgt".indexOf(letter || "_"), wanted = number * scale;
    const slack = letter ? scale * 0.5 * 10 ** -(digits.split(".")[1] || "").length : 0;
    for (let i = 0; i < this.count; ++i) {
      const bytes = this.bytes(i);
      const match = order ? (order[0] === ">" ? bytes > wanted : bytes < wanted) || (order[1] === "=" && bytes === wanted)
        : Math.abs(bytes - wanted) <= slack || (!letter && (this.asked[i] === wanted || this.isRequest(i, digits)));
      if (match) found.add(i);
    }
  }
}
