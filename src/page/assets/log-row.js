// One line of the log as an element. Everything that a script printed becomes text nodes.

import { applyStyle, plainStyle, readRuns } from "./log-ansi.js";

const links = /https?:\/\/[^\s<>"'`\\^{}|]+/gi;

/**
 * @param {Pick<import("./log-lines.js").Line, "text" | "style">} line
 * @param {number} number
 * @param {string | null} time
 */
export function makeRow(line, number, time) {
  const row = document.createElement("p");
  row.id = `L${number}`;
  const link = document.createElement("a");
  link.href = `#L${number}`;
  link.textContent = String(number);
  // A hundred thousand stops of the Tab key help nobody: j and k choose lines.
  link.tabIndex = -1;
  row.append(link);
  if (time !== null) row.append(withText("time", time));
  row.append(makeText(line));
  return row;
}

/** What was printed, in its colours. */
function makeText({ text, style }) {
  const element = document.createElement("span");
  for (const run of readRuns(text, style).runs) appendRun(element, run);
  return element;
}

function withText(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

function appendRun(parent, { text, style }) {
  if (style === plainStyle) return appendLinked(parent, text);
  const span = document.createElement("span");
  applyStyle(span, style);
  appendLinked(span, text);
  parent.append(span);
}

function appendLinked(parent, text) {
  let from = 0;
  if (text.includes("://")) {
    for (const match of text.matchAll(links)) {
      const address = match[0].replace(/(?<![.,;:!?)\]])[.,;:!?)\]]+$/, "");
      if (!URL.canParse(address)) continue;
      parent.append(text.slice(from, match.index), makeLink(address));
      from = match.index + address.length;
    }
  }
  parent.append(text.slice(from));
}

function makeLink(address) {
  const link = withText("a", address);
  link.href = address;
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  return link;
}
