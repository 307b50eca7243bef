// Node's grpc-js with our .proto files: `node streams.mjs CHECK ADDRESS TARGET [CA [CERT KEY]]`.
// Prints "ok" when the check held.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.env.NODE_MODULES}/`);
const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const protobuf = require("protobufjs");

const STREAM = ["stream-half-close-v1", "stream-explicit-fin-v1"];

function connect(address, files) {
  const definition = loader.loadSync("openshell/v1/openshell.proto", {
    includeDirs: [process.env.PROTO],
    oneofs: true,
  });
  const { OpenShell } = grpc.loadPackageDefinition(definition).openshell.v1;
  const [ca, cert, key] = files.map((file) => readFileSync(file));
  const credentials = ca
    ? grpc.credentials.createSsl(ca, key, cert)
    : grpc.credentials.createInsecure();
  return new OpenShell(address, credentials);
}

/// A stream with everything that came back of it.
function forward(client, target, capabilities, options = {}) {
  const call = client.ForwardTcp(new grpc.Metadata(), options);
  const [host, port] = target.split(/:(?=\d+$)/);
  const events = { data: [], finished: false, bytes: 0 };
  events.headers = new Promise((resolve) => call.once("metadata", resolve));
  events.status = new Promise((resolve) => call.once("status", resolve));
  let told = () => {};
  call.on("error", () => {}); // the status says it too
  call.on("data", (frame) => {
    if (frame.payload === "data") {
      assert.ok(!events.finished, "data after half_close");
      events.data.push(frame.data);
      events.bytes += frame.data.length;
    }
    if (frame.payload === "halfClose") events.finished = true;
    told();
  });
  call.on("end", () => told());
  events.until = (holds) =>
    new Promise((resolve) => {
      told = () => holds() && resolve();
      told();
    });
  events.digest = () => createHash("sha256").update(Buffer.concat(events.data)).digest("hex");
  call.write({ init: { sandbox: "box", tcp: { host, port: Number(port) }, capabilities } });
  return [call, events];
}

/// Reason and origin out of grpc-status-details-bin.
function reason(status) {
  const { root } = protobuf.parse(`syntax = "proto3";
    message Any { string type_url = 1; bytes value = 2; }
    message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
    message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`);
  const [bytes] = status.metadata.get("grpc-status-details-bin");
  const { code, message, details } = root.lookupType("Status").decode(bytes);
  assert.deepEqual([code, message], [status.code, status.details]);
  const info = details.find((any) => any.typeUrl.endsWith("google.rpc.ErrorInfo"));
  const { reason, domain, metadata } = root.lookupType("ErrorInfo").decode(info.value);
  assert.equal(domain, "tidegate");
  assert.ok(metadata.hops);
  return [reason, metadata.origin];
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
    const agreed = String(headers.get("tidegate-capabilities")[0]).split(/, */);
    assert.ok(STREAM.every((name) => agreed.includes(name)), agreed);
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

const [check, address, target, ...files] = process.argv.slice(2);
const client = connect(address, files);
await CHECKS[check](client, target);
client.close();
console.log("ok");
