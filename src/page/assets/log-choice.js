// The lines that the address names, such as #L12 or #L12-L20: marked, and a link to send to somebody.

/**
 * @param {object} view
 * @param {() => number} view.count how many lines there are
 * @param {(index: number) => void} view.show
 * @param {() => import("./log-block.js").Block[]} view.filled
 */
export function createChoice({ count, show, filled }) {
  let [first, last] = [0, 0];

  /** Takes what the address names. @returns whether it names lines */
  function read() {
    const [, from = "0", to = from] = /^#L(\d{1,9})(?:-L?(\d{1,9}))?$/.exec(location.hash) ?? [];
    [first, last] = [Number(from), Number(to)].sort((one, other) => one - other);
    draw();
    if (first > 0 && first <= count()) show(first - 1);
    return first > 0;
  }

  /** @param {boolean} isRange whether the lines from the one chosen before on are chosen */
  function choose(number, isRange) {
    if (number < 1 || number > count()) return;
    const anchor = isRange && first > 0 ? (number < first ? last : first) : number;
    [first, last] = [Math.min(anchor, number), Math.max(anchor, number)];
    history.replaceState(null, "", first === last ? `#L${first}` : `#L${first}-L${last}`);
    draw();
  }

  /** The next line, or the one before; with `isRange` the choice grows or shrinks at its end. */
  function move(by, isRange) {
    const number = (by > 0 || isRange ? last : first) + by;
    if (isRange && number < first) return;
    if (number < 1 || number > count()) return;
    if (isRange) [last] = [number];
    else [first, last] = [number, number];
    history.replaceState(null, "", first === last ? `#L${first}` : `#L${first}-L${last}`);
    show(number - 1);
    draw();
  }

  function noteClick(event) {
    const link = event.target.closest("a[href^='#L']");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    choose(Number(link.hash.slice(2)), event.shiftKey);
  }

  function draw() {
    for (const { element, from } of filled())
      for (const [offset, row] of [...element.children].entries()) mark(row, from + offset);
  }

  function mark(row, index) {
    row.classList.toggle("chosen", index + 1 >= first && index + 1 <= last);
  }

  return { read, move, mark, noteClick };
}
