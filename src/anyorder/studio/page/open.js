// Open: data and models in, kinds of columns as they are taken, training with a live curve.
import { dropped, get, post, upload } from "./api.js";
import { count, h, replace, same, select, shown, notice } from "./dom.js";
import { curve, spark } from "./plots.js";
import { drawn } from "./pixels.js";

export const title = "Open";
const KINDS = ["category", "number", "log", "linear", "leave out"];

export async function render(place, app) {
  const { data, model } = app.params;
  const about = data ? await get("/data.json", { data }) : null;
  const info = model ? await get("/model.json", { model }) : null;
  if (about) await dataset(place, app, about);
  else if (info) modelCard(place, app, info);
  else start(place, app);
}

function start(place, app) {
  const all = app.overview;
  const take = async (files) => {
    if (!files.length) return;
    busy("Reading …");
    try {
      opened(app, await upload("/upload/open", files));
    } catch (error) {
      notice(error.message);
    }
    busy("");
  };
  const says = h("p", { class: "soft small", "aria-live": "polite" });
  const busy = (text) => replace(says, text);
  const file = h("input", { type: "file", id: "file", hidden: true, onchange: (e) => take([...e.target.files]) });
  const folder = h("input", { type: "file", id: "folder", hidden: true, webkitdirectory: true, onchange: (e) => take([...e.target.files].filter((one) => !one.name.startsWith("."))) });
  const zone = h("div", { class: "drop" },
    h("p", {}, "Drop a table, a folder of images, or a model here"),
    h("div", { class: "row", style: { justifyContent: "center" } },
      h("button", { type: "button", class: "main", onclick: () => file.click() }, "Choose a file"),
      h("button", { type: "button", onclick: () => folder.click() }, "Choose a folder of images")),
    h("p", { class: "soft small", style: { margin: ".8rem 0 0" } }, ".csv, .tsv, .parquet, .xlsx, .jsonl, .npy, .ao. It stays on this machine."), says, file, folder);
  dropping(zone, take);
  const quick = (text, says, run) => h("li", {}, h("div", { class: "grow" }, h("div", {}, text), h("div", { class: "soft small" }, says)),
    h("button", { type: "button", "aria-label": `Open ${text}`, onclick: run }, "Open"));
  const openModel = async (name) => opened(app, await post("/do/open", { name }));
  replace(place,
    h("h1", {}, "What do you want to look at?"),
    h("p", { class: "lead" }, "Open some data, let a model learn them, then ask anything: any columns given any others, gaps, the next question worth asking."),
    zone, h("div", { style: { height: "1rem" } }),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", {}, "Samples"), h("ul", { class: "list" },
        all.samples.map((one) => quick(one.sample, one.says, async () => app.go("open", { data: (await post("/do/sample", { sample: one.sample })).data, effort: "0.1" }))))),
      h("section", { class: "card" }, h("h2", {}, "Models that come along"), h("ul", { class: "list" },
        all.shipped.map((name) => quick(name, "images, trained already", () => openModel(name))))),
      all.saved.length ? h("section", { class: "card" }, h("h2", {}, "Your saved models"), h("ul", { class: "list" },
        all.saved.map((name) => quick(name, "trained here", () => openModel(name))))) : null,
      all.datasets.length || all.models.length ? h("section", { class: "card" }, h("h2", {}, "Open now"), h("ul", { class: "list" },
        all.datasets.map((one) => openLine(one.name, `${one.what}, ${count(one.count)}`, () => app.go("open", { data: one.data }), { data: one.data }, app)),
        all.models.map((one) => openLine(one.name, `a model of ${one.what}`, () => app.go("open", { model: one.model }), { model: one.model }, app)))) : null));
}

function openLine(name, says, run, what, app) {
  return h("li", {}, h("div", { class: "grow" }, h("div", {}, name), h("div", { class: "soft small" }, says)),
    h("button", { type: "button", "aria-label": `Show ${name}`, onclick: run }, "Show"),
    h("button", { type: "button", class: "quiet", "aria-label": `Close ${name}`, onclick: async () => { await post("/do/close", what); app.go("open"); } }, "✕"));
}

function opened(app, found) {
  return found.model ? app.go("open", { model: found.model }) : app.go("open", { data: found.data });
}

export function dropping(zone, take) {
  zone.addEventListener("dragover", (event) => { event.preventDefault(); zone.classList.add("over"); });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    take(await dropped(event));
  });
}

async function dataset(place, app, about) {
  const kinds = {}, body = h("tbody"), settings = {};
  let effort = Number(app.params.effort) || 1;
  const line = (one) => h("tr", {},
    h("td", {}, h("b", {}, one.name)),
    h("td", {}, select(`Kind of ${one.name}`, [{ value: "", text: one.name in kinds ? "as found" : one.kind }, ...KINDS], kinds[one.name] || "", async (kind) => {
      if (kind) kinds[one.name] = kind;
      else delete kinds[one.name];
      try {
        columns((await get("/data.json", { data: about.data, kinds })).columns);
      } catch (error) {
        notice(error.message);
        delete kinds[one.name];
      }
    })),
    h("td", {}, one.histogram.length ? spark(one.histogram, `values of ${one.name}`) : ""),
    h("td", { class: "num" }, count(one.distinct)), h("td", { class: "num" }, one.gaps ? count(one.gaps) : ""),
    h("td", { class: "soft small" }, one.why));
  const columns = (list) => replace(body, list.map(line));
  if (about.columns) columns(about.columns);
  const drawing = h("div"), begin = h("button", { type: "button", class: "main" }, "Learn it");
  begin.addEventListener("click", async () => {
    begin.disabled = true;
    try {
      const job = await post("/do/train", { data: about.data, effort, settings: { ...settings, ...(Object.keys(kinds).length ? { kinds } : {}) } });
      const found = await app.follow(job, (now) => {
        if (now.progress.checks?.length > 1) replace(drawing, h("h3", {}, "Held-out nats: lower is better"), curve(now.progress.checks),
          h("div", { class: "legend" }, h("span", {}, "bold: on data held out"), h("span", {}, "thin: on what is learned")));
      });
      if (found) app.go(found.verbs.includes("conditional") ? "ask" : "paint", { model: found.model, data: about.data });
    } catch (error) {
      notice(error.message);
    }
    begin.disabled = false;
  });
  const efforts = [{ value: "0.1", text: "a glance (seconds)" }, { value: "0.3", text: "quick" }, { value: "1", text: "thorough" }, { value: "3", text: "three times as long" }];
  const own = app.overview.models.filter((one) => one.data === about.data);
  replace(place,
    h("div", { class: "row spread" }, h("h1", {}, about.name), h("a", { class: "button", href: "/open", "data-view": "open" }, "Open something else")),
    h("p", { class: "lead" }, `${count(about.count)} ${about.counted}`, about.columns ? `, ${about.columns.length} columns. Correct a kind if it was taken wrongly, then let a model learn them.` : ` of ${about.shape.join(" × ")} pixels${about.classes.length ? `, in ${about.classes.length} classes` : ""}.`),
    h("div", { class: "card" },
      h("div", { class: "row" }, h("label", {}, "Learn", select("How long to learn", efforts, String(effort), (value) => (effort = Number(value)))),
        about.settings.includes("keep_rows") ? h("label", {}, h("input", { type: "checkbox", checked: true, onchange: (e) => (settings.keep_rows = e.target.checked) }), "keep the rows in the model") : null,
        about.settings.includes("size") ? h("label", {}, "Network", select("Size of the network", ["small", "fine", "medium", "large"], "small", (value) => (settings.size = value))) : null,
        begin),
      about.settings.includes("keep_rows") ? h("p", { class: "soft small", style: { margin: ".6rem 0 0" } }, "With its rows a model answers better, and whoever gets its file can see them. Leave them out if they are private.") : null,
      drawing),
    own.length ? h("div", { class: "card" }, h("h2", {}, "Models of these data"), h("ul", { class: "list" }, own.map((one) => openLine(one.name, "", () => app.go("open", { model: one.model, data: undefined }), { model: one.model }, app)))) : null,
    about.columns
      ? h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Column", "Taken for", "Values", "Distinct", "Gaps", "Why"].map((name) => h("th", { scope: "col" }, name)))), body))
      : h("div", { class: "card" }, await thumbnails(about)));
}

async function thumbnails(about) {
  const found = await get("/pictures.json", { data: about.data, count: 24 });
  return h("div", { class: "pictures" }, found.pictures.map((one, k) => h("figure", { style: { margin: 0 } }, drawn(one), h("figcaption", { class: "soft small" }, found.labels[k] ?? ""))));
}

function modelCard(place, app, info) {
  const about = info.about;
  const facts = [["a model of", about.what], ["learned from", about.rows ? `${count(about.rows)} rows` : null], ["made of", info.parts.join(", ")],
    ["held out", about.held_out_nats ? `${about.held_out_nats.toFixed(3)} nats a row` : about.held_out_bits_per_dimension ? `${about.held_out_bits_per_dimension.toFixed(3)} bits per dimension` : null],
    ["training rows inside", about.keeps_rows ? `${count(about.keeps_rows)}: share its file as you would the table` : null]];
  const can = [["ask", "conditional", "Ask it"], ["table", "transform", "Look at a table"], ["next", "next_best", "What to ask next"], ["paint", "inpaint", "Paint"]];
  const params = { model: info.model, ...(info.data ? { data: info.data } : {}) };
  replace(place,
    h("div", { class: "row spread" }, h("h1", {}, info.name), h("a", { class: "button", href: "/open", "data-view": "open" }, "Open something else")),
    h("div", { class: "card" }, h("dl", { class: "facts" }, facts.filter((one) => one[1]).map(([name, text]) => h("div", {}, h("dt", {}, name), h("dd", {}, text)))),
      h("div", { class: "row", style: { marginTop: "1rem" } },
        can.filter((one) => info.verbs.includes(one[1])).map(([view, , text], k) => h("button", { type: "button", class: k ? "" : "main", onclick: () => app.go(view, params) }, text)),
        h("a", { class: "button", href: `/saved.ao?model=${info.model}`, download: "" }, "Download the model"))),
    info.history.length > 2 ? h("div", { class: "card" }, h("h2", {}, "Training: held-out nats"), curve(info.history.map(([step, nats]) => [step, nats, nats]))) : null,
    info.columns ? h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Column", "Kind", "Values"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, info.columns.map((one) => h("tr", {}, h("td", {}, h("b", {}, one.name)), h("td", {}, one.kind),
        h("td", { class: "soft" }, one.levels ? one.levels.slice(0, 12).map(shown).join(", ") + (one.levels.length > 12 ? ", …" : "") : `${shown(one.low)} to ${shown(one.high)}`)))))) : null,
    same({ python: `from anyorder import AnyOrder\n\nmodel = AnyOrder.load(${JSON.stringify(info.name)})`, command: `anyorder info ${info.name}` }));
}
