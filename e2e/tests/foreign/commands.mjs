// Commands: what a client of other people sees of them. See client.mjs; the target means nothing.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";

import { agreed, grpc, main, reason, watch } from "./client.mjs";

const EXEC = ["stream-half-close-v1", "stream-explicit-fin-v1", "exec-result-v1"];

/// Everything that comes back of a command.
function listen(call) {
  const events = { stdout: [], stderr: [], exits: [], order: 0 };
  events.text = (output) => Buffer.concat(events[output]).toString();
  return watch(call, events, (event) => {
    assert.equal(events.exits.length, 0, "something after the exit");
    if (event.payload === "exit") events.exits.push(event.exit);
    else if (event.payload) {
      // one without is legal and means nothing
      const { data, order } = event[event.payload];
      events[event.payload].push(data);
      assert.equal(order, events.order + 1, "in the order in which it was read");
      events.order = order;
    }
  });
}

/// An interactive command that was asked for.
function start(client, command, more = {}) {
  const call = client.ExecSandboxInteractive();
  const events = listen(call);
  call.write({ start: { sandbox: "box", command, capabilities: EXEC, ...more } });
  return [call, events];
}

const script = (text) => ["sh", "-c", text];

async function whole(events, code) {
  const status = await events.status;
  assert.deepEqual([status.code, status.details], [grpc.status.OK, ""]);
  assert.deepEqual(
    events.exits.map((exit) => exit.exitCode),
    [code],
  );
  return events.exits[0];
}

const CHECKS = {
  // Line by line, both outputs, the end of stdin as a frame, and a code.
  async conversation(client) {
    const server = 'while read -r line; do echo "got $line"; done; echo over >&2; exit 5';
    const [call, events] = start(client, script(server));
    const headers = await events.headers;
    assert.ok(EXEC.every((name) => agreed(headers).includes(name)), agreed(headers));
    assert.match(headers.get("tidegate-stream-id")[0], /^[0-9a-f]+$/);
    let wanted = "";
    for (let line = 0; line < 100; line += 1) {
      call.write({ stdin: Buffer.from(`line ${line}\n`) });
      wanted += `got line ${line}\n`;
      await events.until(() => events.text("stdout").length >= wanted.length);
      assert.equal(events.text("stdout"), wanted);
    }
    call.write({ halfClose: {} });
    const exit = await whole(events, 5);
    assert.equal(events.text("stderr"), "over\n");
    assert.equal(exit.reason, "EXEC_EXIT_REASON_PROCESS_EXITED");
    assert.equal(exit.stdout.bytesTotal, wanted.length);
    assert.equal(exit.stdout.truncated, false);
    call.end();
  },

  // Without any capability the end of the request is the end of stdin.
  async endOfRequest(client) {
    const [call, events] = start(client, script("cat; echo done"), { capabilities: [] });
    call.write({ stdin: Buffer.from("hello\n") });
    call.end();
    await whole(events, 0);
    assert.equal(events.text("stdout"), "hello\ndone\n");
  },

  async bulk(client) {
    const [call, events] = start(client, ["cat"]);
    await events.headers;
    const content = randomBytes(3 << 20);
    for (let at = 0; at < content.length; at += 1 << 16) {
      const stdin = content.subarray(at, at + (1 << 16));
      if (!call.write({ stdin })) await new Promise((resolve) => call.once("drain", resolve));
    }
    call.write({ halfClose: {} });
    call.end();
    await whole(events, 0);
    const digest = (data) => createHash("sha256").update(data).digest("hex");
    assert.equal(digest(Buffer.concat(events.stdout)), digest(content));
  },

  // The request is never ended, and all that the command wrote before its end is here.
  async openStdin(client) {
    for (let round = 0; round < 50; round += 1) {
      const [, events] = start(client, script("head -c 200000 /dev/zero; exit 7"));
      await whole(events, 7);
      assert.equal(Buffer.concat(events.stdout).length, 200_000);
    }
  },

  // It ends while stdin is on its way that it does not read.
  async unreadStdin(client) {
    for (let round = 0; round < 20; round += 1) {
      const [call, events] = start(client, script("exit 3"));
      for (let chunk = 0; chunk < 64; chunk += 1) call.write({ stdin: Buffer.alloc(1 << 16) });
      await whole(events, 3);
    }
  },

  async terminal(client) {
    const [call, events] = start(client, script("stty size; read line; stty size"), {
      tty: true,
      cols: 132,
      rows: 43,
    });
    await events.until(() => events.text("stdout").includes("43 132\r\n"));
    call.write({ resize: { cols: 100, rows: 40 } });
    call.write({ stdin: Buffer.from("\n") });
    await whole(events, 0);
    assert.ok(events.text("stdout").endsWith("40 100\r\n"), events.text("stdout"));
  },

  async signal(client) {
    const patient = "trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done";
    const [call, events] = start(client, script(patient));
    await events.until(() => events.text("stdout") === "ready\n");
    call.write({ signal: { number: 2 } });
    await whole(events, 4);
    assert.equal(events.text("stdout"), "ready\ncaught\n");
    const [, killed] = start(client, script("kill -9 $$"));
    const exit = await whole(killed, 137);
    assert.deepEqual([exit.reason, exit.signal], ["EXEC_EXIT_REASON_SIGNALED", 9]);
  },

  // A cancel is no end of stdin: what was half sent is not committed.
  async cancel(client) {
    const [call, events] = start(client, script("cat; touch \"$DONE\""), {
      environment: { DONE: process.env.DONE },
    });
    call.write({ stdin: Buffer.from("half") });
    await events.until(() => events.text("stdout") === "half");
    call.cancel();
    assert.equal((await events.status).code, grpc.status.CANCELLED);
    assert.equal(events.exits.length, 0);
    // The same connection serves the next at once.
    const [, next] = start(client, ["true"]);
    await whole(next, 0);
    assert.ok(!existsSync(process.env.DONE));
  },

  async refused(client) {
    const [, events] = start(client, ["no-such-program"]);
    const status = await events.status;
    assert.equal(status.code, grpc.status.FAILED_PRECONDITION);
    assert.deepEqual(reason(status), ["EXEC_NOT_FOUND", "supervisor"]);
    assert.equal(events.exits.length, 0);
  },

  // One request, events back.
  async oneRequest(client) {
    const request = (command, more) => ({ sandbox: "box", command, capabilities: EXEC, ...more });
    let events = listen(client.ExecSandbox(request(["cat"], { stdin: Buffer.from(" \n\0") })));
    await whole(events, 0);
    assert.equal(events.text("stdout"), " \n\0");
    events = listen(client.ExecSandbox(request(["sleep", "60"], { executionTimeout: { seconds: 1 } })));
    const exit = await whole(events, 124);
    assert.equal(exit.reason, "EXEC_EXIT_REASON_OPERATION_TIMEOUT");
    const call = client.ExecSandbox(request(script("echo begun; sleep 60")));
    events = listen(call);
    await events.until(() => events.text("stdout") === "begun\n");
    call.cancel();
    assert.equal((await events.status).code, grpc.status.CANCELLED);
  },
};

await main(CHECKS);
