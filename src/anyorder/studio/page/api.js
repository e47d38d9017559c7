// Requests to the server that this page came from. Questions that are overtaken by newer ones are given up.

const token = document.querySelector('meta[name="studio-token"]').content;
const headers = { "X-Studio-Token": token };

export class Refused extends Error {
  name = "Refused";
}

async function read(answer) {
  const text = await answer.text();
  const document = text ? JSON.parse(text) : {};
  if (!answer.ok) throw new Refused(document.error || `The server answered ${answer.status}.`);
  return document;
}

export function query(params) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || value === null || value === "") continue;
    if (Array.isArray(value)) value.forEach((one) => found.append(name, one));
    else found.append(name, typeof value === "object" ? JSON.stringify(value) : value);
  }
  return found.toString();
}

export async function get(path, params = {}, signal = undefined) {
  const text = query(params);
  return read(await fetch(text ? `${path}?${text}` : path, { headers, signal }));
}

export async function post(path, body = {}) {
  return read(await fetch(path, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

export async function upload(path, files) {
  const form = new FormData();
  for (const file of files) form.append("file", file, file.path || file.webkitRelativePath || file.name);
  return read(await fetch(path, { method: "POST", headers, body: form }));
}

// A question asked again and again, as a slider moves: only the newest answer counts.
export function latest(show) {
  let running = null;
  return async (ask) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      const answer = await ask(mine.signal);
      if (!mine.signal.aborted) show(answer, null);
    } catch (error) {
      if (error.name !== "AbortError" && !mine.signal.aborted) show(null, error);
    }
  };
}

// Follows a job until it is over; resolves with its last state.
export function watch(job, changed) {
  return new Promise((resolve) => {
    const source = new EventSource(`/events?job=${encodeURIComponent(job)}`);
    source.onmessage = (event) => {
      const found = JSON.parse(event.data);
      changed?.(found);
      if (["done", "failed", "cancelled"].includes(found.state)) {
        source.close();
        resolve(found);
      }
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) resolve({ state: "failed", error: "The studio does not answer any more." });
    };
  });
}

// Files and folders that were dropped, each with its path inside the folder.
export async function dropped(event) {
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...event.dataTransfer.files];
  return (await Promise.all(entries.map((one) => inside(one)))).flat();
}

async function inside(entry, above = "") {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    file.path = above + entry.name;
    return file.name.startsWith(".") ? [] : [file];
  }
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    found.push(...some);
  }
  return (await Promise.all(found.map((one) => inside(one, `${above}${entry.name}/`)))).flat();
}
