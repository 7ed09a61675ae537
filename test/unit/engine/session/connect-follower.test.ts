import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { connectFollower } from "#engine/session/connect-follower.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { problemsOf } from "#support/steps.ts";

describe("connectFollower to a machine that does not answer", () => {
  /** The problem of an attempt, the number of calls of `unlock`, and the reasons for waiting. */
  async function attempt(
    number: number,
    unlock: () => Promise<boolean>,
    { connect = new HostUnreachable("refused", { message: "" }) as Error, isStopped = false } = {},
  ): Promise<readonly [string | undefined, number, readonly string[]]> {
    let unlocks = 0;
    const events: RunEventBody[] = [];
    const session = {
      node: { name: "n1" },
      endpoint: {},
      connect: () => Promise.reject(connect),
      connectTimeout: 1,
      connectSlot: () => Promise.resolve(() => undefined),
      emit: (event: RunEventBody) => events.push(event),
      unlock: () => {
        unlocks++;
        return unlock();
      },
    };
    const stopping = isStopped ? AbortSignal.abort() : new AbortController().signal;
    const options = { session, attempt: number, stopping, mayStop: false, onHost: () => undefined, flight: "" };
    const [problem] = await problemsOf(() =>
      connectFollower(options as unknown as Parameters<typeof connectFollower>[0]),
    );
    return [problem?.code, unlocks, events.flatMap((event) => (event.type === "node.waiting" ? [event.reason] : []))];
  }
  const failed = (): Promise<boolean> => Promise.reject(new KcoreError({ code: "UNLOCK_FAILED", message: "" }));

  it("unlocks a disk that waits for it, and tries again", async () => {
    const reasons = ["its disk is unlocked, and it goes on booting"];
    expect(await attempt(2, () => Promise.resolve(true))).to.deep.equal(["HOST_UNREACHABLE", 1, reasons]);
    expect(await attempt(2, () => Promise.resolve(false))).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
    const away = (): Promise<boolean> => Promise.reject(new HostUnreachable("timeout", { message: "" }));
    expect(await attempt(3, away)).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
  });

  it("does not unlock at the first attempt, nor after an answer", async () => {
    expect(await attempt(1, failed)).to.deep.equal(["HOST_UNREACHABLE", 0, []]);
    const connect = new KcoreError({ code: "AUTH_FAILED", message: "" });
    expect(await attempt(2, failed, { connect })).to.deep.equal(["AUTH_FAILED", 0, []]);
  });

  it("fails after a failed unlock, unless the run is being stopped", async () => {
    expect(await attempt(2, failed)).to.deep.equal(["UNLOCK_FAILED", 1, []]);
    expect(await attempt(2, failed, { isStopped: true })).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
  });
});
