// The log on the screen, and everything that a person can do with it.

import { createChoice } from "./log-choice.js";
import { createFollow } from "./log-follow.js";
import { listenToKeys } from "./log-keys.js";
import { createLook } from "./log-look.js";
import { makeRow } from "./log-row.js";
import { createSearch } from "./log-search.js";
import { createSections } from "./log-sections.js";

/**
 * @param {HTMLElement} section
 * @param {import("./log-sections.js").Log} log it grows
 */
export function createView(section, log) {
  const body = document.getElementById("lines");
  const look = createLook(section, log);
  const rowsOf = (index) => look.rowsOf(log.lines[index]);
  const sections = createSections(body, log, [rowAt, rowsOf, look.rowHeight]);
  const following = createFollow(section);
  const choice = createChoice({ count: () => log.lines.length, show, filled: sections.filled });
  const search = createSearch({ lines: log.lines, show, filled: sections.filled });
  let [isDrawQueued, lastWidth, shown] = [false, 0, -1];

  function rowAt(index) {
    const line = log.lines[index];
    const row = makeRow(line, index + 1, look.timeText(line.printedMs));
    choice.mark(row, index);
    queueDraw();
    return row;
  }

  /** Once for all rows that are made now. */
  function queueDraw() {
    if (isDrawQueued) return;
    isDrawQueued = true;
    queueMicrotask(() => {
      isDrawQueued = false;
      search.draw();
    });
  }

  function show(index) {
    const row = sections.reveal(index);
    if (!row) return;
    shown = index;
    if (following.isOn()) following.toggle();
    row.scrollIntoView({ block: "center", behavior: "instant" });
    // The lines around it get their true heights when they are filled, which may move it.
    requestAnimationFrame(() => requestAnimationFrame(() => shown === index && settle(row)));
  }

  function settle(row) {
    const { top, bottom } = row.getBoundingClientRect();
    if (row.isConnected && (top < 120 || bottom > innerHeight - 20))
      row.scrollIntoView({ block: "center", behavior: "instant" });
  }

  /** The steps beside the log lead to their parts of it. */
  function openNamedStep() {
    const isStep = /^#step-\d+$/.test(location.hash);
    const step = isStep ? /** @type {HTMLDetailsElement} */ (body.querySelector(location.hash)) : null;
    if (!step) return false;
    step.open = true;
    step.scrollIntoView({ block: "start", behavior: "instant" });
    return true;
  }

  function goToNamed() {
    return choice.read() || openNamedStep();
  }

  /** Makes all rows again; the one in the middle of the window stays there. */
  function renew() {
    const middle = document.elementsFromPoint(innerWidth / 2, innerHeight / 2);
    const row = middle.find((one) => one.matches(".block p"));
    const top = row?.getBoundingClientRect().top;
    look.measure();
    sections.renew();
    if (following.isOn()) return following.grown(0);
    const fresh = row && document.getElementById(row.id);
    if (fresh) scrollBy({ top: fresh.getBoundingClientRect().top - top, behavior: "instant" });
  }

  function resized(entries) {
    const { width } = entries[0].contentRect;
    const hasChanged = lastWidth !== 0 && Math.abs(width - lastWidth) > 1;
    lastWidth = width;
    if (hasChanged) renew();
    else following.grown(0);
  }

  const nextTimes = () => {
    look.nextTimes();
    renew();
  };
  const toggleWrap = () => {
    look.toggleWrap();
    renew();
  };

  const keys = {
    "/": () => search.field.focus(),
    n: () => search.step(1),
    N: () => search.step(-1),
    f: () => following.toggle(),
    g: () => section.scrollIntoView({ block: "start", behavior: "instant" }),
    G: () => following.set(true),
    t: nextTimes,
    w: toggleWrap,
    e: () => sections.foldAll(sections.named().some(({ element }) => !element.open)),
    j: () => choice.move(1, false),
    k: () => choice.move(-1, false),
    J: () => choice.move(1, true),
    K: () => choice.move(-1, true),
    "?": () => document.getElementById("keys").togglePopover(),
  };

  const clicks = {
    follow: keys.f,
    more: keys.G,
    times: nextTimes,
    wrap: toggleWrap,
    next: keys.n,
    previous: keys.N,
  };

  function connect() {
    const needSearch = "#hits, #previous, #next";
    const controls = /** @type {NodeListOf<HTMLElement>} */ (
      section.querySelectorAll(`[data-js]:not(${needSearch})`)
    );
    for (const control of controls) control.hidden = false;
    for (const [id, act] of Object.entries(clicks))
      document.getElementById(id).addEventListener("click", act);
    body.addEventListener("click", choice.noteClick);
    body.addEventListener("toggle", queueDraw, true);
    addEventListener("hashchange", goToNamed);
    new ResizeObserver(resized).observe(body);
    const bar = document.getElementById("bar");
    new ResizeObserver(() => section.style.setProperty("--bar", `${bar.offsetHeight}px`)).observe(bar);
    listenToKeys(keys);
  }

  look.measure();
  return { sections, following, search, look, renew, connect, goToNamed, queueDraw };
}
