// A WebSocket echo: `node websocket.mjs serve` prints its port, `node websocket.mjs ask PORT` sends
// messages of every length class, binary and text, pings, and closes with a code.

import { createRequire } from "node:module";
import { createHash, randomBytes } from "node:crypto";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const { WebSocket, WebSocketServer } = require("ws");

function serve() {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, maxPayload: 64 << 20 });
  server.on("listening", () => console.log(`listening on 127.0.0.1:${server.address().port}`));
  server.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
}

const digest = (data) => createHash("sha256").update(data).digest("hex");

function next(socket, event) {
  return new Promise((resolve, reject) => {
    socket.once(event, (...values) => resolve(values));
    socket.once("error", reject);
  });
}

async function ask(port) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  await next(socket, "open");
  for (const size of [0, 1, 125, 126, 65535, 65536, 5_000_000]) {
    const sent = randomBytes(size);
    socket.send(sent);
    const [received, isBinary] = await next(socket, "message");
    if (!isBinary || digest(received) !== digest(sent)) throw new Error(`${size} bytes differ`);
  }
  socket.send("grüße");
  const [text] = await next(socket, "message");
  socket.ping("still there");
  const [pong] = await next(socket, "pong");
  const closed = next(socket, "close");
  socket.close(4321, "done");
  const [code, reason] = await closed;
  console.log(`${text} ${pong} ${code} ${reason}`);
}

const [mode, port] = process.argv.slice(2);
if (mode === "serve") serve();
else await ask(port);
