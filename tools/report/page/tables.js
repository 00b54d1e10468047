// Shares, fragmentation, peers and the table of blocks.

function pairs(list) {
  const made = element("dl", { class: "pairs" });
  for (const [name, value] of list) made.append(element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  return made;
}

function row(tag, cells) {
  const made = element("tr");
  for (const cell of cells) made.append(cell instanceof Node && cell.matches("td, th") ? cell : element(tag, {}, cell));
  return made;
}

function table(headings, rows) {
  const head = element("tr");
  headings.forEach((heading, k) => head.append(element("th", { scope: "col", class: k === 0 || Array.isArray(heading) ? "word" : null }, String(heading))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

// What is live at the peak, by kind, as a bar and in words.
function drawShare(into, data) {
  const f = data.figures, packedBlocks = f.blocks - f.carried_blocks - f.kept_blocks, peak = f.peak_by_kind;
  const parts = [
    [f.period > 0 ? "within the iteration" : "released", packedBlocks, peak[0], data.kinds[0], "asked for and released in it: packed"],
    ["carried", f.carried_blocks, peak[1], data.kinds[1], "live over the iteration's boundary: packed, at one offset"],
    ["kept to the end", f.kept_blocks, peak[2], data.kinds[2], "not released before the recording ends"],
    ["not in the plan", f.beside_blocks, peak[3], data.kinds[7], "live in it and not packed, such as weights"],
  ].filter(([, blocks]) => blocks > 0);
  const whole = parts.reduce((sum, part) => sum + part[2], 0), bar = element("div", { class: "stack", role: "img", "aria-label": parts.map(([name, , bytes]) => name + " " + percentText(bytes, whole)).join(", ") });
  for (const [name, , bytes, colour] of parts) bar.append(element("span", { style: "background:" + colour + ";flex:" + bytes / whole, title: name }));
  const rows = parts.map(([name, blocks, bytes, colour, why]) => {
    const made = row("td", [element("td", { class: "word", title: why }, element("i", { class: "swatch", style: "background:" + colour }), name), countText(blocks), sizeText(bytes), percentText(bytes, whole)]);
    return made;
  });
  into.append(bar, table(["kind", "blocks in all", "live at the peak", "share"], rows));
  if (f.unplanned_requests > 0) into.append(element("p", { class: "text" }, plural(f.unplanned_requests, "request") + " of the iteration " + (f.unplanned_requests === 1 ? "is" : "are") + " not packed: not released often enough to say how long they live."));
}

function drawHoles(into, data, curves) {
  const f = data.figures;
  let area = 0, holes = 0, worst = 0, worstAt = 0;
  for (let i = 0; i < curves.at.length; ++i) {
    const ticks = (i + 1 < curves.at.length ? curves.at[i + 1] : curves.end) - curves.at[i], gap = curves.top[i] - curves.load[i];
    area += ticks * curves.top[i];
    holes += ticks * gap;
    if (gap > worst) { worst = gap; worstAt = curves.at[i]; }
  }
  into.append(pairs([
    ["height / lower bound", f.lower_bound > 0 ? (f.height / f.lower_bound).toFixed(5) + (f.proven_optimal ? ", optimal" : "") : "–"],
    ["above the lower bound", sizeText(f.height - f.lower_bound)],
    ["holes below the highest block, on average", percentText(holes, area)],
    ["holes at worst", sizeText(worst * data.unit) + ", clock " + countText(worstAt)],
    ["rounding up of sizes", sizeText(Math.max(0, f.bytes - f.asked)) + " of " + sizeText(f.bytes)],
    ["packed by", f.algorithm],
    ...(f.stream_edges === null ? [] : [["waits between streams in one cycle", countText(f.stream_edges) + ", " + countText(f.stream_edges_avoided) + " avoided"]]),
  ]));
  into.append(element("p", { class: "text", style: "margin-top:10px" }, "Holes cost nothing as long as the height stays at the lower bound: no placement of the same blocks is lower."));
}

// The lines of the program that asked for what is live at the recording's peak, with the stack of the largest block.
function drawLines(section, text, into, data) {
  section.hidden = data.lines.length === 0;
  if (section.hidden) return;
  const whole = data.run.live_peak, known = data.lines.filter((line) => line.line !== "").reduce((sum, line) => sum + line.bytes, 0);
  text.textContent = percentText(known, whole) + " of " + sizeText(whole) + " have a stack. The frames of the allocator and of the recorder are left out.";
  const rows = data.lines.map((line) => {
    const name = line.line === "" ? "no stack" : line.line, inner = element("details", {}, element("summary", {}, name), element("pre", {}, line.stack));
    return row("td", [element("td", { class: "word" }, line.stack === "" ? name : inner), countText(line.blocks), sizeText(line.bytes), percentText(line.bytes, whole),
      element("td", { class: "meter-cell" }, element("i", { class: "meter", style: "width:" + (100 * line.bytes / data.lines[0].bytes).toFixed(2) + "%" }))]);
  });
  into.append(table(["line", "blocks", "live at the peak", "share", ""], rows));
}

// Bars of the most that each allocator holds in the whole run, as `hotpack compare` has it.
function drawPeers(section, into, data) {
  section.hidden = data.peers.length === 0;
  if (section.hidden) return;
  const ours = data.peers.find((peer) => peer.name === "hotpack").peak;
  const all = [{ name: "live", title: "live: no allocator holds less", peak: data.run.live_peak, calls: null, smallest: null }, ...data.peers];
  const most = Math.max(...all.map((entry) => entry.peak));
  const sought = data.peers.some((peer) => peer.smallest !== null);
  const rows = all.map((entry) => {
    const made = row("td", [element("td", { class: "word" }, entry.title), sizeText(entry.peak), entry.calls === null || entry.name === "hotpack" ? "" : (entry.peak / ours).toFixed(3) + " ×",
      entry.calls === null ? "" : countText(entry.calls), ...(sought ? [entry.smallest === null ? "" : sizeText(entry.smallest)] : []), element("td", { class: "meter-cell" }, element("i", { class: "meter", style: "width:" + (100 * entry.peak / most).toFixed(2) + "%" }))]);
    if (entry.name === "hotpack") made.className = "ours";
    return made;
  });
  into.append(table(["allocator", "held at most", "of hotpack's", "driver calls", ...(sought ? ["smallest device"] : []), ""], rows));
  into.append(element("p", { class: "text", style: "margin-top:10px" }, "All of the whole run, simulated on the recording." + (data.held_while_served === null ? "" : " hotpack's engine, held while served by the plan: " + sizeText(data.held_while_served) + ".") + " " + data.peers_note));
}

const kTableRows = 100, kPaperRows = 40;  // the second as in page.css

class BlockTable {
  constructor(into, text, blocks, colours, pick) {
    Object.assign(this, { into, text, blocks, colours, pick });
    this.columns = [
      { name: blocks.ids ? "block" : blocks.whole ? "request" : "λ", value: (i) => blocks.request[i], text: (i) => (blocks.ids ? blocks.ids[i] : countText(blocks.request[i])), up: true },
      { name: "size", value: (i) => blocks.size[i], text: (i) => sizeText(blocks.bytes(i)) },
      { name: "life", value: (i) => blocks.life(i), text: (i) => countText(blocks.life(i)) },
      { name: "size × life", value: (i) => blocks.size[i] * blocks.life(i), text: (i) => sizeText(blocks.bytes(i) * blocks.life(i)) },
      { name: "residency", value: (i) => blocks.begin[i], text: (i) => blocks.residencyText(i), up: true },
      { name: "offset", value: (i) => blocks.offset[i], text: (i) => sizeText(blocks.offset[i] * blocks.unit, 2), up: true },
      { name: "kind", value: (i) => blocks.kind[i], text: (i) => blocks.kindText(i), word: true },
    ];
    const names = (name, of, last) => ({ name, value: (i) => blocks.name(of[i]), text: (i) => blocks.name(of[i]).split(last).pop(), word: true, up: true, full: (i) => blocks.name(of[i]) });
    if (blocks.hasStreams) this.columns.push({ name: "stream", value: (i) => blocks.stream[i], text: (i) => String(blocks.stream[i]), up: true });
    if (blocks.hasRanges) this.columns.push(names("range", blocks.range, "\n"));
    if (blocks.hasKernels) this.columns.push(names("first used by", blocks.first_kernel, "\n"), names("last used by", blocks.last_kernel, "\n"));
    this.sort = 1;
    this.down = true;
    this.matches = null;
    this.draw();
  }

  sortBy(k) {
    this.down = this.sort === k ? !this.down : !this.columns[k].up;
    this.sort = k;
    this.draw();
    this.into.querySelectorAll("th button")[k].focus();
  }

  filter(matches) {
    this.matches = matches;
    this.draw();
  }

  draw() {
    const chosen = this.matches ? [...this.matches] : Array.from({ length: this.blocks.count }, (_, i) => i);
    const { value } = this.columns[this.sort], sign = this.down ? -1 : 1, keys = new Map(chosen.map((i) => [i, value(i)]));
    chosen.sort((a, b) => (keys.get(a) < keys.get(b) ? -sign : keys.get(a) > keys.get(b) ? sign : a - b));
    const head = element("tr");
    this.columns.forEach((column_, k) => {
      const button = element("button", { type: "button" }, column_.name);
      button.addEventListener("click", () => this.sortBy(k));
      head.append(element("th", { scope: "col", class: column_.word ? "word" : null, "aria-sort": k === this.sort ? (this.down ? "descending" : "ascending") : null }, button));
    });
    const rows = chosen.slice(0, kTableRows).map((i) => {
      const made = element("tr", { class: "pick", tabindex: 0, "data-block": i });
      this.columns.forEach((column_, k) => {
        const cell = element("td", { class: column_.full ? "long" : column_.word ? "word" : null, title: column_.full ? column_.full(i) : null }, column_.text(i));
        if (k === 0) cell.className = "first";
        if (k === 0) cell.prepend(element("i", { class: "swatch", style: "background:" + this.colours.css(i) }));
        made.append(cell);
      });
      made.addEventListener("click", () => this.pick(i));
      made.addEventListener("keydown", (event) => { if (event.key === "Enter" && event.target === made) this.pick(i); });
      return made;
    });
    this.into.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
    const shown = Math.min(kTableRows, chosen.length);
    this.text.textContent = chosen.length === 0 ? "No block is found." : (this.matches ? plural(chosen.length, "block") + " found" : plural(chosen.length, "block")) +
      (shown < chosen.length ? "; the first " + shown + " by " + this.columns[this.sort].name + " are listed." : ".");
    if (shown === 0) return;
    this.text.append(element("span", { class: "screen-only" }, " A click, or Enter, shows one in the picture."));
    if (shown > kPaperRows) this.text.append(element("span", { class: "paper-only" }, " " + kPaperRows + " of them are on paper."));
  }
}
