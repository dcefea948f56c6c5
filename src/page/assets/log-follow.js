// Stays at the end of a log while it grows, and lets go as soon as somebody scrolls up.

import { count } from "./log-words.js";

const [nearPx, gapPx] = [24, 20];
/** Blocks of lines that get their true heights move the page a little; a scroll bar that is dragged moves it far. */
const farPx = 100;
const touchLastsMs = 500;

/** @param {HTMLElement} section the log on the page */
export function createFollow(section) {
  const [button, more] = [document.getElementById("follow"), document.getElementById("more")];
  let [isOn, isRunning, missed, lastY, touchedMs] = [false, false, 0, scrollY, 0];
  addEventListener("scroll", noteScroll, { passive: true });
  for (const name of ["wheel", "touchmove", "keydown"]) addEventListener(name, noteTouch, { passive: true });

  function noteTouch({ timeStamp }) {
    touchedMs = timeStamp;
  }

  function distance() {
    return section.getBoundingClientRect().bottom - innerHeight + gapPx;
  }

  function noteScroll({ timeStamp }) {
    const [by, isNear] = [scrollY - lastY, distance() < nearPx];
    lastY = scrollY;
    const isMeant = timeStamp - touchedMs < touchLastsMs || by < -farPx;
    if (isOn && by < 0 && isMeant && !isNear) set(false);
    else if (!isOn && isRunning && by > 0 && isNear) set(true);
  }

  function set(value) {
    isOn = value && isRunning;
    missed = 0;
    if (value) toEnd();
    draw();
  }

  function toEnd() {
    const by = distance();
    if (by > 0) scrollBy({ top: by, behavior: "instant" });
    lastY = scrollY;
  }

  function draw() {
    button.setAttribute("aria-pressed", String(isOn));
    more.hidden = isOn || !isRunning || distance() < nearPx;
    more.textContent = missed > 0 ? `↓ ${count(missed, "new line")}` : "↓ To the end";
  }

  return {
    set,
    toggle: () => set(!isOn),
    isOn: () => isOn,
    /** After lines were added. */
    grown(lines) {
      if (isOn) return toEnd();
      missed += lines;
      draw();
    },
    /** @param {boolean} value whether the log may still grow */
    setRunning(value) {
      isRunning = value;
      button.hidden = !value;
      if (!value) isOn = false;
      draw();
    },
  };
}
