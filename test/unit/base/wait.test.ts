import { spawn } from "node:child_process";
import { expect } from "chai";
import { countdown, poll, retry, within } from "#base/wait.ts";

/** A clock that only `sleep` moves, with the list of pauses. */
function simulatedClock() {
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
  it("looks at once, never after the limit, and gives the first value found", async () => {
    for (const [limitMs, found, pauses] of [
      [0, undefined, []],
      [15, undefined, [10]],
      [20, 0, [10, 10]],
    ] as const) {
      const [looks, world] = [[undefined, false, 0] as (number | false | undefined)[], simulatedClock()];
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

describe("retry", () => {
  it("gives the result, the first error that is not worth a retry, or the last error at the time limit", async () => {
    const resultOf = (...messages: string[]) => {
      const work = async (): Promise<string> => {
        const message = messages.shift();
        if (message !== undefined) throw new Error(message);
        return "done";
      };
      const mayHelp = (error: unknown): boolean => (error as Error).message.startsWith("busy");
      return retry(work, { mayHelp, everyMs: 1, limitMs: 2, ...simulatedClock() }).catch(messageOf);
    };
    expect(await resultOf("busy", "busy")).to.equal("done");
    expect(await resultOf("busy", "refused")).to.equal("refused");
    expect(await resultOf("busy", "busy", "busy at last")).to.equal("busy at last");
  });
});

describe("work with a time limit", () => {
  it("gives its result or error, or undefined after the limit", async () => {
    expect(await within(10_000, Promise.resolve(1))).to.equal(1);
    expect(await within(10_000, Promise.reject(new Error("broken"))).catch(messageOf)).to.equal("broken");
    expect(await within(0, new Promise(() => undefined))).to.equal(undefined);
  });
});

describe("a countdown to a missing answer", () => {
  it("does not end before an answer is read that arrived while the process was blocked", async () => {
    const program = spawn("sh", ["-c", "sleep 0.2; echo answer"]);
    const answer = new Promise<string>((resolve, reject) => {
      program.stdout.once("data", (bytes: Buffer) => resolve(String(bytes)));
      countdown(400, () => reject(new Error("no answer in time")));
    });
    // Blocks the process for longer than the limit.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
    expect(await answer).to.equal("answer\n");
  });

  it("ends without an answer, but not after it was cancelled", async () => {
    const over: string[] = [];
    const cancel = countdown(1, () => over.push("cancelled"));
    cancel();
    await new Promise<void>((resolve) => countdown(600, resolve));
    expect(over).to.deep.equal([]);
  });
});
