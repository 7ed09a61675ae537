import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { connectFollower } from "#engine/session/connect-follower.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import { KcoreError } from "#errors/problem.ts";
import { problemsOf } from "#support/steps.ts";

describe("a connection to a machine that is gone", () => {
  /** The end of an attempt, the number of unlocks, and the events. */
  async function attempt(
    number: number,
    unlock: () => Promise<boolean>,
    { connect = new HostUnreachable("refused", { message: "" }) as Error, isStopped = false } = {},
  ): Promise<readonly [string | undefined, number, readonly string[]]> {
    let asked = 0;
    const events: RunEventBody[] = [];
    const session = {
      node: { name: "n1" },
      endpoint: {},
      connect: () => Promise.reject(connect),
      connectTimeout: 1,
      connectSlot: () => Promise.resolve(() => undefined),
      emit: (event: RunEventBody) => events.push(event),
      unlock: () => {
        asked++;
        return unlock();
      },
    };
    const stopping = isStopped ? AbortSignal.abort() : new AbortController().signal;
    const how = { session, attempt: number, stopping, mayStop: false, onHost: () => undefined, flight: "" };
    const [problem] = await problemsOf(() => connectFollower(how as unknown as Parameters<typeof connectFollower>[0]));
    return [problem?.code, asked, events.flatMap((event) => (event.type === "node.waiting" ? [event.reason] : []))];
  }
  const failed = (): Promise<boolean> => Promise.reject(new KcoreError({ code: "UNLOCK_FAILED", message: "" }));

  it("unlocks it where it waits for that, and tries again", async () => {
    const told = ["its disk is unlocked, and it goes on booting"];
    expect(await attempt(2, () => Promise.resolve(true))).to.deep.equal(["HOST_UNREACHABLE", 1, told]);
    expect(await attempt(2, () => Promise.resolve(false))).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
    const away = (): Promise<boolean> => Promise.reject(new HostUnreachable("timeout", { message: "" }));
    expect(await attempt(3, away)).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
  });

  it("does so for none that was never there, or answers", async () => {
    expect(await attempt(1, failed)).to.deep.equal(["HOST_UNREACHABLE", 0, []]);
    const connect = new KcoreError({ code: "AUTH_FAILED", message: "" });
    expect(await attempt(2, failed, { connect })).to.deep.equal(["AUTH_FAILED", 0, []]);
  });

  it("ends with what nobody mends by waiting, unless the run is stopped anyway", async () => {
    expect(await attempt(2, failed)).to.deep.equal(["UNLOCK_FAILED", 1, []]);
    expect(await attempt(2, failed, { isStopped: true })).to.deep.equal(["HOST_UNREACHABLE", 1, []]);
  });
});
