// Search through all lines, also those of folded steps and those far away.

import { plainText } from "./log-ansi.js";

const pauseMs = 80;

/**
 * @param {object} view
 * @param {{ text: string }[]} view.lines
 * @param {(index: number) => void} view.show
 * @param {() => import("./log-block.js").Block[]} view.filled
 */
export function createSearch({ lines, show, filled }) {
  const field = /** @type {HTMLInputElement} */ (document.getElementById("find"));
  const said = document.getElementById("hits");
  /** @type {RegExp | null} */
  let pattern = null;
  /** @type {number[]} */
  let hits = [];
  let [at, seen, timer] = [-1, 0, 0];

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => begin(field.value), pauseMs);
  });
  field.addEventListener("keydown", ({ key, shiftKey }) => {
    if (key === "Enter") step(shiftKey ? -1 : 1);
    if (key !== "Escape") return;
    clear();
    field.blur();
  });

  function begin(text) {
    clearTimeout(timer);
    pattern = text === "" ? null : new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "gi");
    [hits, at, seen] = [[], -1, 0];
    take();
    if (hits.length > 0) step(1);
    else draw();
  }

  /** Looks into the lines that came since. */
  function take() {
    if (pattern === null) return;
    for (; seen < lines.length; seen += 1) {
      pattern.lastIndex = 0;
      if (pattern.test(plainText(lines[seen].text))) hits.push(seen);
    }
    say();
  }

  function step(by) {
    if (field.value !== "" && pattern === null) return begin(field.value);
    if (hits.length === 0) return;
    at = (at + by + hits.length) % hits.length;
    show(hits[at]);
    draw();
  }

  function say() {
    const isSearching = pattern !== null;
    said.hidden = !isSearching;
    const place = at === -1 ? "" : `${(at + 1).toLocaleString("en-US")} of `;
    said.textContent = hits.length === 0 ? "none" : `${place}${hits.length.toLocaleString("en-US")}`;
    for (const id of ["previous", "next"]) document.getElementById(id).hidden = !isSearching;
  }

  /** Marks what is on the screen. It changes no element, so it can be done as often as lines come and go. */
  function draw() {
    say();
    if (!globalThis.Highlight) return;
    const [all, here] = [new Highlight(), new Highlight()];
    if (pattern !== null)
      for (const { element, from } of filled())
        for (const [offset, row] of [...element.children].entries())
          for (const range of rangesIn(row.lastChild, pattern))
            (from + offset === hits[at] ? here : all).add(range);
    CSS.highlights.set("found", all);
    CSS.highlights.set("found-here", here);
  }

  function clear() {
    field.value = "";
    begin("");
  }

  return { step, take, draw, clear, field };
}

/** The places of a pattern in a row, which may run over pieces of several colours. */
function rangesIn(element, pattern) {
  const text = element.textContent;
  pattern.lastIndex = 0;
  return [...text.matchAll(pattern)].map((match) => {
    const range = document.createRange();
    const [start, end] = [match.index, match.index + match[0].length].map((at) => placeIn(element, at));
    range.setStart(start.node, start.offset);
    range.setEnd(end.node, end.offset);
    return range;
  });
}

function placeIn(element, offset) {
  const nodes = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let left = offset;
  for (let node = nodes.nextNode(); node; node = nodes.nextNode()) {
    const { length } = node.textContent;
    if (left <= length) return { node, offset: left };
    left -= length;
  }
  return { node: element, offset: 0 };
}
