// Times as words.

/** The time of day, to the hundredth. */
export function clockTime(ms) {
  const date = new Date(ms);
  const parts = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) =>
    String(part).padStart(2, "0"),
  );
  return `${parts.join(":")}.${String(Math.floor(date.getMilliseconds() / 10)).padStart(2, "0")}`;
}

/** How long after the beginning. */
export function sinceStart(ms) {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 60) return `+${seconds.toFixed(2)} s`;
  return `+${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, "0")}`;
}

export function count(number, noun) {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}
