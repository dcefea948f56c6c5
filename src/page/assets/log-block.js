// Lines that are elements only while they are in sight or close to it: a page with a hundred thousand of them would freeze.
// Until then a block of them is as high as they are going to be.

export const linesInBlock = 100;
/** Lines are made this far outside of what is seen, so that scrolling finds them there. */
const margin = "800px 0px";

/**
 * @typedef {object} Block
 * @property {HTMLElement} element
 * @property {number} from index of its first line
 * @property {number} to index after its last line
 * @property {boolean} isFilled
 * @property {number | null} measured its height when it was filled last
 */

/**
 * @param {(index: number) => HTMLElement} makeRowAt
 * @param {(index: number) => number} rowsOf how many rows on the screen a line takes
 * @param {() => number} rowHeight
 */
export function createBlocks(makeRowAt, rowsOf, rowHeight) {
  /** @type {Map<Element, Block>} */
  const blocks = new Map();
  const sight = new IntersectionObserver(noteSight, { rootMargin: margin });

  function noteSight(entries) {
    for (const { target, isIntersecting, boundingClientRect } of entries) {
      const block = blocks.get(target);
      if (block && isIntersecting) fill(block);
      else if (block) empty(block, boundingClientRect.height);
    }
  }

  function add(parent, from) {
    const element = document.createElement("div");
    element.className = "block";
    const block = { element, from, to: from, isFilled: false, measured: null };
    blocks.set(element, block);
    parent.append(element);
    sight.observe(element);
    return block;
  }

  function fill(block) {
    if (block.isFilled) return;
    block.isFilled = true;
    const rows = [];
    for (let index = block.from; index < block.to; index += 1) rows.push(makeRowAt(index));
    block.element.replaceChildren(...rows);
    block.element.style.height = "";
  }

  /** @param {number} height known already: asking for it would lay out the page in the middle of changing it */
  function empty(block, height) {
    const { element } = block;
    const selection = getSelection();
    // What somebody is about to copy, or where the focus is, stays.
    if (!block.isFilled || element.contains(document.activeElement)) return;
    if (!selection?.isCollapsed && selection?.containsNode(element, true)) return;
    block.measured = height || null;
    block.isFilled = false;
    element.replaceChildren();
    setHeight(block);
  }

  function setHeight(block) {
    if (block.isFilled) return;
    let rows = 0;
    for (let index = block.from; index < block.to; index += 1) rows += rowsOf(index);
    block.element.style.height = `${block.measured ?? rows * rowHeight()}px`;
  }

  /** Gives a block lines up to `to`, which have just been printed. */
  function grow(block, to) {
    const from = block.to;
    block.to = to;
    block.measured = null;
    if (!block.isFilled) return setHeight(block);
    for (let index = from; index < to; index += 1) block.element.append(makeRowAt(index));
  }

  /** After anything has changed how lines look. */
  function renew() {
    for (const block of blocks.values()) {
      block.measured = null;
      if (!block.isFilled) setHeight(block);
      else {
        block.isFilled = false;
        fill(block);
      }
    }
  }

  function clear() {
    sight.disconnect();
    blocks.clear();
  }

  return {
    add,
    fill,
    grow,
    renew,
    clear,
    setHeight,
    filled: () => [...blocks.values()].filter(({ isFilled }) => isFilled),
  };
}
