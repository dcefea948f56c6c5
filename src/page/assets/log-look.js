// How the lines look: with or without their times, wrapped or not. The browser remembers it.

import { plainStyle } from "./log-ansi.js";
import { takeTimes } from "./log-lines.js";
import { makeRow } from "./log-row.js";
import { clockTime, sinceStart } from "./log-words.js";

const timeModes = ["none", "since the start", "time of day"];

/**
 * @param {HTMLElement} section
 * @param {{ lines: import("./log-lines.js").Line[], startedMs: number | null }} log
 * @param {string} timesPath
 */
export function createLook(section, log, timesPath) {
  const [times, wrap] = ["times", "wrap"].map((id) => document.getElementById(id));
  let [timeMode, isWrapping] = [Number(recall("times") ?? 0) % timeModes.length, recall("wrap") !== "no"];
  let [columns, rowHeight, hasTimes] = [80, 20, false];

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

  /** They are asked for when somebody wants to see them. @returns whether the lines have them now, and had not before */
  async function readTimes() {
    if (timeMode === 0 || hasTimes) return false;
    const response = await fetch(timesPath).catch(() => null);
    hasTimes = response?.ok ?? false;
    if (hasTimes) takeTimes(log.lines, await response.text());
    return hasTimes;
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
    readTimes,
    timeText,
    rowHeight: () => rowHeight,
    rowsOf: ({ text }) => (isWrapping ? Math.max(1, Math.ceil(text.length / columns)) : 1),
    async nextTimes() {
      timeMode = (timeMode + 1) % timeModes.length;
      keep("times", String(timeMode));
      draw();
      await readTimes();
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
