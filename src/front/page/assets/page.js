// Keeps a screen as the server would show it now: it is fetched again, and the parts that changed take their place.

/** It changes with the screen: a deployment that runs is looked at more often. */
const everyMs = () => 1_000 * Number(document.body.dataset.every);
const offline = document.getElementById("offline");
let timer = 0;

/** Fetches the screen and replaces its live parts. Never while a question is open: its answer would be lost. */
export async function refresh() {
  clearTimeout(timer);
  if (document.visibilityState === "visible" && !isAsking()) await replaceParts();
  if (everyMs() > 0) timer = setTimeout(refresh, everyMs());
}

const isAsking = () => document.querySelector(":popover-open") !== null;

async function replaceParts() {
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { accept: "text/html" } });
    // Too many requests, or a fault of Hotpush or of a proxy in front of it: what is shown stays.
    const isAway = answer.status >= 429;
    offline.hidden = !isAway;
    if (answer.status === 401) return location.reload();
    // The address of a form that was refused has no screen: its reason stays.
    if (isAway || (answer.status === 404 && document.getElementById("refusal"))) return;
    const text = await answer.text();
    if (!isAsking()) take(new DOMParser().parseFromString(text, "text/html"));
  } catch {
    offline.hidden = false;
  }
}

function take(fresh) {
  const parts = document.querySelectorAll("[data-live]");
  if (parts.length !== fresh.querySelectorAll("[data-live]").length) return location.reload();
  for (const part of parts) {
    const other = fresh.getElementById(part.id);
    if (!other) return location.reload();
    if (bare(other) !== bare(part)) replace(part, other);
  }
  document.title = fresh.title;
  const [icon, other] = [document, fresh].map((one) => one.querySelector("link[rel=icon]"));
  if (icon.getAttribute("href") !== other.getAttribute("href")) icon.replaceWith(other);
  document.body.dataset.every = fresh.body.dataset.every;
  showTimes();
}

/** Without what differs each time: how long ago something was. */
function bare(part) {
  return part.innerHTML.replaceAll(/(<time[^>]*?)(?: title="[^"]*" data-ago="")?>[^<]*/g, "$1>");
}

function replace(part, other) {
  const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  part.replaceWith(other);
  if (focused) other.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

/** @type {[string, number, number][]} */
const units = [
  ["day", 86_400_000, 36 * 3_600_000],
  ["hour", 3_600_000, 5_400_000],
  ["minute", 60_000, 45_000],
];

function showTimes() {
  const nowMs = Date.now();
  for (const time of document.querySelectorAll("time")) {
    const { ago, since } = time.dataset;
    if (since) time.textContent = lasted(Math.max(0, nowMs - Date.parse(since)));
    if (ago === undefined) continue;
    const ms = nowMs - Date.parse(time.dateTime);
    const [name, length] = units.find(([, , from]) => ms >= from) ?? [];
    const count = Math.max(1, Math.round(ms / length));
    time.textContent = name ? `${count} ${name}${count === 1 ? "" : "s"} ago` : "just now";
    time.title = new Date(time.dateTime).toLocaleString();
  }
}

/** How long something took: `0.4 s`, `18 s`, `4 min 10 s`. */
export function lasted(ms) {
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

setInterval(showTimes, 1_000);
if (everyMs() > 0) timer = setTimeout(refresh, everyMs());
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && refresh());
