// Pointer, wheel and keys on the figure.

class Controls {
  constructor(figure, tip, readout, hold) {
    Object.assign(this, { figure, tip, readout, hold });
    this.drag = null;
    this.touches = new Map();
    const stage = figure.stage;
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.up(event));
    stage.addEventListener("pointercancel", (event) => this.up(event));
    stage.addEventListener("pointerleave", () => this.leave());
    stage.addEventListener("dblclick", () => { if (figure.hovered >= 0) this.show(figure.hovered); });
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("keydown", (event) => this.key(event));
    // After the picture has moved, another block is below a resting pointer.
    stage.addEventListener("drawn", () => { if (figure.pointer !== null && this.drag === null) this.hover(figure.pointer); });
  }

  place(event) {
    const box = this.figure.stage.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  inside(frame, { x, y }) { return x >= frame.x && x <= frame.x + frame.width && y >= frame.y && y <= frame.y + frame.height; }

  down(event) {
    const at = this.place(event), { small } = this.figure.frames_;
    this.figure.stage.setPointerCapture(event.pointerId);
    this.touches.set(event.pointerId, at);
    this.drag = { at, moved: 0, small: this.inside(small, at) };
    if (this.drag.small) this.centre(at);
  }

  // The window of the overview follows the pointer.
  centre(at) {
    const { view, frames_ } = this.figure, t = (at.x - frames_.small.x) / frames_.small.width * view.clockEnd;
    view.pan(t - (view.t0 + view.t1) / 2, 0);
    this.figure.redraw();
  }

  move(event) {
    const at = this.place(event);
    if (this.touches.has(event.pointerId)) this.touches.set(event.pointerId, at);
    if (this.touches.size === 2) return this.pinch();
    if (this.drag === null) return this.hover(at);
    const { view, frames_ } = this.figure, dx = at.x - this.drag.at.x, dy = at.y - this.drag.at.y;
    this.drag.moved += Math.abs(dx) + Math.abs(dy);
    this.drag.at = at;
    if (this.drag.small) return this.centre(at);
    if (this.drag.moved < 4) return;
    this.figure.stage.classList.add("moving");
    this.tip.hidden = true;
    view.pan(-dx / frames_.map.width * (view.t1 - view.t0), dy / frames_.map.height * (view.o1 - view.o0));
    this.figure.redraw();
  }

  pinch() {
    const [a, b] = [...this.touches.values()], apart = Math.hypot(a.x - b.x, a.y - b.y), x = (a.x + b.x) / 2, y = (a.y + b.y) / 2;
    if (this.apart) this.figure.view.zoom(this.figure.clockAt(x), this.figure.offsetAt(y), this.apart / apart, this.apart / apart);
    this.apart = apart;
    this.drag = { at: a, moved: 99, small: false };
    this.figure.redraw();
  }

  up(event) {
    this.touches.delete(event.pointerId);
    this.apart = 0;
    const clicked = this.drag !== null && this.drag.moved < 4 && !this.drag.small;
    this.drag = null;
    this.figure.stage.classList.remove("moving");
    if (!clicked) return;
    this.hover(this.place(event));
    this.hold(this.figure.hovered);
  }

  leave() {
    this.figure.pointer = null;
    this.figure.hovered = -1;
    this.tip.hidden = true;
    this.readout.textContent = "";
    this.figure.drawOver();
  }

  hover(at) {
    const { figure } = this, { map, load } = figure.frames_, within = this.inside(map, at);
    if (!within && !this.inside(load, at)) return this.leave();
    figure.pointer = at;
    const t = figure.clockAt(at.x), o = figure.offsetAt(at.y), { view, blocks } = figure;
    const pixelT = (view.t1 - view.t0) / map.width, pixelO = (view.o1 - view.o0) / map.height;
    figure.hovered = within ? blocks.at(t, o, 1.5 * pixelT, 1.5 * pixelO) : -1;
    const { curves } = figure, k = curves.indexAt(t), { load: loads, top, unit } = curves;
    this.readout.textContent = "clock " + countText(Math.floor(t)) + (within ? "   offset " + sizeText(Math.max(0, o * unit), 2) : "") +
      "   load " + sizeText(loads[k] * unit) + "   holes " + sizeText((top[k] - loads[k]) * unit) +
      (curves.beside.length > 0 ? "   beside " + sizeText(curves.besideOn(t)) : "");
    this.showTip(at);
    figure.drawOver();
  }

  showTip(at) {
    const { figure, tip } = this, block = figure.hovered;
    tip.hidden = block < 0;
    if (block < 0) { tip.dataset.block = ""; return; }
    if (tip.dataset.block !== String(block)) {
      tip.dataset.block = String(block);
      tip.replaceChildren(element("b", {}, figure.blocks.title(block)), facts(figure.blocks.describe(block, false)));
    }
    const room = figure.stage.clientWidth, width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(0, at.x + 16 + width > room ? at.x - 16 - width : at.x + 16) + "px";
    tip.style.top = Math.max(0, Math.min(figure.stage.clientHeight - height, at.y + 14)) + "px";
  }

  wheel(event) {
    const { figure } = this, at = this.place(event), { view } = figure;
    if (event.deltaY === 0 && event.deltaX === 0) return;
    if (event.deltaY > 0 && view.isAll) return;  // already everything: the page scrolls
    event.preventDefault();
    const delta = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 30 : 1), factor = Math.exp(Math.max(-240, Math.min(240, delta)) * 0.0022);
    const timeOnly = event.shiftKey || at.y > figure.frames_.map.y + figure.frames_.map.height;
    view.zoom(figure.clockAt(at.x), figure.offsetAt(at.y), event.altKey ? 1 : factor, timeOnly ? 1 : factor);
    figure.redraw();
  }

  zoomBy(factor) {
    const { view } = this.figure;
    view.zoom((view.t0 + view.t1) / 2, (view.o0 + view.o1) / 2, factor, factor);
    this.figure.redraw();
  }

  // The block in the middle, with its surroundings.
  show(block) {
    const { figure } = this, { view, blocks } = figure, t0 = blocks.begin[block], t1 = blocks.end[block];
    const low = blocks.offset[block], size = blocks.size[block], aroundT = Math.max(8, (t1 - t0) * 0.75), around = Math.max(4, size * 1.5);
    view.set(t0 - aroundT, t1 + aroundT, low - around, low + size + around);
    figure.redraw();
  }

  // Moves no more than necessary to make the block visible.
  reveal(block) {
    const { view, blocks } = this.figure, low = blocks.offset[block], high = low + blocks.size[block];
    const outside = blocks.end[block] <= view.t0 || blocks.begin[block] >= view.t1 || high <= view.o0 || low >= view.o1;
    if (outside) this.show(block);
  }

  key(event) {
    const { figure } = this, { view, blocks } = figure, dt = (view.t1 - view.t0) * 0.15, dofs = (view.o1 - view.o0) * 0.15;
    const actions = {
      ArrowLeft: () => view.pan(-dt, 0), ArrowRight: () => view.pan(dt, 0), ArrowUp: () => view.pan(0, dofs), ArrowDown: () => view.pan(0, -dofs),
      "+": () => this.zoomBy(0.7), "=": () => this.zoomBy(0.7), "-": () => this.zoomBy(1 / 0.7), "0": () => view.all(), Home: () => view.all(),
      "[": () => this.step(blocks.next(figure.held, -1)), "]": () => this.step(blocks.next(figure.held, 1)),
      Enter: () => { if (figure.held >= 0) this.show(figure.held); }, Escape: () => this.hold(-1),
    };
    const action = event.ctrlKey || event.metaKey ? undefined : actions[event.key];
    if (action === undefined) return;
    event.preventDefault();
    action();
    figure.redraw();
  }

  step(block) {
    if (block < 0) return;
    this.reveal(block);
    this.hold(block);
  }
}
