import { expect } from "chai";
import { PassThrough } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import type { Endpoint, Host } from "#engine/transport/host.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { createJumps } from "#engine/transport/jumps.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { rejectionOf } from "#support/rejection.ts";

const hop = { address: "192.0.2.1", port: 22, user: "root", hostKeys: [], jump: [] } as unknown as Endpoint;
const target = { address: "192.0.2.2", port: 22 };
const { signal } = new AbortController();

describe("createJumps", () => {
  it("closes a connection that no node has used for two seconds", async () => {
    const [time, log] = [new FakeTimers(), [] as string[]];
    const stream = new PassThrough();
    const host = {
      forward: () => Promise.resolve(stream),
      closed: new Promise(() => undefined),
      close: async () => void log.push("closed"),
    } as unknown as Host;
    const jumps = createJumps(async () => host, time);
    await jumps.dial(hop, target, signal);
    stream.destroy();
    await turn();
    time.pass(1999);
    await turn();
    expect(log).to.deep.equal([]);
    time.pass(1);
    await turn();
    expect(log).to.deep.equal(["closed"]);
  });

  it("leaves no timer and no unhandled rejection when a jump host is unreachable", async () => {
    const [time, lost] = [new FakeTimers(), [] as unknown[]];
    const refused = new HostUnreachable("refused", { message: "no" });
    const slow = Promise.withResolvers<Host>();
    const attempts = [() => Promise.reject(refused), () => slow.promise];
    const jumps = createJumps(async () => attempts.shift()?.() as Promise<Host>, time);
    const listeners = process.listeners("unhandledRejection");
    process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => lost.push(error));
    try {
      expect((await rejectionOf(jumps.dial(hop, target, signal))).problems[0]?.message).to.equal("no");
      expect(time.waiting).to.equal(0);
      const aborted = AbortSignal.abort(new HostUnreachable("timeout", { message: "late" }));
      expect((await rejectionOf(jumps.dial(hop, target, aborted))).problems[0]?.message).to.equal("late");
      time.pass(2000);
      slow.reject(refused);
      await turn();
    } finally {
      process.removeAllListeners("unhandledRejection");
      for (const one of listeners) process.on("unhandledRejection", one);
    }
    expect(lost).to.deep.equal([]);
  });
});
