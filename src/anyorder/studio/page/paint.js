// Paint: mark what is missing of a picture, and watch its completions come about.
import { get, post } from "./api.js";
import { h, notice, replace, same, select } from "./dom.js";
import { bytesOf, drawn, heat, paintOn, textOf } from "./pixels.js";
import { modelChoice, nothing } from "./ask.js";

export const title = "Paint", verb = "inpaint";
const MISSING = [196, 84, 30];

export async function render(place, app) {
  const model = app.model(verb);
  if (!model) return void replace(place, nothing(app, "images"));
  const size = await get("/paint.json", { model: model.model }), { height, width, channels } = size, pixels = height * width;
  app.set({ model: model.model });
  let image = new Uint8Array(pixels * channels), missing = new Uint8Array(pixels).fill(1), tool = "brush", from = null, cursor = { x: width >> 1, y: height >> 1 };
  const options = { draws: 4, steps: Math.min(20, pixels), temperature: 1, label: null, seed: 0, radius: Math.max(1, Math.round(Math.min(height, width) / 14)) };
  const sheet = h("canvas", { class: "pixels paint", width, height, tabindex: 0, role: "application", "aria-label": "The picture. Orange is missing. Arrow keys move, space uses the tool." });
  const results = h("div"), thumbs = h("div", { class: "thumbs", "aria-label": "Pictures to begin with" }), says = h("p", { class: "soft small", "aria-live": "polite" });

  function show(box = null) {
    paintOn(sheet, { height, width, channels, bytes: textOf(image) });
    const context = sheet.getContext("2d", { willReadFrequently: true }), now = context.getImageData(0, 0, width, height);
    for (let k = 0; k < pixels; k++) {
      const x = k % width, y = Math.floor(k / width), inside = box && x >= box[0] && x <= box[2] && y >= box[1] && y <= box[3];
      const edge = document.activeElement === sheet && x === cursor.x && y === cursor.y;
      if (missing[k] || inside) now.data.set([...MISSING, 255], 4 * k);
      if (edge) now.data.set([70, 140, 240, 255], 4 * k);
    }
    context.putImageData(now, 0, 0);
    replace(says, `${missing.reduce((a, b) => a + b, 0)} of ${pixels} pixels are missing`);
  }

  const at = (event) => {
    const box = sheet.getBoundingClientRect();
    return { x: Math.floor(((event.clientX - box.left) / box.width) * width), y: Math.floor(((event.clientY - box.top) / box.height) * height) };
  };
  function stroke({ x, y }, value) {
    const r = options.radius - 0.5;
    for (let row = Math.ceil(y - r); row <= y + r; row++) for (let column = Math.ceil(x - r); column <= x + r; column++) {
      if (row >= 0 && column >= 0 && row < height && column < width && (row - y) ** 2 + (column - x) ** 2 <= r * r + 0.3) missing[row * width + column] = value;
    }
  }
  const boxed = (a, b) => [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];
  function fillBox([left, top, right, bottom]) {
    for (let y = Math.max(0, top); y <= Math.min(height - 1, bottom); y++) for (let x = Math.max(0, left); x <= Math.min(width - 1, right); x++) missing[y * width + x] = 1;
  }
  sheet.addEventListener("pointerdown", (event) => {
    sheet.setPointerCapture(event.pointerId);
    from = at(event);
    if (tool !== "box") stroke(from, tool === "brush" ? 1 : 0);
    show();
  });
  sheet.addEventListener("pointermove", (event) => {
    if (!from) return;
    const here = at(event);
    if (tool === "box") return show(boxed(from, here));
    const far = Math.max(1, Math.abs(here.x - from.x), Math.abs(here.y - from.y));
    for (let k = 1; k <= far; k++) stroke({ x: Math.round(from.x + ((here.x - from.x) * k) / far), y: Math.round(from.y + ((here.y - from.y) * k) / far) }, tool === "brush" ? 1 : 0);
    from = here;
    show();
  });
  sheet.addEventListener("pointerup", (event) => {
    if (from && tool === "box") fillBox(boxed(from, at(event)));
    from = null;
    show();
  });
  let corner = null;
  sheet.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (moves[event.key]) cursor = { x: Math.min(width - 1, Math.max(0, cursor.x + moves[event.key][0])), y: Math.min(height - 1, Math.max(0, cursor.y + moves[event.key][1])) };
    else if (event.key === " " && tool === "box") corner ? (fillBox(boxed(corner, cursor)), (corner = null)) : (corner = { ...cursor });
    else if (event.key === " ") stroke(cursor, tool === "brush" ? 1 : 0);
    else return;
    event.preventDefault();
    show(corner && boxed(corner, cursor));
  });
  sheet.addEventListener("focus", () => show());
  sheet.addEventListener("blur", () => show());

  const halves = { left: (x) => x < width >> 1, right: (x) => x >= width >> 1, top: (_, y) => y < height >> 1, bottom: (_, y) => y >= height >> 1 };
  const half = (name) => { for (let k = 0; k < pixels; k++) missing[k] = halves[name](k % width, Math.floor(k / width)) ? 1 : 0; show(); };
  const tools = ["brush", "box", "eraser"].map((name) => h("button", { type: "button", "aria-pressed": String(name === tool), onclick: () => {
    tool = name;
    tools.forEach((one) => one.setAttribute("aria-pressed", String(one.textContent === name)));
  } }, name));
  const take = (picture) => { image = bytesOf(picture.bytes); if (missing.every(Boolean)) half("bottom"); show(); };
  const thumb = (picture, label) => h("button", { type: "button", "aria-label": label, onclick: () => take(picture) }, drawn(picture, label));

  async function work(path, body, titled) {
    const began = replace(results, h("section", { class: "card" }, h("h2", {}, titled), h("div", { class: "pictures" }))).querySelector(".pictures");
    let shown = [];
    const update = (list) => {
      if (shown.length !== list.length) replace(began, (shown = list.map((one, k) => drawn(one, `picture ${k + 1}`))));
      else list.forEach((one, k) => paintOn(shown[k], one));
    };
    const found = await app.follow(await post(path, { model: model.model, ...body }), (now) => now.progress.pictures && update(now.progress.pictures));
    if (!found) return;
    if (found.pictures) {
      replace(began, found.pictures.map((one, k) => h("div", {}, drawn(one, `picture ${k + 1}`), h("button", { type: "button", class: "quiet small", onclick: () => { image = bytesOf(one.bytes); missing.fill(0); show(); } }, "Use it"))));
    } else {
      const map = h("canvas", { class: "pixels", width, height, role: "img", "aria-label": "how surprising every pixel is" });
      paintOn(map, found.map, heat);
      replace(began, h("div", {}, drawn({ height, width, channels, bytes: textOf(image) }, "the picture"), h("span", { class: "small soft" }, "the picture")), h("div", {}, map, h("span", { class: "small soft" }, "bright: surprising")));
      began.after(h("p", { class: "soft small" }, `Each pixel given all others: ${found.mean.toFixed(3)} nats in the mean, ${found.most.toFixed(2)} at most.`));
    }
    began.after(same(found));
  }

  const file = h("input", { type: "file", accept: "image/*", hidden: true, onchange: async (event) => {
    const bitmap = await createImageBitmap(event.target.files[0]).catch(() => null);
    if (!bitmap) return notice("This picture cannot be read.");
    const small = h("canvas", { width, height }), context = small.getContext("2d");
    context.drawImage(bitmap, 0, 0, width, height);
    const rgba = context.getImageData(0, 0, width, height).data;
    image = new Uint8Array(pixels * channels);
    for (let k = 0; k < pixels; k++) {
      const [r, g, b] = rgba.slice(4 * k, 4 * k + 3);
      if (channels === 3) image.set([r, g, b], 3 * k);
      else image[k] = Math.round(0.299 * r + 0.587 * g + 0.114 * b);
    }
    half("bottom");
  } });
  const number = (label, name, least, most, step) => h("label", {}, label, h("input", { type: "number", min: least, max: most, step, value: options[name], onchange: (e) => (options[name] = Number(e.target.value)) }));
  const drawing = () => ({ steps: options.steps, temperature: options.temperature, label: options.label, seed: options.seed++ });
  const labels = size.labels.length ? h("label", {}, "class", select("Class", [{ value: "", text: "any" }, ...size.labels], "", (value) => (options.label = value || null))) : null;
  const about = h("div", {}, h("div", { class: "card" },
    h("div", { class: "row" }, number("pictures", "draws", 1, 16, 1), number("steps", "steps", 1, 4000, 1), number("temperature", "temperature", 0.05, 5, 0.05), labels),
    h("div", { class: "row", style: { marginTop: ".9rem" } },
      h("button", { type: "button", class: "main", onclick: () => work("/do/paint", { image: textOf(image), missing: textOf(missing), draws: options.draws, ...drawing() }, "Completions") }, "Complete it"),
      h("button", { type: "button", onclick: () => work("/do/pictures", { n: options.draws, ...drawing() }, "New pictures") }, "New pictures"),
      h("button", { type: "button", onclick: () => work("/do/likelihood", { image: textOf(image) }, "How surprising every pixel is") }, "Likelihood map"))), results);
  replace(place, h("div", { class: "row spread" }, h("h1", {}, "Paint"), modelChoice(app, verb, model, (other) => app.go("paint", { model: other }))),
    h("p", { class: "lead" }, `${width} × ${height} pixels. Orange is missing and will be drawn; no other pixel is touched.`),
    h("div", { class: "columns" }, h("div", { class: "card" },
      h("div", { class: "row", style: { marginBottom: ".6rem" }, role: "toolbar", "aria-label": "Tools" }, tools, h("label", {}, "size", h("input", { type: "range", min: 1, max: Math.max(3, Math.round(width / 4)), value: options.radius, style: { width: "6rem" }, "aria-label": "Size of the brush", oninput: (e) => (options.radius = Number(e.target.value)) }))),
      sheet, says,
      h("div", { class: "row" }, ["left", "right", "top", "bottom"].map((name) => h("button", { type: "button", onclick: () => half(name) }, name)),
        h("button", { type: "button", onclick: () => { missing.fill(1); show(); } }, "all"), h("button", { type: "button", onclick: () => { missing.fill(0); show(); } }, "none")),
      h("div", { class: "row", style: { marginTop: ".6rem" } }, h("button", { type: "button", onclick: () => file.click() }, "Choose a picture"), file), thumbs), about));
  const data = app.overview.datasets.find((one) => one.data === (app.params.data || size.data));
  if (data) {
    const found = await get("/pictures.json", { data: data.data, count: 24 }).catch(() => null);
    const fitting = (found?.pictures || []).filter((one) => one.height === height && one.width === width);
    replace(thumbs, fitting.map((one, k) => thumb(one, `picture ${k} of ${data.name}`)));
    if (fitting.length) take(fitting[0]);
  }
  show();
}
