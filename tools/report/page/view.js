// The visible part of the placement: clock [t0, t1) and offsets [o0, o1) in units.

class View {
  constructor(clockEnd, top) {
    this.clockEnd = Math.max(1, clockEnd);
    this.top = Math.max(1, top);
    this.all();
  }

  all() {
    [this.t0, this.t1, this.o0, this.o1] = [0, this.clockEnd, 0, this.top];
  }

  get isAll() { return this.t0 <= 0 && this.t1 >= this.clockEnd && this.o0 <= 0 && this.o1 >= this.top; }

  // Within the whole, and no closer than a few ticks and units.
  set(t0, t1, o0, o1) {
    const fit = (low, high, most, least) => {
      const span = Math.min(most, Math.max(Math.min(least, most), high - low));
      const from = Math.min(most - span, Math.max(0, (low + high - span) / 2));
      return [from, from + span];
    };
    [this.t0, this.t1] = fit(t0, t1, this.clockEnd, 4);
    [this.o0, this.o1] = fit(o0, o1, this.top, 2);
  }

  // Zooms about a fixed point; factors below 1 go closer.
  zoom(t, o, factorT, factorO) {
    const move = (low, high, at, factor, most) => {
      const span = Math.min(most, (high - low) * factor), share = (at - low) / (high - low);
      return [at - span * share, at + span * (1 - share)];
    };
    const [t0, t1] = move(this.t0, this.t1, t, factorT, this.clockEnd), [o0, o1] = move(this.o0, this.o1, o, factorO, this.top);
    const hold = (low, high, most) => (low < 0 ? [0, high - low] : high > most ? [low - (high - most), most] : [low, high]);
    this.set(...hold(t0, t1, this.clockEnd), ...hold(o0, o1, this.top));
  }

  pan(dt, dofs) {
    const t = Math.min(this.clockEnd - this.t1, Math.max(-this.t0, dt)), o = Math.min(this.top - this.o1, Math.max(-this.o0, dofs));
    this.t0 += t; this.t1 += t; this.o0 += o; this.o1 += o;
  }
}
