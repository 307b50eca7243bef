// Node's grpc-js with our .proto files, as the scripts beside this one use it:
// `node SCRIPT CHECK ADDRESS TARGET [CA [CERT KEY]]`. Prints "ok" when the check held.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const require = createRequire(`${process.env.NODE_MODULES}/`);
export const grpc = require("@grpc/grpc-js");
const loader = require("@grpc/proto-loader");
const protobuf = require("protobufjs");

function connect(address, files) {
  const definition = loader.loadSync("openshell/v1/openshell.proto", {
    includeDirs: [process.env.PROTO],
    defaults: true,
    enums: String,
    longs: Number,
    oneofs: true,
  });
  const { OpenShell } = grpc.loadPackageDefinition(definition).openshell.v1;
  const [ca, cert, key] = files.map((file) => readFileSync(file));
  const credentials = ca
    ? grpc.credentials.createSsl(ca, key, cert)
    : grpc.credentials.createInsecure();
  return new OpenShell(address, credentials);
}

/// The names that the gateway agreed to.
export function agreed(headers) {
  return String(headers.get("tidegate-capabilities")[0]).split(/, */);
}

/// Reason and origin out of grpc-status-details-bin.
export function reason(status) {
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

/// Gathers in `events` what comes back of a call; `heard` says what a message adds to it.
/// `events.until` waits until something holds of them.
export function watch(call, events, heard) {
  events.headers = new Promise((resolve) => call.once("metadata", resolve));
  events.status = new Promise((resolve) => call.once("status", resolve));
  let told = () => {};
  call.on("error", () => {}); // the status says it too
  call.on("data", (message) => {
    heard(message);
    told();
  });
  call.on("end", () => told());
  events.until = (holds) =>
    new Promise((resolve) => {
      told = () => holds() && resolve();
      told();
    });
  return events;
}

/// Runs the check that the command line names.
export async function main(checks) {
  const [check, address, target, ...files] = process.argv.slice(2);
  const client = connect(address, files);
  await checks[check](client, target);
  client.close();
  console.log("ok");
}
