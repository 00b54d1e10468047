// The run: the live bytes along it, and which of its iterations repeated the packed one.

class Run {
  constructor(data) {
    this.run = columns(data.run);
    this.iterations = columns(data.iterations);
    this.count = data.iterations.count === 0 ? 0 : this.iterations.requests.length;
    this.cut = data.iterations.count > this.count;
    this.canvas = document.getElementById("run");
    this.tip = document.getElementById("run-tip");
    const strip = this.canvas.parentElement;
    strip.addEventListener("pointermove", (event) => this.hover(event));
    strip.addEventListener("pointerleave", () => { this.tip.hidden = true; this.draw(); });
    new ResizeObserver(() => this.draw()).observe(strip);
    this.words();
    this.list();
  }

  end(k) { return k + 1 < this.count ? this.iterations.first_event[k + 1] : this.cut ? this.iterations.first_event[k] + 1 : this.run.events; }

  words() {
    const { state } = this.iterations, of = (wanted) => state.reduce((sum, s) => sum + (s === wanted ? 1 : 0), 0), same = of(1), differs = of(0), text = document.getElementById("run-text");
    let longer = 0;
    for (let k = 0; k < this.count; ++k) longer += this.iterations.longer_lives[k] > 0 ? 1 : 0;
    text.textContent = this.count === 0 ? "No iteration repeats in this recording: all of it is packed as one." :
      plural(same, "iteration") + (same === 1 ? " asks" : " ask") + " for exactly what is packed, in the same order; " +
      (differs === 0 ? "nothing else is in the recording" : plural(differs, "stretch", "stretches") + " of the run " + (differs === 1 ? "does" : "do") + " not") + "." +
      (longer > 0 ? " In " + countText(longer) + " some blocks live for longer than the plan has them." : "");
  }

  draw(at = -1) {
    const strip = this.canvas.parentElement, width = strip.clientWidth, height = strip.clientHeight, ratio = window.devicePixelRatio || 1;
    if (width === 0) return;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue("--" + name).trim();
    context.scale(ratio, ratio);
    context.font = "11px " + getComputedStyle(document.body).fontFamily;
    context.textBaseline = "middle";
    const left = 62, inner = width - left - 8, foot = 22, top = 8, plot = height - top - foot - 12;
    this.frame = { left, inner };
    const { least, most, unit, events } = this.run, peak = Math.max(1, ...most) * 1.05, columns_ = most.length;
    const x = (event) => left + event / events * inner, y = (units) => top + plot - units / peak * plot;
    const step = niceStep(peak * unit, plot / 34, true);
    context.textAlign = "right";
    for (let bytes = 0; bytes <= peak * unit; bytes += step) {
      context.fillStyle = of("grid");
      context.fillRect(left, Math.round(y(bytes / unit)), inner, 1);
      context.fillStyle = of("soft");
      context.fillText(sizeText(bytes, 0), left - 8, y(bytes / unit));
    }
    const shape = (values, base, colour) => {
      context.beginPath();
      for (let i = 0; i < columns_; ++i) { context.lineTo(left + i / columns_ * inner, y(values[i])); context.lineTo(left + (i + 1) / columns_ * inner, y(values[i])); }
      for (let i = columns_ - 1; i >= 0; --i) { context.lineTo(left + (i + 1) / columns_ * inner, y(base[i])); context.lineTo(left + i / columns_ * inner, y(base[i])); }
      context.fillStyle = colour;
      context.fill();
    };
    shape(least, new Float64Array(columns_), of("fill"));
    shape(most, least, of("accent"));
    for (let k = 0; k < this.count; ++k) {
      const x0 = x(this.iterations.first_event[k]), x1 = Math.max(x0 + 1, x(this.end(k)));
      context.fillStyle = this.iterations.state[k] === 0 ? of("warm") : of("accent");
      context.globalAlpha = k === at ? 1 : [0.85, 0.55, 0.25][this.iterations.state[k]];
      context.fillRect(x0, top + plot + 6, Math.max(0.5, x1 - x0 - (x1 - x0 > 4 ? 1 : 0)), 7);
    }
    context.globalAlpha = 1;
    context.fillStyle = of("soft");
    context.textAlign = "left";
    context.fillText("live memory ↑, recorded events →", left, height - 8);
    context.textAlign = "right";
    context.fillText(countText(events), left + inner, height - 8);
  }

  hover(event) {
    if (!this.frame) return;
    const box = this.canvas.getBoundingClientRect(), px = event.clientX - box.left, at = (px - this.frame.left) / this.frame.inner * this.run.events;
    this.tip.hidden = at < 0 || at > this.run.events;
    if (this.tip.hidden) return;
    const k = Math.min(this.count - 1, lowerBound(this.iterations.first_event, at + 1e-9, this.count) - 1), column_ = Math.min(this.run.most.length - 1, Math.floor(at / this.run.events * this.run.most.length));
    const list = [["event", countText(Math.floor(at))], ["live", sizeText(this.run.most[column_] * this.run.unit)]];
    if (k >= 0) list.push(["requests", countText(this.iterations.requests[k])], ["live at most", sizeText(this.iterations.live_peak[k])], ["", ["not the packed iteration", "the packed iteration", "a part of the packed iteration"][this.iterations.state[k]]]);
    this.tip.replaceChildren(element("b", {}, k >= 0 ? "stretch " + countText(k + 1) + " of " + countText(this.count) : "the recording"), facts(list));
    this.tip.style.left = Math.min(this.canvas.clientWidth - this.tip.offsetWidth, px + 14) + "px";
    this.tip.style.top = "6px";
    this.draw(k);
  }

  // Consecutive equal ones become one line.
  list() {
    const { requests, first_request, live_peak, state, longer_lives } = this.iterations, rows = [];
    let k = 0;
    for (let last; k < this.count && rows.length < 40; k = last) {
      for (last = k + 1; last < this.count && state[last] === 1 && state[k] === 1 && longer_lives[last] === longer_lives[k] && live_peak[last] === live_peak[k];) ++last;
      const made = row("td", [element("td", { class: "word" }, last - k > 1 ? countText(k + 1) + " – " + countText(last) : countText(k + 1)), countText(first_request[k]),
        countText(requests[k]), sizeText(live_peak[k]), longer_lives[k] > 0 ? countText(longer_lives[k]) : "–", element("td", { class: "word" }, state[k] === 1 ? "as packed" + (last - k > 1 ? ", " + countText(last - k) + " times" : "") : state[k] === 2 ? (k === 0 ? "the end of one" : "the beginning of one") : k === 0 && this.count > 1 && state[1] === 1 ? "before the packed one" : "differs")]);
      if (state[k] === 0) made.className = "differs";
      rows.push(made);
    }
    if (rows.length > 0) document.getElementById("run-table").append(element("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "run-title" }, table(["stretch", "first request", "requests", "live at most", "longer lives", ["what it is"]], rows)));
    if (k < this.count) document.getElementById("run-table").append(element("p", { class: "text" }, "Stretches from " + countText(k + 1) + " on are not listed."));
  }
}
