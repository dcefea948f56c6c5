// How the lines look: with or without their times, wrapped or not. The browser remembers it.

import { plainStyle } from "./log-ansi.js";
import { makeRow } from "./log-row.js";
import { clockTime, sinceStart } from "./log-words.js";

const timeModes = ["none", "since the start", "time of day"];

/**
 * @param {HTMLElement} section
 * @param {{ lines: import("./log-lines.js").Line[], startedMs: number | null }} log
 */
export function createLook(section, log) {
  const [times, wrap] = ["times", "wrap"].map((id) => document.getElementById(id));
  let [timeMode, isWrapping] = [Number(recall("times") ?? 0) % timeModes.length, recall("wrap") !== "no"];
  let [columns, rowHeight] = [80, 20];

  /** How much fits in a row of the screen. */
  function measure() {
    const [probe, block] = [
      makeRow({ text: "0".repeat(100), style: plainStyle }, 1, timeText(0)),
      document.createElement("div"),
    ];
    probe.removeAttribute("id");
    probe.lastElementChild.classList.add("probe");
    block.className = "block";
    block.append(probe);
    document.getElementById("lines").append(block);
    const [text, row] = [probe.lastElementChild, probe].map((element) => element.getBoundingClientRect());
    rowHeight = row.height;
    columns = Math.max(10, Math.floor((row.right - text.left) / (text.width / 100)));
    block.remove();
  }

  function timeText(printedMs) {
    if (timeMode === 0) return null;
    if (printedMs === null) return "";
    return timeMode === 2 ? clockTime(printedMs) : sinceStart(printedMs - (log.startedMs ?? printedMs));
  }

  function draw() {
    section.classList.toggle("no-wrap", !isWrapping);
    wrap.setAttribute("aria-pressed", String(isWrapping));
    times.setAttribute("aria-pressed", String(timeMode > 0));
    times.title = `Times: ${timeModes[timeMode]}`;
  }

  draw();
  return {
    measure,
    timeText,
    rowHeight: () => rowHeight,
    rowsOf: ({ text }) => (isWrapping ? Math.max(1, Math.ceil(text.length / columns)) : 1),
    nextTimes() {
      timeMode = (timeMode + 1) % timeModes.length;
      keep("times", String(timeMode));
      draw();
    },
    toggleWrap() {
      isWrapping = !isWrapping;
      keep("wrap", isWrapping ? "yes" : "no");
      draw();
    },
  };
}

/** A browser may keep nothing at all. */
function recall(name) {
  try {
    return localStorage.getItem(`log-${name}`);
  } catch {
    return null;
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(`log-${name}`, value);
  } catch {
    // It is only forgotten.
  }
}
