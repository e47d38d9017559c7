// Which view is shown, what it is about, and the jobs that run: all of it in the address, so that a view can be kept.
import { get, post, query, watch } from "./api.js";
import { h, notice, replace, seconds } from "./dom.js";
import * as open from "./open.js";
import * as ask from "./ask.js";
import * as table from "./table.js";
import * as next from "./next.js";
import * as paint from "./paint.js";
import * as compress from "./compress.js";

const VIEWS = { open, ask, table, next, paint, compress };
const place = document.getElementById("view"), tray = document.getElementById("jobs");
let leave = null, turn = 0;

export const app = {
  overview: null,
  params: {},
  view: "open",

  // Another view, or the same one about something else.
  go(view, params = {}) {
    history.pushState(null, "", address(view, params));
    return show();
  },

  // What the address says, changed in place.
  set(changes) {
    Object.assign(app.params, changes);
    history.replaceState(null, "", address(app.view, app.params));
  },

  async refresh() {
    app.overview = await get("/open.json");
    tabs();
    return app.overview;
  },

  // The model that is asked: the one in the address, or the newest that answers this kind of question.
  model(verb) {
    const able = app.overview.models.filter((one) => one.verbs.includes(verb));
    return able.find((one) => one.model === app.params.model) || able[able.length - 1];
  },

  models: (verb) => app.overview.models.filter((one) => one.verbs.includes(verb)),

  // Shows a job until it is over; then what came of it, or null.
  async follow(job, changed) {
    const line = jobLine(job);
    tray.append(line.element);
    const end = await watch(job.job, (now) => {
      line.update(now);
      changed?.(now);
    });
    line.element.remove();
    if (end.state === "failed") notice(end.error);
    else if (end.notes?.length) notice(end.notes.join(" "));
    return end.state === "done" ? end.result : null;
  },
};

const address = (view, params) => {
  const text = query(params);
  return `/${view}${text ? `?${text}` : ""}`;
};

function jobLine(job) {
  const bar = h("progress", { max: 1, "aria-label": job.title }), says = h("span", { class: "soft small num" });
  const enough = h("button", { type: "button", hidden: true, onclick: () => post("/do/finish", { job: job.job }) }, "Stop and keep the best");
  const stop = h("button", { class: "quiet", type: "button", onclick: () => post("/do/cancel", { job: job.job }) }, "Cancel");
  const element = h("div", { class: "job" }, h("div", { class: "grow" }, h("div", {}, job.title, " ", says), bar), enough, stop);
  const update = ({ state, progress }) => {
    const [done, of] = progress.steps ? [progress.step, progress.steps] : progress.step ? [progress.step, progress.steps] : [progress.done, progress.of];
    enough.hidden = !progress.checks?.length;
    if (of) bar.value = done / of;
    else bar.removeAttribute("value");
    const left = progress.left > 1 ? `, about ${seconds(progress.left)} left` : "";
    const last = progress.steps && progress.step === progress.steps && progress.checks ? ": weighing what was learned" : "";
    replace(says, state === "waiting" ? "waits for the job before it" : [progress.doing || "", of ? ` ${done} of ${of}` : "", left, last].join(""));
  };
  update({ state: job.state, progress: job.progress });
  return { element, update };
}

function tabs() {
  const able = (view) => !VIEWS[view].verb || app.overview?.models.some((one) => one.verbs.includes(VIEWS[view].verb));
  const keep = ["model", "data"].reduce((all, name) => (app.params[name] ? { ...all, [name]: app.params[name] } : all), {});
  replace(document.getElementById("tabs"), Object.keys(VIEWS).map((view) => h("a", {
    href: address(view, keep), "data-view": view, "aria-current": view === app.view ? "page" : null,
    "aria-disabled": able(view) ? null : "true", title: able(view) ? null : "No open model answers this kind of question",
  }, VIEWS[view].title)));
  document.querySelector("#tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

async function show() {
  const mine = ++turn;
  leave?.();
  leave = null;
  const name = location.pathname.slice(1) || "open";
  app.view = VIEWS[name] ? name : "open";
  app.params = {};
  for (const [key, value] of new URLSearchParams(location.search)) {
    app.params[key] = key === "target" ? [...(app.params[key] || []), value] : value;
  }
  document.title = `${VIEWS[app.view].title} · anyorder studio`;
  try {
    await app.refresh();
    if (mine !== turn) return;
    const inside = h("div");
    const ended = await VIEWS[app.view].render(inside, app);
    if (mine !== turn) return ended?.();
    leave = ended;
    replace(place, inside);
    place.dataset.shown = app.view;
  } catch (error) {
    if (mine !== turn) return;
    replace(place, h("div", { class: "card" }, h("h1", {}, "This cannot be shown"), h("p", {}, error.message),
      h("button", { type: "button", onclick: () => app.go("open") }, "Go to Open")));
  }
}

// Themes: that of the system, until somebody chooses.
const themeButton = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const theme = () => localStorage.getItem("theme") || (system.matches ? "dark" : "light");
const wear = () => {
  document.documentElement.dataset.theme = theme();
  themeButton.textContent = theme() === "dark" ? "☀" : "☾";
};
themeButton.addEventListener("click", () => {
  localStorage.setItem("theme", theme() === "dark" ? "light" : "dark");
  wear();
});
system.addEventListener("change", wear);
wear();

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-view]");
  if (!link || event.metaKey || event.ctrlKey || event.button) return;
  event.preventDefault();
  if (link.getAttribute("aria-disabled")) return notice("No open model answers this kind of question. Open or train one first.");
  history.pushState(null, "", link.href);
  show().then(() => place.focus());
});
addEventListener("popstate", show);
addEventListener("unhandledrejection", (event) => {
  if (event.reason?.name === "AbortError") return;
  notice(event.reason?.message || String(event.reason));
  if (event.reason?.name === "Refused" || event.reason instanceof TypeError) event.preventDefault();
});

await show();
for (const job of app.overview?.jobs || []) {
  if (job.state === "running" || job.state === "waiting") app.follow(job).then(show);
}
