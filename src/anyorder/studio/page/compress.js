// Compress: files in, their size against what everybody has, and the archive out.
import { post, upload } from "./api.js";
import { bytes, h, notice, percent, replace, same } from "./dom.js";
import { sizes } from "./plots.js";
import { dropping } from "./open.js";

export const title = "Compress";

export async function render(place, app) {
  const results = h("div"), says = h("p", { class: "soft small", "aria-live": "polite" });
  let effort = 1;
  async function take(files) {
    if (!files.length) return;
    replace(says, "Reading …");
    try {
      const held = await upload("/upload/keep", files);
      replace(says, `${held.name}: ${bytes(held.bytes)}`);
      const found = await app.follow(await post("/do/compress", { upload: held.upload, effort }));
      if (found) show(found);
    } catch (error) {
      notice(error.message);
    }
    replace(says);
  }
  function show(found) {
    const [own, ...others] = found.others;
    replace(results, h("section", { class: "card" }, h("h2", {}, `${found.name}: ${bytes(found.bytes)}, ${percent(found.bytes / own.bytes)} of what it was`),
      sizes([{ name: "anyorder", bytes: found.bytes }, ...others, own]),
      h("p", { class: "soft small", style: { margin: ".7rem 0" } }, found.identical ? "Unpacked again and compared: every byte came back." : "What was unpacked differs from the file. Keep the file."),
      h("a", { class: "button", href: `/archive.aoz?upload=${found.upload}`, download: "" }, "Download the archive"), same(found)),
    found.columns.length ? h("section", { class: "card" }, h("h2", {}, "What every column takes"), sizes([...found.columns].sort((a, b) => b.bytes - a.bytes).slice(0, 30))) : null);
  }
  const file = h("input", { type: "file", hidden: true, onchange: (e) => take([...e.target.files]) });
  const folder = h("input", { type: "file", hidden: true, webkitdirectory: true, onchange: (e) => take([...e.target.files].filter((one) => !one.name.startsWith("."))) });
  const zone = h("div", { class: "drop" }, h("p", {}, "Drop a table or a folder of images here"), h("div", { class: "row", style: { justifyContent: "center" } },
    h("button", { type: "button", class: "main", onclick: () => file.click() }, "Choose a file"), h("button", { type: "button", onclick: () => folder.click() }, "Choose a folder")), says, file, folder);
  dropping(zone, take);
  replace(place, h("h1", {}, "Compress"), h("p", { class: "lead" }, "Every byte comes back. A model is learned from the file itself, and put into the archive if that makes it smaller."),
    zone, h("div", { class: "row", style: { margin: ".8rem 0" } }, h("label", {}, "effort", h("input", { type: "number", min: 0.01, max: 100, step: "any", value: 1, onchange: (e) => (effort = Number(e.target.value)) }))), results);
}
