// Converts columns (tools/report/columns.h) to typed arrays, and numbers to words.

function bytesOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function column(packed) {
  const { type, count } = packed;
  if (type === "same") return new Float64Array(count).fill(packed.value);
  if (type === "steps") return Float64Array.from({ length: count }, (_, i) => packed.first + i * packed.step);
  const bytes = bytesOf(packed.data);
  if (type === "u8") return bytes;
  // Typed arrays have the machine's byte order, the file is little-endian: every machine with a browser is too.
  const kinds = { u16: Uint16Array, u32: Uint32Array, f64: Float64Array };
  return new kinds[type](bytes.buffer);
}

function columns(packed) {
  const result = {};
  for (const [name, value] of Object.entries(packed)) result[name] = typeof value === "object" && value.type ? column(value) : value;
  return result;
}

const sizeUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function sizeText(bytes, digits) {
  let unit = 0, value = bytes;
  while (value >= 1024 && unit + 1 < sizeUnits.length) { value /= 1024; ++unit; }
  return (unit === 0 ? String(Math.round(value)) : value.toFixed(digits ?? (unit < 3 ? 1 : 2))) + " " + sizeUnits[unit];
}

function countText(number) { return Math.round(number).toLocaleString("en-US").replace(/,/g, "\u202f"); }

// "None" and "all" only where they are exact.
function percentText(part, whole) {
  if (whole === 0 || part === 0) return "0 %";
  if (part === whole) return "100 %";
  const percent = 100 * part / whole;
  return (percent < 0.1 ? "< 0.1" : percent > 99.9 && percent < 100 ? "> 99.9" : percent.toFixed(1)) + " %";
}

function plural(count, word, words = word + "s") { return countText(count) + " " + (count === 1 ? word : words); }

// Binary search: returns how many of the ascending values[0, end) are less than x.
function lowerBound(values, x, end = values.length) {
  let low = 0, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

// Returns a step of 1, 2 or 5 times a power of ten, or for bytes a power of two, so that about `count` of them fill
// `span`.
function niceStep(span, count, binary) {
  const rough = span / Math.max(1, count);
  if (binary) return Math.max(1, 2 ** Math.ceil(Math.log2(rough)));
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  for (const factor of [1, 2, 5]) if (factor * power >= rough) return factor * power;
  return 10 * power;
}

// Elements with text, so that no part of a recording is ever read as markup.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") made.style.cssText = value;
    else if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  for (const child of children) made.append(child);
  return made;
}

function facts(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [name, value] of pairs) if (value !== "") list.append(element("dt", {}, name), element("dd", {}, value));
  return list;
}
