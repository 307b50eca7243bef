// Streams of bytes: what a client of other people sees of them. See client.mjs.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";

import { agreed, grpc, main, reason, watch } from "./client.mjs";

const STREAM = ["stream-half-close-v1", "stream-explicit-fin-v1"];

/// A stream with everything that came back of it.
function forward(client, target, capabilities, options = {}) {
  const call = client.ForwardTcp(new grpc.Metadata(), options);
  const [host, port] = target.split(/:(?=\d+$)/);
  const events = { data: [], finished: false, bytes: 0 };
  events.digest = () => createHash("sha256").update(Buffer.concat(events.data)).digest("hex");
  watch(call, events, (frame) => {
    if (frame.payload === "data") {
      assert.ok(!events.finished, "data after half_close");
      events.data.push(frame.data);
      events.bytes += frame.data.length;
    }
    if (frame.payload === "halfClose") events.finished = true;
  });
  call.write({ init: { sandbox: "box", tcp: { host, port: Number(port) }, capabilities } });
  return [call, events];
}

const CHECKS = {
  async unary(client) {
    const get = (name) =>
      new Promise((resolve) => client.GetSandbox({ name }, (error, answer) => resolve([error, answer])));
    const [, { sandbox }] = await get("box");
    assert.equal(sandbox.metadata.name, "box");
    const [error] = await get("nobody");
    assert.equal(error.code, grpc.status.NOT_FOUND);
    assert.deepEqual(reason(error), ["SANDBOX_NOT_FOUND", "gateway"]);
  },

  // Both directions end with a frame; the call ends with OK when both have.
  async echo(client, target) {
    const [call, events] = forward(client, target, STREAM);
    const headers = await events.headers;
    assert.ok(STREAM.every((name) => agreed(headers).includes(name)), agreed(headers));
    assert.match(headers.get("tidegate-stream-id")[0], /^[0-9a-f]+$/);
    const content = randomBytes(3 << 20);
    for (let at = 0; at < content.length; at += 1 << 16) {
      const data = content.subarray(at, at + (1 << 16));
      if (!call.write({ data })) await new Promise((resolve) => call.once("drain", resolve));
    }
    call.write({ halfClose: {} });
    call.end();
    const status = await events.status;
    assert.equal(status.code, grpc.status.OK);
    assert.ok(events.finished);
    assert.equal(events.digest(), createHash("sha256").update(content).digest("hex"));
  },

  // The target ends first, and still takes what comes.
  async targetFirst(client, target) {
    for (const capabilities of [STREAM, STREAM.slice(0, 1)]) {
      const [call, events] = forward(client, target, capabilities);
      await events.until(() => events.finished);
      assert.equal(events.bytes, 1 << 20);
      for (let chunk = 0; chunk < 16; chunk += 1) call.write({ data: Buffer.alloc(1 << 16, chunk) });
      if (capabilities.length === 2) call.write({ halfClose: {} });
      call.end();
      assert.equal((await events.status).code, grpc.status.OK);
    }
  },

  // The end of the request without a frame is an abort for a client that has promised frames.
  async missingFin(client, target) {
    const [call, events] = forward(client, target, STREAM);
    await events.headers;
    call.write({ data: Buffer.from("hello") });
    await events.until(() => events.bytes === 5);
    call.end();
    assert.notEqual((await events.status).code, grpc.status.OK);
  },

  async refused(client, target) {
    const [, events] = forward(client, target, STREAM);
    const status = await events.status;
    assert.equal(status.code, grpc.status.UNAVAILABLE);
    assert.deepEqual(reason(status), ["TARGET_REFUSED", "target"]);
  },

  // The status comes while the upload is on its way.
  async refusedUpload(client, target) {
    for (let round = 0; round < 10; round += 1) {
      const [call, events] = forward(client, target, STREAM);
      for (let chunk = 0; chunk < 64; chunk += 1) call.write({ data: Buffer.alloc(1 << 16) });
      const status = await events.status;
      assert.equal(status.code, grpc.status.UNAVAILABLE);
      assert.deepEqual(reason(status), ["TARGET_REFUSED", "target"]);
    }
  },

  async reset(client, target) {
    const [call, events] = forward(client, target, STREAM);
    await events.until(() => events.bytes === 1000);
    call.write({ data: Buffer.from("got it") });
    const status = await events.status;
    assert.equal(status.code, grpc.status.UNAVAILABLE);
    assert.deepEqual(reason(status), ["TARGET_RESET", "target"]);
    assert.ok(!events.finished);
  },

  async cancel(client, target) {
    const [call, events] = forward(client, target, STREAM);
    call.write({ data: Buffer.from("hello") });
    await events.until(() => events.bytes === 5);
    call.cancel();
    assert.equal((await events.status).code, grpc.status.CANCELLED);
  },

  async deadline(client, target) {
    const [call, events] = forward(client, target, STREAM, { deadline: Date.now() + 1000 });
    call.write({ data: Buffer.from("hello") });
    await events.until(() => events.bytes === 5);
    assert.equal((await events.status).code, grpc.status.DEADLINE_EXCEEDED);
  },

  async violation(client, target) {
    const [call, events] = forward(client, target, STREAM);
    await events.headers;
    call.write({ init: { sandbox: "box" } });
    const status = await events.status;
    assert.equal(status.code, grpc.status.INVALID_ARGUMENT);
    assert.deepEqual(reason(status), ["PROTOCOL_VIOLATION", "client"]);
  },
};

await main(CHECKS);
