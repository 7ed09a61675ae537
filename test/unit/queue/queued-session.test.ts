import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { toJson } from "#engine/orchestrate/values-json.ts";
import type { SessionOptions, WorkResult } from "#engine/session/session.ts";
import type { Command } from "#queue/messages.ts";
import { QueuedSession } from "#queue/queued-session.ts";
import { nodeEntry, unresolvedStep } from "#support/runs.ts";

describe("a node's session over a queue", () => {
  let session: QueuedSession;
  let events: RunEventBody[];
  let jobs: number;
  const asked: boolean[] = [];
  beforeEach(() => {
    [events, jobs] = [[], 0];
    asked.length = 0;
    const options = {
      node: nodeEntry("n1"),
      emit: (event: RunEventBody) => events.push(event),
      recorded: new Map(),
      resumed: false,
      sudoPassword: (again = false) => {
        asked.push(again);
        return Promise.resolve("pw");
      },
    } as unknown as SessionOptions;
    session = new QueuedSession({
      session: options,
      firstAttempt: 1e9,
      ask: () => Promise.reject(new Error("no other question")),
      enqueue: () => {
        jobs++;
        return { end: () => undefined };
      },
    });
  });
  const work = (stage: string) => [{ stage, drafts: [unresolvedStep(`s/${stage}`)] }];
  /** A worker that takes the job: the commands that it gets. */
  const take = (): Command[] => {
    const commands: Command[] = [];
    session.take({ end: () => undefined, send: (command) => commands.push(command) });
    return commands;
  };
  const done: WorkResult = { outcome: "done", registered: new Map(), finishedStages: new Set(["a"]) };
  const tell = (call: number): void => session.handle({ tell: "result", call, result: toJson(done) });
  const finished = (step: string): RunEventBody => ({
    type: "step.finished",
    node: "n1",
    stage: "a",
    step,
    title: step,
    module: "m",
    outcome: "changed",
  });

  it("gives the next worker what is recorded, what ended well, and what has not ended", async () => {
    const first = session.perform(work("a"));
    take();
    session.handle({ tell: "events", events: [finished("s/a")] });
    tell(1);
    expect((await first).outcome).to.equal("done");
    const second = session.perform(work("b"));
    session.lose();
    const [open, perform] = take();
    expect(open).to.deep.include({ attempt: 1e9 + 2, resumed: true, recorded: [["s/a", ["changed"]]] });
    expect(open?.do === "open" && open.done.map(({ call }) => call)).to.deep.equal([1]);
    expect(perform).to.deep.include({ do: "perform", call: 2 });
    tell(1);
    tell(2);
    expect((await second).outcome).to.equal("done");
    expect(jobs).to.equal(1);
  });

  it("ends its job at rest, and begins another one for further work", async () => {
    const first = session.perform(work("a"));
    const commands = take();
    tell(1);
    await first;
    const rested = session.rest();
    expect(commands.at(-1)).to.deep.equal({ do: "rest" });
    session.handle({ tell: "ended" });
    await rested;
    void session.perform(work("b"));
    expect(jobs).to.equal(2);
  });

  it("is not started if a stop comes before a worker, and drops a worker that comes later", async () => {
    const first = session.perform(work("a"));
    session.stop();
    expect((await first).outcome).to.equal("not-started");
    expect(take()).to.deep.equal([{ do: "drop" }]);
    expect((await session.perform(work("b"))).outcome).to.equal("not-started");
    await session.finish("interrupted");
    expect(events.map(({ type }) => type)).to.deep.equal(["node.finished"]);
  });

  it("is interrupted if the worker is lost after a stop", async () => {
    const first = session.perform(work("a"));
    const commands = take();
    session.stop();
    expect(commands.at(-1)).to.deep.equal({ do: "stop", how: "stop" });
    session.lose();
    expect((await first).outcome).to.equal("interrupted");
  });

  it("asks for the sudo password again only if the same worker does", async () => {
    const first = session.perform(work("a"));
    const question = { kind: "password", text: "sudo", node: "n1", secret: true } as const;
    const ask = (request: number): void => session.handle({ tell: "request", request, method: "ask", args: question });
    const commands = take();
    ask(1);
    ask(2);
    session.lose();
    take();
    ask(1);
    await new Promise(setImmediate);
    expect(asked).to.deep.equal([false, true, false]);
    expect(commands.filter((command) => command.do === "answer").map(({ value }) => value)).to.deep.equal(["pw", "pw"]);
    tell(1);
    await first;
  });
});
