// Next question: what is worth measuring, what it would tell for its price, and when to stop.
import { get, latest } from "./api.js";
import { h, replace, same, select, shown } from "./dom.js";
import { chip, isDate } from "./conditions.js";
import { bars, distribution } from "./plots.js";
import { facts, modelChoice, nothing } from "./ask.js";

export const title = "Next question", verb = "next_best";

export async function render(place, app) {
  const model = app.model(verb);
  if (!model) return void replace(place, nothing(app, "a table"));
  const info = await get("/model.json", { model: model.model }), columns = info.columns, named = (name) => columns.find((one) => one.name === name);
  const json = (text) => (text ? JSON.parse(text) : {});
  let target = app.params.target?.find(named) || columns[columns.length - 1].name, known = json(app.params.known), prices = json(app.params.prices), together = json(app.params.together);
  let budget = app.params.budget || "", worth = app.params.worth || "";
  const left = h("div"), right = h("div"), facts_ = h("div", { class: "sentence" }), calls = h("div"), spent = h("p", { class: "soft" });

  // Prices of columns and groups as the question wants them: what shares a group costs its sum.
  function priced() {
    const any = columns.some((one) => prices[one.name] !== undefined || together[one.name]);
    if (!any) return {};
    const costs = {}, groups = {};
    for (const { name } of columns) {
      if (name === target) continue;
      const price = prices[name] ?? 1, group = together[name];
      if (group) (groups[group] ||= []).push(name), (costs[group] = (costs[group] || 0) + price);
      else costs[name] = price;
    }
    return { costs, ...(Object.keys(groups).length ? { groups } : {}) };
  }

  const cost = () => {
    const { costs, groups } = priced(), names = Object.keys(known);
    if (!costs) return names.length;
    const groupsOf = new Set(names.map((name) => together[name] || name));
    return [...groupsOf].reduce((total, one) => total + (costs[one] ?? 0), groups ? 0 : 0);
  };

  const drawn = latest((found, error) => {
    left.classList.remove("waiting");
    if (error) return void replace(left, h("div", { class: "card" }, h("p", {}, error.message)));
    const lines = found.measurements, best = lines.find((one) => one.advised);
    replace(left, h("section", { class: "card" },
      h("h2", {}, found.stop ? "Stop here" : `Ask for ${best ? best.measurement : lines[0].measurement}`),
      h("p", { class: "soft" }, found.stop ? `${found.stop[0].toUpperCase()}${found.stop.slice(1)}.` : "It is expected to tell most for its price. Bars: bits of information about the target."),
      lines.length ? bars(lines.map((one) => ({ label: one.cost === 1 ? one.measurement : `${one.measurement} (${shown(one.cost)})`, value: Math.max(0, one.gain) / Math.LN2, error: one.standard_error / Math.LN2 })), (bits) => `${bits.toFixed(3)} bit`, "expected information of each measurement") : null,
      lines.length ? entry(lines, best) : null));
    replace(right, h("section", { class: "card" }, h("h2", {}, found.target), distribution(found.distribution),
      Object.keys(known).length ? h("div", { class: "legend" }, h("span", {}, "filled: given what is known"), h("span", {}, "dashed: nothing known")) : null, facts(found.distribution)));
    replace(calls, same(found));
    replace(spent, `Spent so far: ${shown(cost())}`);
  });

  function entry(lines, best) {
    const groups = priced().groups || {}, choices = [...new Set(lines.flatMap((one) => groups[one.measurement] || [one.measurement]))].filter((name) => !(name in known));
    let name = (groups[best?.measurement] || [best?.measurement])[0];
    if (!choices.includes(name)) name = choices[0];
    const line = h("form", { class: "row", style: { marginTop: "1rem" } });
    const draw = () => {
      const column = named(name);
      const value = column.levels ? select(`Value of ${name}`, [{ value: "", text: "choose …" }, ...column.levels.map(String)], "", () => {})
        : h("input", { class: "value", type: isDate(column) ? "date" : "number", step: "any", "aria-label": `Value of ${name}`, id: "measured", placeholder: "value" });
      replace(line, "It was measured: ", select("What was measured", choices, name, (other) => { name = other; draw(); }), value, h("button", { class: "main" }, "That is so"));
      line.onsubmit = (event) => {
        event.preventDefault();
        if (value.value === "") return;
        known[name] = column.levels ? column.levels.find((one) => String(one) === value.value) : isDate(column) ? value.value : Number(value.value);
        changed();
      };
    };
    draw();
    return line;
  }

  function words() {
    replace(facts_, "To know ", h("span", { class: "chip target" }, select("What you finally want to know", columns.map((one) => one.name), target, (name) => { target = name; delete known[name]; delete together[name]; changed(true); })),
      Object.keys(known).length ? ", when it is known that " : ", when nothing is known yet",
      Object.entries(known).map(([name, value]) => [chip(named(name), value, { onopen: () => {}, label: `${name} is ${shown(value)}`, onaway: () => { delete known[name]; changed(); } }), " "]));
  }

  function changed(all = false) {
    app.set({ model: model.model, target: [target], known: some(known), prices: some(prices), together: some(together), budget, worth });
    words();
    if (all) table();
    left.classList.add("waiting");
    const options = priced(), room = budget === "" ? undefined : Math.max(0, Number(budget) - cost());
    drawn((signal) => get("/next.json", { model: model.model, target, known, ...options, budget: room, worth: worth === "" ? undefined : Number(worth) }, signal));
  }
  const some = (one) => (Object.keys(one).length ? one : null);
  const number = (label, value, told) => h("input", { type: "number", min: 0, step: "any", value, "aria-label": label, placeholder: "no limit", onchange: (e) => told(e.target.value) });
  const body = h("tbody");
  const table = () => replace(body, columns.filter((one) => one.name !== target).map(({ name }) => h("tr", {}, h("td", {}, name),
    h("td", {}, h("input", { type: "number", min: 0, step: "any", value: prices[name] ?? "", placeholder: "1", "aria-label": `Cost of ${name}`, onchange: (e) => { if (e.target.value === "") delete prices[name]; else prices[name] = Number(e.target.value); changed(); } })),
    h("td", {}, h("input", { class: "value", value: together[name] || "", "aria-label": `Group of ${name}`, onchange: (e) => { if (e.target.value.trim()) together[name] = e.target.value.trim(); else delete together[name]; changed(); } })))));
  replace(place, h("div", { class: "row spread" }, h("h1", {}, "Next question"), modelChoice(app, verb, model, (other) => app.go("next", { model: other }))), facts_,
    h("div", { class: "row", style: { marginBottom: ".9rem" } }, h("label", {}, "budget", number("Budget", budget, (value) => { budget = value; changed(); })),
      h("label", {}, "a nat is worth", number("What a nat is worth", worth, (value) => { worth = value; changed(); })), spent),
    h("div", { class: "columns" }, left, right), h("div", { style: { height: "1rem" } }),
    h("details", { class: "card" }, h("summary", {}, "Costs and groups"), h("p", { class: "soft small" }, "Columns with the same group are measured together, for the sum of their costs."),
      h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Column", "Cost", "Group"].map((one) => h("th", { scope: "col" }, one)))), body))), calls);
  changed(true);
}
