import { spawn } from "node:child_process";
import { expect } from "chai";
import { countdown, poll, retry, within } from "#base/wait.ts";

/** A clock that only sleeps move, with the list of pauses. */
function simulated() {
  let time = 0;
  const pauses: number[] = [];
  const sleep = async (ms: number): Promise<void> => {
    pauses.push(ms);
    time += ms;
  };
  return { pauses, now: () => time, sleep };
}

const messageOf = (error: Error): string => error.message;

describe("waiting until something is found", () => {
  it("looks at once and never after the limit, and ends with what a look finds", async () => {
    for (const [limitMs, found, pauses] of [
      [0, undefined, []],
      [15, undefined, [10]],
      [20, 0, [10, 10]],
    ] as const) {
      const [looks, world] = [[undefined, false, 0] as (number | false | undefined)[], simulated()];
      expect(await poll(() => looks.shift(), { everyMs: 10, limitMs, ...world })).to.equal(found);
      expect(world.pauses).to.deep.equal(pauses);
    }
  });

  it("ends with the signal's reason", async () => {
    const stop = new AbortController();
    const look = (): undefined => stop.abort(new Error("left")) as undefined;
    expect(await poll(look, { everyMs: 1, signal: stop.signal }).catch(messageOf)).to.equal("left");
  });
});

describe("work that is tried again", () => {
  it("is done, or fails with an error that no try helps, or with the last one when the time is up", async () => {
    const tried = (...messages: string[]) => {
      const work = async (): Promise<string> => {
        const message = messages.shift();
        if (message !== undefined) throw new Error(message);
        return "done";
      };
      const mayHelp = (error: unknown): boolean => (error as Error).message.startsWith("busy");
      return retry(work, { mayHelp, everyMs: 1, limitMs: 2, ...simulated() }).catch(messageOf);
    };
    expect(await tried("busy", "busy")).to.equal("done");
    expect(await tried("busy", "refused")).to.equal("refused");
    expect(await tried("busy", "busy", "busy at last")).to.equal("busy at last");
  });
});

describe("work with a time limit", () => {
  it("gives its result or error, and nothing once the limit is over", async () => {
    expect(await within(10_000, Promise.resolve(1))).to.equal(1);
    expect(await within(10_000, Promise.reject(new Error("broken"))).catch(messageOf)).to.equal("broken");
    expect(await within(0, new Promise(() => undefined))).to.equal(undefined);
  });
});

describe("a limit for an answer", () => {
  it("reads an answer that came while this process stood still, before it counts as missing", async () => {
    const program = spawn("sh", ["-c", "sleep 0.2; echo answer"]);
    const answer = new Promise<string>((resolve, reject) => {
      program.stdout.once("data", (bytes: Buffer) => resolve(String(bytes)));
      countdown(400, () => reject(new Error("no answer in time")));
    });
    // Stands still for longer than the limit.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    expect(await answer).to.equal("answer\n");
  });

  it("ends by itself without an answer, and not once it was cancelled", async () => {
    const over: string[] = [];
    const cancel = countdown(1, () => over.push("cancelled"));
    cancel();
    await new Promise<void>((resolve) => countdown(600, resolve));
    expect(over).to.deep.equal([]);
  });
});
