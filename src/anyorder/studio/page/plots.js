// Pictures of distributions as inline SVG. Each is drawn again when its place gets another width.
import { h, s, percent, shown, tidy, bytes } from "./dom.js";

export function plot(draw, label) {
  const ruler = h("div"), body = h("div"); // what is observed must not grow with what is drawn
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(ruler.clientWidth);
    if (now && now !== width) body.replaceChildren(draw((width = now)));
  }).observe(ruler);
  return h("div", { role: "img", "aria-label": label }, ruler, body);
}

const canvas = (width, height, ...children) =>
  s("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, height, "aria-hidden": true }, ...children);

const asNumber = (value) => (typeof value === "string" ? Date.parse(value.replace(" ", "T") + (value.length > 10 ? "Z" : "")) : value);

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// One answer: bars of a category, or the density of a number; the marginal beside it.
export function distribution(answer, options = {}) {
  return answer.kind === "category" ? categories(answer, options) : density(answer, options);
}

function categories(answer, { most = 14 } = {}) {
  const beside = new Map((answer.marginal?.probabilities || []).map((one) => [shown(one.value), one.probability]));
  const all = answer.probabilities.map((one) => ({ label: shown(one.value), value: one.probability, beside: beside.get(shown(one.value)) }));
  const bars = all.slice(0, all.length > most + 1 ? most : all.length), rest = all.slice(bars.length);
  const sum = (name) => rest.reduce((total, one) => total + (one[name] || 0), 0);
  if (rest.length) bars.push({ label: `${rest.length} others`, value: sum("value"), beside: sum("beside") });
  const label = bars.map((one) => `${one.label} ${percent(one.value)}`).join(", ");
  return plot((width) => barChart(bars, width, percent), label);
}

export function barChart(bars, width, text) {
  const longest = Math.max(...bars.map((one) => one.label.length));
  const room = Math.min(Math.max(44, 7.4 * longest), Math.max(90, width * 0.34)), right = 62, line = 27;
  const top = Math.max(...bars.map((one) => Math.max(one.value, one.beside || 0) + (one.error || 0)), 1e-12);
  const long = (value) => Math.max(0, (value / top) * (width - room - right - 10));
  return canvas(width, bars.length * line + 2, bars.map((one, k) => [
    s("text", { class: "label", x: room, y: k * line + 18, "text-anchor": "end" }, s("title", {}, one.label), clip(one.label, Math.max(6, Math.floor(room / 7)))),
    s("rect", { class: "track", x: room + 8, y: k * line + 5, width: Math.max(0, width - room - right - 10), height: 18, rx: 4 }),
    s("rect", { class: "bar", x: room + 8, y: k * line + 5, width: Math.max(1, long(one.value)), height: one.beside === undefined ? 18 : 12, rx: 3 }),
    one.beside === undefined ? null : s("rect", { class: "beside", x: room + 8, y: k * line + 18, width: Math.max(1, long(one.beside)), height: 5, rx: 2 }),
    one.error ? s("line", { class: "whisker", x1: room + 8 + long(Math.max(0, one.value - one.error)), x2: room + 8 + long(one.value + one.error), y1: k * line + 14, y2: k * line + 14 }) : null,
    s("text", { class: "label", x: width, y: k * line + 18, "text-anchor": "end" }, text(one.value)),
  ]));
}

export const bars = (list, text, label) => plot((width) => barChart(list, width, text), label);

const steps = (bins) => bins.map((one) => {
  const low = asNumber(one.low), high = asNumber(one.high);
  return { low, high, height: high > low ? one.probability / (high - low) : 0, ...{ said: one } };
});

function density(answer, { height = 190 } = {}) {
  const mine = steps(answer.bins), other = answer.marginal ? steps(answer.marginal.bins) : [];
  const interval = answer.interval, label = `median ${shown(answer.median)}, 90 % between ${shown(interval.low)} and ${shown(interval.high)}`;
  return plot((width) => {
    const all = [...mine, ...other], low = Math.min(...all.map((one) => one.low)), high = Math.max(...all.map((one) => one.high));
    const top = Math.max(...all.map((one) => one.height), 1e-300), base = height - 30;
    const x = (value) => 1 + ((asNumber(value) - low) / (high - low || 1)) * (width - 2), y = (value) => base - (value / top) * (base - 8);
    const outline = other.length ? `M${x(other[0].low)},${base}${other.map((one) => `V${y(one.height)}H${x(one.high)}`).join("")}V${base}` : "";
    return canvas(width, height,
      mine.map((one) => s("rect", { class: "area", x: x(one.low), y: y(one.height), width: Math.max(0.6, x(one.high) - x(one.low) - 0.8), height: base - y(one.height) },
        s("title", {}, `${shown(one.said.low)} to ${shown(one.said.high)}: ${percent(one.said.probability)}`))),
      outline ? s("path", { class: "ghost", d: outline }) : null,
      s("line", { class: "axis", x1: 0, x2: width, y1: base, y2: base }),
      s("line", { class: "span", x1: x(interval.low), x2: x(interval.high), y1: base + 5, y2: base + 5 }),
      s("line", { class: "mark", x1: x(answer.median), x2: x(answer.median), y1: base + 1, y2: base + 9 }),
      ticks(low, high, width, typeof answer.bins[0].low === "string").map(([place, text, anchor]) =>
        s("text", { x: Math.min(Math.max(x(place), 1), width - 1), y: height - 5, "text-anchor": anchor }, text)));
  }, label);
}

function ticks(low, high, width, dates) {
  if (dates) {
    const text = (time) => new Date(time).toISOString().slice(0, 10);
    return [[low, text(low), "start"], [(low + high) / 2, text((low + high) / 2), "middle"], [high, text(high), "end"]];
  }
  const rough = (high - low) / Math.max(2, Math.floor(width / 110)), power = 10 ** Math.floor(Math.log10(rough || 1));
  const step = [1, 2, 5, 10].map((k) => k * power).find((one) => one >= rough) || 1, found = [];
  for (let place = Math.ceil(low / step) * step; place <= high + step / 1e6; place += step) found.push(place);
  const edge = (place) => (place - low < (high - low) * 0.03 ? "start" : high - place < (high - low) * 0.03 ? "end" : "middle");
  return found.map((place) => [place, tidy(place, step * 10), edge(place)]);
}

// Small bars of a column's values.
export function spark(heights, label) {
  const wide = 8;
  return s("svg", { width: Math.max(1, heights.length) * wide, height: 20, role: "img", "aria-label": label },
    heights.map((one, k) => s("rect", { class: "bar", x: k * wide, y: 20 - one * 2.5, width: wide - 1.5, height: one * 2.5 })));
}

// Held-out nats as training goes on.
export function curve(checks) {
  return plot((width) => {
    const height = 130, held = checks.map((one) => one[2]), train = checks.map((one) => one[1]);
    const sorted = [...held, ...train].sort((a, b) => a - b);
    const low = sorted[0], high = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.94))];
    const last = checks[checks.length - 1]?.[0] || 1, first = checks[0]?.[0] || 0;
    const x = (step) => 46 + ((step - first) / (last - first || 1)) * (width - 56);
    const y = (nats) => Math.max(6, height - 24 - ((nats - low) / (high - low || 1)) * (height - 40));
    const line = (values) => values.map((nats, k) => `${k ? "L" : "M"}${x(checks[k][0]).toFixed(1)},${y(nats).toFixed(1)}`).join("");
    return canvas(width, height,
      s("line", { class: "axis", x1: 46, x2: width, y1: height - 20, y2: height - 20 }),
      s("path", { class: "line2", d: line(train) }), s("path", { class: "line", d: line(held) }),
      held.length ? s("circle", { class: "dot", cx: x(last), cy: y(held[held.length - 1]), r: 3.5 }) : null,
      s("text", { x: 40, y: y(low) + 4, "text-anchor": "end" }, tidy(low, high - low || 1)),
      high > low ? s("text", { x: 40, y: y(high) + 4, "text-anchor": "end" }, tidy(high, high - low)) : null,
      s("text", { x: width, y: height - 5, "text-anchor": "end" }, `step ${last}`));
  }, `held-out nats, ${checks.length} checks`);
}

export const sizes = (list) => bars(list.map((one) => ({ label: one.name, value: one.bytes })), bytes, list.map((one) => `${one.name} ${bytes(one.bytes)}`).join(", "));
