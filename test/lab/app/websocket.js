// The part of WebSockets (RFC 6455) that the tests need: each short text is answered with this app's version.
import { createHash } from "node:crypto";

const open = new Set();

export function acceptWebSocket(request, socket, version) {
  const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n");
  socket.write(`Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  open.add(socket);
  socket.on("close", () => open.delete(socket)).on("error", () => {});
  socket.on("data", () => socket.write(frame(1, Buffer.from(version))));
}

/** Closes every connection with status 1001, going away. */
export function closeWebSockets() {
  for (const socket of open) socket.end(frame(8, Buffer.from([0x03, 0xe9])));
}

function frame(opcode, payload) {
  return Buffer.concat([Buffer.from([0x80 | opcode, payload.length]), payload]);
}
