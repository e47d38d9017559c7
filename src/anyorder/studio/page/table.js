// Table: a grid of any length, of which only the visible rows exist; gaps, fillings and surprises are tinted.
import { get, latest, post } from "./api.js";
import { count, h, notice, replace, same, select, shown } from "./dom.js";
import { distribution } from "./plots.js";
import { facts, modelChoice, nothing } from "./ask.js";

export const title = "Table", verb = "transform";
const LINE = 30, HEAD = 34, BLOCK = 100, MOST_HEIGHT = 12e6;

export async function render(place, app) {
  const model = app.model(verb), datasets = app.overview.datasets.filter((one) => one.what === model?.what);
  if (!model) return void replace(place, nothing(app, "a table"));
  const data = datasets.find((one) => one.data === app.params.data) || datasets.find((one) => one.data === model.data) || datasets[datasets.length - 1];
  if (!data) return void replace(place, h("div", { class: "card empty" }, h("h1", {}, "No table is open"), h("button", { type: "button", class: "main", onclick: () => app.go("open") }, "Open a table")));
  app.set({ model: model.model, data: data.data });
  const info = await get("/model.json", { model: model.model }), known = new Set(info.columns.map((one) => one.name));
  let about = await get("/table.json", { data: data.data, start: 0, count: BLOCK }), blocks = new Map([[0, about]]), active = { row: 0, place: 0 };
  const columns = about.columns, side = h("aside", { class: "card", "aria-label": "The cell", "aria-live": "polite" }), says = h("span", { class: "soft small num" }), calls = h("div");
  const inner = h("div", { class: "inner" });
  const grid = h("div", { class: "grid", role: "grid", tabindex: 0, "aria-label": `${data.name}, ${count(about.rows)} rows`, "aria-rowcount": about.rows + 1, "aria-colcount": columns.length });
  const head = h("div", { class: "head", role: "row" }, h("div", { class: "cell number" }, ""), columns.map((name) => h("div", { class: "cell", role: "columnheader", title: name }, name)));
  const lines = new Map();

  const height = () => Math.min(MOST_HEIGHT, about.rows * LINE);
  // A browser cannot lay out arbitrarily tall pages: beyond some height the scroll bar stands for rows, not for pixels.
  const firstRow = () => {
    const room = grid.clientHeight - HEAD, most = about.rows * LINE - room;
    return height() < about.rows * LINE ? Math.floor(((grid.scrollTop / Math.max(1, height() - room)) * Math.max(0, most)) / LINE) : Math.floor(grid.scrollTop / LINE);
  };
  const offset = (row, first) => HEAD + (height() < about.rows * LINE ? grid.scrollTop + (row - first) * LINE : row * LINE);

  async function block(number) {
    if (!blocks.has(number)) {
      blocks.set(number, null);
      const found = await get("/table.json", { data: data.data, start: number * BLOCK, count: BLOCK });
      blocks.set(number, found);
      draw();
    }
    return blocks.get(number);
  }

  function draw() {
    inner.style.height = `${height() + HEAD}px`;
    const first = firstRow(), last = Math.min(about.rows, first + Math.ceil(grid.clientHeight / LINE) + 4);
    const wanted = new Set();
    for (let row = Math.max(0, first - 3); row < last; row++) {
      wanted.add(row);
      const old = lines.get(row), found = blocks.get(Math.floor(row / BLOCK));
      if (found === undefined) block(Math.floor(row / BLOCK));
      if (!old || (old.empty && found)) {
        old?.element.remove();
        const made = { element: line(row, found), empty: !found };
        lines.set(row, made);
        inner.append(made.element);
      }
      lines.get(row).element.style.top = `${offset(row, first)}px`;
    }
    for (const [row, one] of lines) if (!wanted.has(row)) { one.element.remove(); lines.delete(row); }
    mark();
    replace(says, `${count(about.rows)} rows, ${count(about.gaps)} gaps`, about.filled ? `, ${count(about.filled)} filled` : "", about.odd ? `, ${count(about.odd)} surprising` : "");
  }

  function line(row, found) {
    const cells = found?.cells[row - found.start] || columns.map(() => "…");
    const marks = new Map((found?.marks || []).filter((one) => one.row === row).map((one) => [one.column, one]));
    return h("div", { class: "line", role: "row", "aria-rowindex": row + 2 }, h("div", { class: "cell number", role: "rowheader" }, row),
      cells.map((value, k) => {
        const said = marks.get(columns[k]), gap = value === null;
        const kind = gap ? (known.has(columns[k]) ? "gap" : "") : said?.how ? "filled" : said?.why ? "odd" : "";
        const why = gap ? "a gap" : said?.how ? `${said.how}${"low" in said ? `; 90 %: ${shown(said.low)} to ${shown(said.high)}` : ""}` : said?.why || shown(value);
        return h("div", { class: `cell ${kind}`, role: "gridcell", id: `c${row}-${k}`, title: why, "aria-label": `${columns[k]}, row ${row}: ${gap ? "gap" : shown(value)}${kind && !gap ? `, ${why}` : ""}` }, gap ? "·" : shown(value));
      }));
  }

  function mark() {
    grid.querySelector(".active")?.classList.remove("active");
    const cell = document.getElementById(`c${active.row}-${active.place}`);
    cell?.classList.add("active");
    if (cell) grid.setAttribute("aria-activedescendant", cell.id);
  }

  function move(row, place) {
    active = { row: Math.min(Math.max(row, 0), about.rows - 1), place: Math.min(Math.max(place, 0), columns.length - 1) };
    const top = (active.row * LINE * height()) / (about.rows * LINE), room = grid.clientHeight - HEAD - LINE;
    if (top < grid.scrollTop) grid.scrollTop = top;
    if (top > grid.scrollTop + room) grid.scrollTop = top - room;
    draw();
    document.getElementById(`c${active.row}-${active.place}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  async function reload() {
    blocks = new Map();
    lines.forEach((one) => one.element.remove());
    lines.clear();
    about = await block(Math.floor(active.row / BLOCK));
    draw();
  }

  const drawSide = latest((found, error) => {
    side.classList.remove("waiting");
    if (error) return void replace(side, h("h2", {}, "This cell"), h("p", {}, error.message));
    const column = info.columns.find((one) => one.name === found.column);
    const tell = (value, how) => async () => {
      await post("/do/cell", { model: model.model, data: data.data, row: found.row, column: found.column, value, how });
      await reload();
      show();
    };
    const typed = column.levels ? select(`Value of ${found.column}`, column.levels.map(String), String(found.now ?? found.best), () => {}) : h("input", { class: "value", "aria-label": `Value of ${found.column}`, type: typeof column.low === "string" ? "date" : "number", step: "any", value: shown(found.now ?? found.best).slice(0, 12) });
    const read = () => (column.levels ? column.levels.find((one) => String(one) === typed.value) : typed.type === "date" ? typed.value : Number(typed.value));
    replace(side, h("h2", {}, `${found.column}, row ${found.row}`), h("p", { class: "soft small" }, found.now === null ? "A gap. Given the rest of its row it is:" : `It says ${shown(found.now)}. Given the rest of its row one would expect:`),
      distribution(found, { most: 8, height: 130 }), facts(found),
      h("div", { class: "row", style: { marginTop: ".9rem" } }, h("button", { type: "button", class: "main", onclick: tell(found.best, "accepted") }, `Take ${shown(found.best)}`),
        h("button", { type: "button", onclick: async () => { await post("/do/draw", { model: model.model, data: data.data, row: found.row, column: found.column }); await reload(); show(); } }, "Draw"),
        h("button", { type: "button", onclick: tell(null, "typed") }, "As it was")),
      h("div", { class: "row", style: { marginTop: ".5rem" } }, typed, h("button", { type: "button", onclick: () => tell(read(), "typed")() }, "Set")), same(found));
  });

  function show() {
    const column = columns[active.place];
    if (!known.has(column)) return void replace(side, h("h2", {}, column), h("p", { class: "soft" }, "This column is not in the model: it was left out when the table was learned."));
    side.classList.add("waiting");
    drawSide((signal) => get("/cell.json", { model: model.model, data: data.data, row: active.row, column }, signal));
  }

  grid.addEventListener("scroll", () => requestAnimationFrame(draw));
  grid.addEventListener("click", (event) => {
    const cell = event.target.closest("[role=gridcell]");
    if (!cell) return;
    const [row, where] = cell.id.slice(1).split("-").map(Number);
    active = { row, place: where };
    mark();
    show();
  });
  const page = () => Math.max(1, Math.floor((grid.clientHeight - HEAD) / LINE) - 1);
  const keys = { ArrowDown: () => [1, 0], ArrowUp: () => [-1, 0], ArrowRight: () => [0, 1], ArrowLeft: () => [0, -1], PageDown: () => [page(), 0], PageUp: () => [-page(), 0], Home: () => [0, -1e9], End: () => [0, 1e9] };
  grid.addEventListener("keydown", (event) => {
    if (event.target !== grid) return;
    if (keys[event.key]) {
      const [down, right] = event.ctrlKey && ["Home", "End"].includes(event.key) ? [event.key === "Home" ? -1e9 : 1e9, 0] : keys[event.key]();
      move(active.row + down, active.place + right);
    } else if (event.key === "Enter" || event.key === " ") show();
    else if (event.key === "n") nextGap();
    else return;
    event.preventDefault();
  });

  async function nextGap() {
    for (let number = Math.floor(active.row / BLOCK); number * BLOCK < about.rows; number++) {
      const found = (await block(number)) || (await get("/table.json", { data: data.data, start: number * BLOCK, count: BLOCK }));
      for (let k = 0; k < found.cells.length; k++) {
        const row = found.start + k;
        if (row < active.row) continue;
        const where = found.cells[k].findIndex((one, j) => one === null && known.has(columns[j]) && (row > active.row || j > active.place));
        if (where >= 0) return move(row, where), show();
      }
    }
    notice("There is no further gap.");
  }

  const work = async (path) => {
    const found = await app.follow(await post(path, { model: model.model, data: data.data }));
    if (!found) return;
    await reload();
    replace(calls, same(found));
    if (found.top?.length) replace(side, h("h2", {}, "The most surprising cells"), h("ul", { class: "list" }, found.top.slice(0, 12).map((one) => h("li", {}, h("div", { class: "grow" },
      h("div", {}, `row ${one.row}, ${one.column}: `, h("b", {}, shown(one.value))), h("div", { class: "soft small" }, one.why)),
    h("button", { type: "button", "aria-label": `Show row ${one.row}`, onclick: () => { move(one.row, columns.indexOf(one.column)); show(); } }, "Show")))));
    else if (path.endsWith("surprises")) notice("No cell is surprising: none has a chance below one in a thousand.");
  };
  replace(side, h("h2", {}, "The cell"), h("p", { class: "soft" }, "Choose a cell with the mouse, or with the arrow keys and Enter; n goes to the next gap."));
  inner.append(head);
  grid.append(inner);
  replace(place, h("div", { class: "row spread" }, h("h1", {}, data.name),
    h("div", { class: "row" }, datasets.length > 1 ? h("label", { class: "soft small" }, "table", select("Table", datasets.map((one) => ({ value: one.data, text: one.name })), data.data, (other) => app.go("table", { model: model.model, data: other }))) : null,
      modelChoice(app, verb, model, (other) => app.go("table", { model: other, data: data.data })))),
  h("div", { class: "row", style: { margin: ".2rem 0 .8rem" } }, h("button", { type: "button", class: "main", onclick: () => work("/do/fill") }, "Fill all gaps"),
    h("button", { type: "button", onclick: () => work("/do/surprises") }, "Find surprising cells"), h("button", { type: "button", onclick: nextGap }, "Next gap"),
    h("button", { type: "button", onclick: async () => { await post("/do/restore", { data: data.data }); await reload(); } }, "Undo all"),
    h("a", { class: "button", href: `/export.csv?data=${data.data}`, download: "" }, "Export csv"), says),
  h("div", { class: "with-side" }, h("div", {}, grid, h("div", { class: "legend" }, h("span", {}, h("i", { class: "key gap" }), "a gap"), h("span", {}, h("i", { class: "key filled" }), "filled in"), h("span", {}, h("i", { class: "key odd" }), "surprising: the reason shows when you point at it")), calls), side));
  const watcher = new ResizeObserver(draw);
  watcher.observe(grid);
  return () => watcher.disconnect();
}
