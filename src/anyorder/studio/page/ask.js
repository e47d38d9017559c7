// Ask: a sentence of chips; the distribution beside the marginal, what it rests on, and what moved it.
import { get, latest } from "./api.js";
import { count, h, notice, percent, remarks, replace, same, select, shown, tidy } from "./dom.js";
import { adder, chip, editor, first, says } from "./conditions.js";
import { bars, distribution } from "./plots.js";

export const title = "Ask", verb = "conditional";
const QUIET = 350; // milliseconds without a change, before what moved the answer is found out

export async function render(place, app) {
  const model = app.model(verb);
  if (!model) return void replace(place, nothing(app, "a table"));
  const info = await get("/model.json", { model: model.model }), columns = info.columns, named = (name) => columns.find((one) => one.name === name);
  const known = (text) => Object.fromEntries(Object.entries(text ? JSON.parse(text) : {}).filter(([name]) => named(name)));
  let targets = (app.params.target || []).filter(named), given = known(app.params.given), events = known(app.params.event), open = null, timer = null;
  if (!targets.length) targets = [columns[columns.length - 1].name];
  const sentence = h("div", { class: "sentence" }), edit = h("div"), answers = h("div", { class: "columns" }), chances = h("div"), moved = h("div"), calls = h("div");

  const changed = () => {
    app.set({ model: model.model, target: targets, given: Object.keys(given).length ? given : null, event: Object.keys(events).length ? events : null });
    words();
    ask();
  };
  const put = (where, name) => (value) => { where[name] = value; changed(); };
  const edited = () => replace(edit, open && (open.where === given ? given : events)[open.name] !== undefined ? editor(named(open.name), open.where[open.name], put(open.where, open.name)) : null);
  const show = (where, name) => { open = open?.name === name && open.where === where ? null : { where, name }; edited(); };
  const away = (where, name) => () => { delete where[name]; if (open?.name === name) open = null; edited(); changed(); };
  const free = () => columns.filter((one) => !targets.includes(one.name) && !(one.name in given));

  function words() {
    const target = (name) => h("span", { class: "chip target" }, select("Column asked for", [name, ...free().map((one) => one.name)], name, (other) => {
      targets[targets.indexOf(name)] = other;
      delete events[name];
      edited(); changed();
    }), targets.length > 1 ? h("button", { type: "button", class: "away", "aria-label": `Remove ${name}`, onclick: () => { targets = targets.filter((one) => one !== name); delete events[name]; edited(); changed(); } }, "✕") : null);
    replace(sentence, "What is ", targets.map((name, k) => [k ? ", " : "", target(name)]), " ", adder("another column", free(), (name) => { targets.push(name); changed(); }),
      " given ", Object.keys(given).length ? "" : h("span", { class: "soft" }, "nothing yet"),
      Object.entries(given).map(([name, value]) => [chip(named(name), value, { onopen: () => show(given, name), onaway: away(given, name) }), " "]),
      adder("a condition", free(), (name) => { given[name] = first(named(name)); open = { where: given, name }; edited(); changed(); }));
  }

  const drawAnswers = latest((answer, error) => {
    answers.classList.remove("waiting");
    if (error) return void replace(answers, h("div", { class: "card" }, h("p", {}, error.message)));
    replace(answers, answer.answers.map((one) => card(one, Object.keys(given).length > 0)));
    replace(calls, remarks(answer), same(answer, Boolean(calls.querySelector("details")?.open)));
  });
  const drawMoved = latest((found, error) => (moved.classList.remove("waiting"), replace(moved, error || !found || found.conditions.length < 1 ? null : h("section", { class: "card" },
    h("h2", {}, `What moved the answer for ${found.target}`),
    bars(found.conditions.map((one) => ({ label: `${one.condition} ${says(named(one.condition), given[one.condition] ?? "")}`, value: one.moved })), percent, "share of the probability that each condition moved"),
    h("p", { class: "soft small", style: { margin: ".5rem 0 0" } }, found.conditions.map((one) => `Without ${one.condition}: ${shown(one.without)} instead of ${shown(one.answer)}. `).join(""))))));
  const drawChance = latest((found, error) => {
    const free = targets.map(named).filter((one) => !(one.name in events));
    replace(chances, h("section", { class: "card" }, h("h2", {}, "How likely is it that …"),
      h("div", { class: "row" }, Object.entries(events).map(([name, value]) => chip(named(name), value, { onopen: () => show(events, name), onaway: away(events, name) })),
        adder(Object.keys(events).length ? "and" : "an event", free, (name) => { events[name] = first(named(name)); open = { where: events, name }; edited(); changed(); })),
      error ? h("p", {}, error.message) : found ? h("p", { class: "sentence", style: { margin: ".3rem 0 0" } }, h("b", { id: "chance" }, percent(found.probability)), h("span", { class: "soft" }, ` for ${found.event}${found.given ? ` given ${found.given}` : ""}`)) : null,
      found ? same(found) : null));
  });

  function ask() {
    answers.classList.add("waiting");
    drawAnswers((signal) => get("/ask.json", { model: model.model, target: targets, given }, signal));
    drawChance(async (signal) => (Object.keys(events).length ? get("/probability.json", { model: model.model, event: events, given }, signal) : null));
    moved.classList.add("waiting");
    clearTimeout(timer);
    timer = setTimeout(() => drawMoved(async (signal) => (Object.keys(given).length ? get("/moved.json", { model: model.model, target: targets[0], given }, signal) : null)), QUIET);
  }

  replace(place, h("div", { class: "row spread" }, h("h1", {}, "Ask"), modelChoice(app, verb, model, (other) => app.go("ask", { model: other }))), sentence, edit, answers, h("div", { style: { height: "1rem" } }), chances, moved, calls);
  words();
  edited();
  ask();
  return () => clearTimeout(timer);
}

function card(answer, conditioned) {
  const legend = conditioned ? h("div", { class: "legend" }, h("span", {}, "filled: given what is known"), h("span", {}, answer.kind === "category" ? "thin and grey: nothing known" : "dashed: nothing known")) : null;
  return h("section", { class: "card", "aria-label": `Distribution of ${answer.target}` }, h("h2", {}, answer.target), distribution(answer), legend, facts(answer));
}

export function facts(answer) {
  const rows = answer.rows === null || answer.rows === undefined ? [] : [[`training rows ${answer.exactly ? "match" : "match about"}`, count(answer.rows)]];
  const list = answer.kind === "category" ? [["likeliest", shown(answer.best)], ...rows]
    : [["median", shown(answer.median)], ["mean", tidy(answer.mean, answer.interval.high - answer.interval.low)], ["90 %", `${shown(answer.interval.low)} to ${shown(answer.interval.high)}`], ...rows];
  return h("dl", { class: "facts" }, list.map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text))));
}

export function modelChoice(app, verb, model, onchange) {
  const able = app.models(verb);
  return h("label", { class: "soft small" }, "model", select("Model", able.map((one) => ({ value: one.model, text: one.name })), model.model, onchange));
}

export function nothing(app, what) {
  const sample = what === "a table" ? "patients" : null;
  return h("div", { class: "card empty" }, h("h1", {}, `No model of ${what} is open`), h("p", {}, `Open ${what === "a table" ? "a table and let a model learn it" : "one that comes along, or train one"}.`),
    h("button", { type: "button", class: "main", onclick: () => app.go("open") }, "Go to Open"), sample ? null : null);
}
export { notice };
