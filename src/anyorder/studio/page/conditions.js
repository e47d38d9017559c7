// Conditions as chips, and the editor of one: a value, a range with two handles, a set.
import { h, replace, select, shown, tidy } from "./dom.js";

const time = (text) => Date.parse(`${text.slice(0, 10)}T00:00Z`) / 864e5;
const day = (number) => new Date(Math.round(number) * 864e5).toISOString().slice(0, 10);

export const isDate = (column) => typeof column.low === "string";

export function says(column, value) {
  if (value === null || typeof value !== "object") return shown(value);
  if (value.in) return value.in.map(shown).join(" or ");
  const low = value.low ?? null, high = value.high ?? null;
  if (low === null) return `at most ${shown(high)}`;
  return high === null ? `at least ${shown(low)}` : `${shown(low)} to ${shown(high)}`;
}

// What a new condition says at first.
export function first(column) {
  if (column.levels) return column.levels[0];
  if (isDate(column)) return { low: day(time(column.low)), high: day(time(column.high)) };
  const span = column.high - column.low;
  return { low: onto(column, column.low + span / 4), high: onto(column, column.high - span / 4) };
}

const onto = (column, number) => {
  const step = column.step || 1, digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return Number((Math.round(number / step) * step).toFixed(Math.min(digits, 12)));
};

export function chip(column, value, { onopen, onaway, className = "chip", label }) {
  return h("span", { class: className },
    h("button", { type: "button", onclick: onopen, "aria-label": label || `Change ${column.name}: ${says(column, value)}` }, `${column.name} `, h("b", {}, says(column, value))),
    h("button", { type: "button", class: "away", "aria-label": `Remove ${column.name}`, onclick: onaway }, "✕"));
}

export function adder(label, columns, onadd) {
  if (!columns.length) return null;
  return select(label, [{ value: "", text: `+ ${label}` }, ...columns.map((one) => ({ value: one.name, text: one.name }))], "", (name) => name && onadd(name), { class: "add" });
}

// The editor of a condition; `changed` is told every new value.
export function editor(column, value, changed, { single = false } = {}) {
  const body = column.levels ? levels(column, value, changed, single) : numbers(column, value, changed, single);
  return h("div", { class: "card editor", role: "group", "aria-label": `Condition on ${column.name}` }, h("h3", {}, column.name), body);
}

function levels(column, value, changed, single) {
  const chosen = new Set((value?.in || [value]).map(String));
  const tell = () => {
    const list = column.levels.filter((one) => chosen.has(String(one)));
    if (list.length) changed(list.length === 1 ? list[0] : { in: list });
  };
  const shape = single ? "radio" : "checkbox";
  return h("div", { class: "levels" }, column.levels.map((one) => h("label", {},
    h("input", { type: shape, name: `level of ${column.name}`, checked: chosen.has(String(one)), onchange: (event) => {
      if (single) chosen.clear();
      if (event.target.checked) chosen.add(String(one));
      else chosen.delete(String(one));
      tell();
    } }), shown(one))));
}

function numbers(column, value, changed, single) {
  const dates = isDate(column), place = h("div");
  const isRange = () => !single && value !== null && typeof value === "object";
  const field = (now, label, told) => h("input", {
    class: "value", type: dates ? "date" : "number", step: dates ? null : "any", value: now === null || now === undefined ? "" : dates ? String(now).slice(0, 10) : now,
    "aria-label": `${label} of ${column.name}`, onchange: (event) => told(event.target.value === "" ? null : dates ? event.target.value : Number(event.target.value)),
  });
  const tell = () => {
    if (isRange() ? value.low !== null || value.high !== null : value !== null) changed(value);
  };
  const range = () => {
    const low = field(value.low, "low end", (end) => { value = { ...value, low: end }; draw(); tell(); });
    const high = field(value.high, "high end", (end) => { value = { ...value, high: end }; draw(); tell(); });
    const slider = two(column, value, (ends) => {
      value = ends;
      [low.value, high.value] = [ends.low ?? "", ends.high ?? ""];
      tell();
    });
    return h("div", { class: "row" }, low, slider, high);
  };
  const exact = () => {
    const number = field(value, "value", (now) => { value = now; slide.value = dates ? time(String(now)) : now; tell(); });
    const slide = h("input", { type: "range", min: dates ? time(column.low) : column.low, max: dates ? time(column.high) : column.high, step: dates ? 1 : column.step || "any",
      value: dates ? time(String(value)) : value, style: { flex: 1 }, "aria-label": `${column.name}, slider`, oninput: (event) => {
        value = dates ? day(event.target.value) : onto(column, Number(event.target.value));
        number.value = value;
        tell();
      } });
    return h("div", { class: "row" }, number, slide);
  };
  const draw = () => replace(place, single ? null : h("div", { class: "row", style: { marginBottom: ".5rem" } },
    h("button", { type: "button", "aria-pressed": String(isRange()), onclick: () => { if (!isRange()) { value = around(column, value); draw(); tell(); } } }, "range"),
    h("button", { type: "button", "aria-pressed": String(!isRange()), onclick: () => { if (isRange()) { value = middle(column, value); draw(); tell(); } } }, "one value")),
  isRange() ? range() : exact());
  draw();
  return place;
}

const middle = (column, { low, high }) => {
  const [a, b] = [low ?? column.low, high ?? column.high];
  return isDate(column) ? day((time(a) + time(b)) / 2) : onto(column, (a + b) / 2);
};

function around(column, value) {
  if (isDate(column)) return { low: day(time(String(value)) - 30), high: day(time(String(value)) + 30) };
  const span = (column.high - column.low) / 10;
  return { low: onto(column, Math.max(column.low, value - span)), high: onto(column, Math.min(column.high, value + span)) };
}

// A slider with two handles; an end at the edge of what was seen is open.
function two(column, value, changed) {
  const dates = isDate(column), number = (one) => (dates ? time(String(one)) : one);
  const least = number(column.low), most = number(column.high), step = dates ? 1 : column.step || (most - least) / 500;
  const ends = [value.low === null || value.low === undefined ? least : number(value.low), value.high === null || value.high === undefined ? most : number(value.high)];
  const within = h("div", { class: "within" });
  const draw = () => {
    const at = (one) => (100 * (Math.min(Math.max(one, least), most) - least)) / (most - least || 1);
    Object.assign(within.style, { left: `${at(ends[0])}%`, right: `${100 - at(ends[1])}%` });
  };
  const handle = (which, label) => h("input", { type: "range", min: least, max: most, step, value: ends[which], "aria-label": `${label} of ${column.name}, slider`,
    "aria-valuetext": says(column, value), oninput: (event) => {
      const other = ends[1 - which];
      ends[which] = which ? Math.max(Number(event.target.value), other) : Math.min(Number(event.target.value), other);
      event.target.value = ends[which];
      draw();
      const back = (one) => (dates ? day(one) : onto(column, one));
      changed({ low: back(ends[0]), high: back(ends[1]) });
    } });
  draw();
  return h("div", { class: "two" }, h("div", { class: "rail" }), within, handle(0, "low end"), handle(1, "high end"));
}

export { tidy };
