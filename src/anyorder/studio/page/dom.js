// Elements, and numbers as a person reads them. Text is only ever set as text: nothing from a table becomes markup.

export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function s(tag, props = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  if (tagged(element) && props.value !== undefined) element.value = props.value; // once the options are there
  return element;
}

const tagged = (element) => element.tagName === "SELECT";

export const percent = (p) =>
  p > 0 && p < 0.0005 ? "<0.1 %" : p < 1 && p >= 0.9995 ? ">99.9 %" : `${(100 * p).toFixed(1)} %`;

export const count = (n) => Number(n).toLocaleString("en");

export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value.replace(/ 00:00:00$/, "");
  if (typeof value !== "number") return String(value);
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}

export const tidy = (value, range) => {
  if (typeof value !== "number" || !(range > 0)) return shown(value);
  const digits = Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(range))));
  return shown(Number(value.toFixed(digits)));
};

export const bytes = (n) => {
  const units = ["bytes", "kB", "MB", "GB"];
  let unit = 0;
  while (n >= 1000 && unit < 3) [n, unit] = [n / 1000, unit + 1];
  return `${unit ? n.toPrecision(3) : Math.round(n)} ${units[unit]}`;
};

export const seconds = (n) => (n < 90 ? `${Math.max(1, Math.round(n))} s` : `${Math.round(n / 60)} min`);

export function replace(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return place;
}

export function select(label, options, value, onchange, props = {}) {
  const made = options.map((one) => (typeof one === "string" ? { value: one, text: one } : one));
  const items = made.map((one) => h("option", { value: one.value }, one.text));
  return h("select", { "aria-label": label, value, onchange: (event) => onchange(event.target.value), ...props }, items);
}

export function notice(text) {
  const place = document.getElementById("notice");
  place.hidden = !text;
  replace(place, text || "");
  clearTimeout(notice.timer);
  if (text) notice.timer = setTimeout(() => (place.hidden = true), 9000);
}

// What the library remarked about an answer.
export const remarks = (answer) => answer.notes?.length ? h("p", { class: "soft small remark" }, answer.notes.join(" ")) : null;

// The same answer in Python and on the command line, to copy.
export function same(answer, open = false) {
  const one = (title, text) => [
    h("h3", {}, title, h("button", { class: "quiet small", type: "button", onclick: (e) => copy(text, e.target) }, "Copy")),
    h("pre", {}, text),
  ];
  return h("details", { class: "same", open }, h("summary", {}, "The same in Python and on the command line"),
    one("Python", answer.python), answer.command ? one("Command line", answer.command) : null);
}

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
