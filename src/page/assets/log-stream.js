// What happens to a deployment, from some place of its log on. After a lost connection, or a sleep, it goes on there, so
// that no line is missing and none comes twice.

/** The server says something at least every 15 s. */
const longestSilenceMs = 40_000;
/** A request may be sent over a connection that died in a sleep. */
const answersWithinMs = 10_000;
/** After a sleep, a connection that looks open may be dead. */
const longestSilenceAwakeMs = 20_000;
const [firstPauseMs, longestPauseMs] = [500, 10_000];

/**
 * @param {object} reader
 * @param {string} reader.path of the events
 * @param {() => number} reader.place the byte after the last line that the reader has
 * @param {(event: object) => void} reader.onEvent
 * @param {(isConnected: boolean) => void} reader.onConnection
 * @param {() => void} reader.onEnd the deployment has ended, and everything was read
 */
export async function follow({ path, place, onEvent, onConnection, onEnd }) {
  const link = watchConnection();
  let pauseMs = firstPauseMs;
  for (;;) {
    try {
      const response = await fetch(`${path}?from=${place()}`, { signal: link.open() });
      if (response.status === 401) return location.reload();
      if (response.status === 404) return onEnd();
      if (!response.ok) throw new Error(`status ${response.status}`);
      link.heard();
      onConnection(true);
      pauseMs = firstPauseMs;
      if (await readEvents(response.body, link.heard, onEvent)) return onEnd();
    } catch {
      onConnection(false);
    }
    await link.pause(pauseMs);
    pauseMs = Math.min(longestPauseMs, pauseMs * 2);
  }
}

function watchConnection() {
  let [heardMs, ending] = [0, new AbortController()];
  let endPause = (_value) => {};
  const silentMs = () => Date.now() - heardMs;
  setInterval(() => silentMs() > longestSilenceMs && ending.abort(), 2_000);
  addEventListener("online", tryNow);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && silentMs() > longestSilenceAwakeMs) tryNow();
  });

  function tryNow() {
    ending.abort();
    endPause(null);
  }

  return {
    open() {
      heardMs = Date.now() - longestSilenceMs + answersWithinMs;
      ending = new AbortController();
      return ending.signal;
    },
    heard() {
      heardMs = Date.now();
    },
    pause: (ms) =>
      new Promise((resolve) => {
        endPause = resolve;
        setTimeout(resolve, ms);
      }),
  };
}

/** @returns {Promise<boolean>} whether the server said that this was all */
async function readEvents(body, heard, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return false;
    heard();
    const messages = (rest + value).split("\n\n");
    rest = messages.pop() ?? "";
    for (const message of messages) {
      const { name, data } = readMessage(message);
      if (name === "end") return true;
      if (data !== null) onEvent(JSON.parse(data));
    }
  }
}

/** A message of server-sent events, as this server writes them. */
function readMessage(text) {
  const field = (name) =>
    text
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2) ?? null;
  return { name: field("event"), data: field("data") };
}
