// Puts the page together.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const blocks = new Blocks(data), colours = new Colours(data, blocks), curves = new Curves(data);
const figure = new Figure(find("stage"), blocks, colours, curves, data.figures);

function hold(block) {
  figure.held = block;
  const detail = find("detail");
  detail.hidden = block < 0;
  find("scene").classList.toggle("open", block >= 0);
  for (const held of document.querySelectorAll("tr.held")) held.classList.remove("held");
  if (block >= 0) {
    const list = element("dl", { class: "facts" });
    for (const [name, value] of blocks.describe(block, true)) {
      const long = value.includes("\n") || value.length > 40;
      list.append(element("div", { class: long ? "wide" : null }, element("dt", {}, name), element("dd", {}, value.includes("\n") ? element("pre", {}, value) : value)));
    }
    const close = element("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => hold(-1));
    detail.replaceChildren(element("h3", {}, blocks.title(block)), list, close);
    document.querySelector('tr[data-block="' + block + '"]')?.classList.add("held");
  }
  figure.drawOver();
}

const controls = new Controls(figure, find("tip"), find("readout"), hold);
const blockTable = new BlockTable(find("blocks"), find("blocks-text"), blocks, colours, (block) => {
  controls.show(block);
  hold(block);
  find("stage").scrollIntoView({ block: "nearest" });
});

drawShare(find("share"), data);
drawHoles(find("holes"), data, curves);
drawLines(find("lines-section"), find("lines-text"), find("lines"), data);
drawPeers(find("peers-section"), find("peers"), data);
drawStats(find("stats-section"), find("stats"), data.stats);
find("beside-key").hidden = data.figures.beside_bytes === 0;
find("run-section").hidden = data.run === null;
const run = data.run === null ? null : new Run(data);
if (blocks.whole) find("map-title").textContent = data.run === null ? "The packing" : "The packed recording";

for (const [mode, name] of Object.entries(colours.modes)) find("colour").append(element("option", { value: mode }, name));
find("colour").value = colours.mode;
colours.drawLegend(find("legend"));
find("colour").addEventListener("change", () => {
  colours.set(find("colour").value);
  colours.drawLegend(find("legend"));
  blockTable.draw();
  figure.refresh();
});

function search(text) {
  const matches = blocks.search(text);
  figure.matches = matches;
  find("found").textContent = matches === null ? "" : plural(matches.size, "block");
  blockTable.filter(matches);
  figure.redraw();
}

let typing = 0;
find("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => search(find("search").value), 120); });
find("search").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { find("search").value = ""; search(""); find("stage").focus(); }
  if (event.key === "Enter" && figure.matches?.size > 0) controls.step([...figure.matches].sort((a, b) => a - b).find((i) => i > figure.held) ?? Math.min(...figure.matches));
});

find("zoom-in").addEventListener("click", () => controls.zoomBy(0.6));
find("zoom-out").addEventListener("click", () => controls.zoomBy(1 / 0.6));
find("zoom-all").addEventListener("click", () => { figure.view.all(); figure.redraw(); });
find("zoom-peak").addEventListener("click", () => {
  const k = curves.peak(), span = Math.max(24, figure.view.clockEnd / 12), at = curves.at[k];
  figure.view.set(at - span / 2, at + span / 2, 0, figure.view.top);
  figure.redraw();
});
find("print").addEventListener("click", () => window.print());

// The theme: the system's, until the reader chooses one; kept for other reports if the browser lets a file do that.
const root = document.documentElement, night = window.matchMedia("(prefers-color-scheme: dark)");
function isDark() { return root.dataset.theme ? root.dataset.theme === "dark" : night.matches; }
function themed() {
  find("theme").textContent = isDark() ? "Light" : "Dark";
  find("theme").setAttribute("aria-pressed", String(isDark()));
  figure.refresh();
  run?.draw();
}
function turn() {
  root.dataset.theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("hotpack-theme", root.dataset.theme); } catch { /* not for files here */ }
  themed();
}
try { const kept = localStorage.getItem("hotpack-theme"); if (kept) root.dataset.theme = kept; } catch { /* as above */ }
find("theme").addEventListener("click", turn);
night.addEventListener("change", themed);
themed();

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); find("search").focus(); }
  if (event.key === "d") turn();
});

// On paper the figure is the page's SVG. The run is drawn again, at the paper's width and on white.
for (const event of ["beforeprint", "afterprint"]) window.addEventListener(event, () => run?.draw());

// For tests, and for the curious.
window.hotpackReport = { data, blocks, colours, curves, figure, controls, run };
