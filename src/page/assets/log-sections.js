// The steps of a log as parts that fold, each with the lines that were printed in it.

import { createBlocks, linesInBlock } from "./log-block.js";
import { stepOf } from "./log-lines.js";
import { lasted } from "./page.js";

/** After a success, longer steps are folded. */
const mostOpenLines = 60;

/**
 * @typedef {object} Step
 * @property {number} attempt
 * @property {string} name
 * @property {string} startedAt
 * @property {number | null} durationMs null: it has not ended, or nobody saw its end
 */

/**
 * @typedef {object} Log
 * @property {import("./log-lines.js").Line[]} lines
 * @property {Step[]} steps of all attempts
 * @property {string} state
 * @property {number | null} startedMs
 */

/**
 * @typedef {object} Section
 * @property {string | null} name null: the lines before the first step
 * @property {HTMLDetailsElement} element a div if it has no head
 * @property {HTMLElement | null} head
 * @property {number} from index of the first line
 * @property {import("./log-block.js").Block[]} blocks
 */

/**
 * @param {HTMLElement} parent
 * @param {Log} log
 * @param {Parameters<typeof createBlocks>} rows
 */
export function createSections(parent, log, rows) {
  const blocks = createBlocks(...rows);
  /** @type {Section[]} */
  let sections = [];

  function begin(name, index) {
    const element = /** @type {HTMLDetailsElement} */ (
      document.createElement(name === null ? "div" : "details")
    );
    const head = name === null ? null : headOf(name);
    if (head) element.append(head);
    const section = { name, element, head, from: index, blocks: [] };
    sections.push(section);
    parent.append(element);
    return section;
  }

  function named() {
    return sections.filter(({ head }) => head !== null);
  }

  /** Shows the lines from `from` on. */
  function append(from) {
    const touched = new Map();
    for (let index = from; index < log.lines.length; index += 1) {
      const name = stepOf(log.lines[index].text);
      if (name !== null || sections.length === 0) begin(name, index);
      if (name === null) touched.set(blockFor(sections.at(-1), index), index + 1);
    }
    for (const [block, to] of touched) blocks.grow(block, to);
    showSteps();
  }

  function blockFor(section, index) {
    const last = section.blocks.at(-1);
    if (last && index - last.from < linesInBlock) return last;
    const block = blocks.add(section.element, index);
    // Lines that are printed now come without a blank moment.
    if (last?.isFilled) blocks.fill(block);
    section.blocks.push(block);
    return block;
  }

  /** How long each step took, and how it ended. */
  function showSteps() {
    const heads = named();
    let next = 0;
    for (const [index, { head, element, name }] of heads.entries()) {
      const isLast = index === heads.length - 1;
      // By name: of a log that is too long, the middle is left out, and steps with it.
      const at = log.steps.findIndex((step, place) => place >= next && step.name === name);
      if (at !== -1) next = at + 1;
      element.id = `step-${at === -1 ? index + 1 : at + 1}`;
      element.className = toneOf(log.state, isLast);
      showTime(head.querySelector("time"), log.steps[at], isLast);
    }
  }

  function showTime(time, step, isLast) {
    delete time.dataset.since;
    if (step && step.durationMs !== null) time.textContent = lasted(step.durationMs);
    else if (step && isLast && log.state === "running") time.dataset.since = step.startedAt;
  }

  /** Which steps are open when one comes: what failed or goes on, and after a success all that is short. */
  function openSome() {
    const heads = named();
    for (const [index, section] of heads.entries()) {
      const isLast = index === heads.length - 1;
      section.element.open = log.state === "succeeded" ? countOf(section) <= mostOpenLines : isLast;
    }
  }

  function countOf({ blocks: own }) {
    return own.length === 0 ? 0 : (own.at(-1)?.to ?? 0) - (own[0]?.from ?? 0);
  }

  /** Unfolds the step of a line. @returns its row; null: the line announces a step, or is none */
  function reveal(index) {
    const section = sections.findLast(({ from }) => from <= index);
    if (!section) return null;
    if (section.head) section.element.open = true;
    const block = section.blocks.find(({ from, to }) => from <= index && index < to);
    if (!block) return section.head;
    blocks.fill(block);
    return block.element.children[index - block.from];
  }

  function foldAll(isOpen) {
    for (const { element } of named()) element.open = isOpen;
  }

  function clear() {
    blocks.clear();
    sections = [];
    parent.replaceChildren();
  }

  return {
    append,
    showSteps,
    openSome,
    reveal,
    foldAll,
    clear,
    named,
    renew: blocks.renew,
    filled: blocks.filled,
  };
}

function toneOf(state, isLast) {
  if (!isLast) return "good";
  if (state === "running" || state === "queued") return "busy";
  return state === "succeeded" ? "good" : "bad";
}

function headOf(name) {
  const head = document.createElement("summary");
  const text = document.createElement("span");
  text.textContent = name;
  head.append(text, document.createElement("time"));
  return head;
}
