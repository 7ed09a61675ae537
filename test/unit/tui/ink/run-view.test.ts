import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import type { RunControl, RunEvent } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { RunView, type RunViewOptions } from "#tui/ink/run-view.ts";
import { FakeTerminal } from "#support/fake-terminal.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { colourTheme, plainTheme } from "#support/scenes.ts";

const done = recordedRun("done");

describe("the live view", () => {
  let view: RunView | undefined;
  let terminal: FakeTerminal;
  let timers: FakeTimers;
  let sent: RunControl[];
  let left: string[];

  beforeEach(() => ([terminal, timers, sent, left] = [new FakeTerminal(), new FakeTimers(), [], []]));
  afterEach(async () => {
    await view?.close();
    view = undefined;
  });

  const open = async (events: readonly RunEvent[], options: Partial<RunViewOptions> = {}) => {
    view = new RunView({
      stdin: terminal.stdin,
      stdout: terminal.stdout,
      theme: plainTheme,
      project: "/srv/demo",
      now: () => events.at(-1)?.at ?? 0,
      send: (control) => sent.push(control),
      leave: (why) => left.push(why),
      timers,
      ...options,
    });
    for (const event of events) view.draw(event);
    await pass(200);
    return view;
  };
  /** Passes simulated time, and lets ink write its frame: ink waits a millisecond of the real clock between two frames. */
  const pass = async (milliseconds: number) => {
    timers.pass(milliseconds);
    await new Promise((resolve) => setTimeout(resolve, 3));
  };
  /** The keys arrive through a stream. */
  const type = async (keys: string) => {
    terminal.type(keys);
    await new Promise((resolve) => setImmediate(resolve));
    await pass(50);
  };
  const shown = () => stripVTControlCharacters(terminal.written);

  it("shows the run's title, id and mode before its first event", async () => {
    await open([], { before: { ...emptyRun, runId: "20261121-120000-beef", title: "deploy_node", dryRun: true } });
    for (const text of ["DRY RUN", "deploy_node", "starting", "run 20261121-120000-beef"])
      expect(shown()).to.contain(text);
  });

  it("scrolls through a step's whole output, read from the record", async () => {
    const line = (index: number) => `line ${index} ${"x".repeat(20)}\n`;
    const begun = recordedRun("failed");
    const at = begun.findIndex((event) => event.type === "step.started" && event.step === "disks/install");
    const printed = Array.from({ length: 1000 }, (_, index) => ({
      type: "step.output",
      node: "n1",
      step: "disks/install",
      stream: "out",
      text: line(index + 1),
    }));
    const events = [...begun.slice(0, at + 1), ...printed, ...begun.slice(at + 1)].map(
      (event, index) => ({ at: 1, ...event, seq: index + 1 }) as RunEvent,
    );
    const record = Buffer.from(events.map(formatEvent).join(""));
    const read = (from: number, length: number) => Promise.resolve(record.subarray(from, from + length));
    await open(events, { read });
    /** The line numbers on a redrawn screen. */
    const seen = async () => {
      for (let turn = 0; turn < 5; turn++) await pass(100);
      const drawn = terminal.written.length;
      await type("\u000c");
      return [...stripVTControlCharacters(terminal.written.slice(drawn)).matchAll(/line (\d+) x/g)].map(([, index]) =>
        Number(index),
      );
    };
    await type("\r");
    expect((await seen()).slice(0, 3)).to.deep.equal([1, 2, 3]);
    // The model begins after line 860.
    for (let page = 0; page < 20; page++) await type("\u001b[6~");
    const [first = 0, ...more] = await seen();
    expect(first).to.be.within(50, 800);
    expect(more).to.deep.equal(more.map((_, index) => first + index + 1));
    // A search also finds lines that the model has dropped; the visible rows stay until the match is found.
    await type("g/line 123 \r");
    expect(await seen()).to.include(123);
    await type("n");
    expect(await seen()).to.include(123);
    await type("/LINE 99\r");
    expect(await seen()).to.include(123);
    expect(shown()).to.contain("“LINE 99” not found");
    await type("/line 99\r");
    await seen();
    expect(shown()).to.match(/“line 99” \d+\/11 /);
    // Truncated lines are one row each: the first visible line stays.
    await type("\u001b[6~\u001b[6~");
    const [here = 0] = await seen();
    await type("w");
    expect((await seen())[0]).to.equal(here);
  });

  it("uses the alternate screen and raw mode, and restores both when closed", async () => {
    const one = await open(done);
    expect(terminal.written.startsWith("\u001b[?1049h")).to.equal(true);
    expect(shown()).to.contain("deploy_node");
    expect(terminal.isRaw).to.equal(true);
    await one.close();
    expect([terminal.isRaw, terminal.written.split("\u001b[?1049l").length]).to.deep.equal([false, 2]);
    expect(terminal.written.lastIndexOf("\u001b[?25h")).to.be.greaterThan(terminal.written.lastIndexOf("\u001b[?25l"));
    const { length } = terminal.written;
    await one.close();
    one.draw(done[0] as RunEvent);
    await pass(1000);
    expect(terminal.written.length).to.equal(length);
  });

  it("removes all its listeners when closed", async () => {
    const count = () =>
      ["SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGCONT", "exit", "uncaughtExceptionMonitor"].map((name) =>
        process.listenerCount(name),
      );
    const before = count();
    await (await open(done)).close();
    expect(count()).to.deep.equal(before);
    expect(terminal.listenerCount("resize")).to.equal(0);
  });

  it("S-4: writes no terminal sequences of a node", async () => {
    const evil = "\u001b]0;owned\u0007\u001b[2Jharmless\u009b6n";
    await open(
      [
        ...done.slice(0, 17),
        { seq: 18, at: 2, type: "step.output", node: "n1", step: "disks/issue", stream: "out", text: evil },
        { seq: 19, at: 3, type: "step.note", node: "n1", step: "disks/issue", text: evil },
        { seq: 20, at: 4, type: "node.waiting", node: "n2", reason: evil },
        { seq: 21, at: 5, type: "warning", text: evil },
      ],
      { theme: colourTheme },
    );
    expect(shown()).to.contain("harmless");
    expect(terminal.written).to.not.contain("owned").and.not.contain("\u009b").and.not.contain("\u001b[2J");
  });

  it("applies a key to the last drawn frame, not to later events", async () => {
    const one = await open(done.slice(0, 15));
    expect(shown()).to.match(/▸ . n1 /);
    // n2 fails, so that the next frame would select it by itself.
    const problem = { code: "STEP_FAILED", message: "it broke" } as const;
    one.draw({ seq: 16, at: 1, type: "node.finished", node: "n2", outcome: "failed", problem });
    await type("\r");
    expect(shown()).to.match(/ n1 running/);
  });

  it("stops at the first Ctrl-C, aborts at the second, leaves at the third", async () => {
    await open(done.slice(0, 15));
    await type("\u0003");
    expect(sent).to.deep.equal([{ type: "stop" }]);
    expect(shown()).to.contain("No new step starts.");
    await type("\u0003");
    expect(sent.slice(1)).to.deep.equal([{ type: "abort" }]);
    await type("\u0003");
    expect(left).to.deep.equal(["left"]);
  });

  it("leaves once by q or a lost terminal, and sends nothing to the run", async () => {
    await open(done.slice(0, 15));
    await type("q");
    terminal.emit("error", new Error("EIO"));
    expect(left).to.deep.equal(["detached"]);
    expect(sent).to.deep.equal([]);
  });

  /** The sequence that puts a text into the terminal's clipboard. */
  const copied = (text: string) => `\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`;

  it("copies into the terminal's clipboard", async () => {
    await open(done);
    await type("c");
    expect(terminal.written).to.contain(copied("kcore orchestrate deploy_node --on n1"));
    expect(shown()).to.contain("copied: kcore orchestrate deploy_node --on n1");
  });

  it("redraws when the terminal's size changes", async () => {
    await open(done);
    const before = terminal.written.length;
    terminal.resize(60, 15);
    await pass(100);
    expect(stripVTControlCharacters(terminal.written.slice(before))).to.contain("2 nodes");
    terminal.resize(20, 5);
    await pass(100);
    expect(shown()).to.contain("20x5 is too small");
  });

  describe("after the end", () => {
    const failed = recordedRun("failed");
    /** The view's request after these keys: `leave`, `resume`, or none yet. */
    const wanted = async (one: RunView, keys = "") => {
      let request: string | undefined;
      void one.rest().then((what) => (request = what));
      await pass(50);
      if (keys !== "") await type(keys);
      return request;
    };

    it("closes at once after success without keys", async () =>
      expect(await wanted(await open(done))).to.equal("leave"));

    it("stays after a failure until q", async () => {
      const one = await open(failed);
      expect(await wanted(one)).to.equal(undefined);
      expect(shown()).to.match(/failed +· +q leaves +c copies the resume command +R resumes/);
      expect(await wanted(one, "q")).to.equal("leave");
    });

    it("resumes the run with R and y only, and copies the command with c", async () => {
      const one = await open(failed);
      expect(await wanted(one, "c")).to.equal(undefined);
      const id = failed[0]?.type === "run.started" && failed[0].runId;
      expect(terminal.written).to.contain(copied(`kcore runs resume ${id}`));
      for (const keys of ["r", "y", "Rn", "R\u001B", "Rr"]) expect(await wanted(one, keys), keys).to.equal(undefined);
      await type("R");
      expect(shown()).to.match(/Resume run \S+\? It goes on where it stopped/);
      expect(await wanted(one, "y")).to.equal("resume");
    });

    it("stays after keys were used, without a resume after success", async () => {
      const one = await open(done.slice(0, -1));
      await type("j");
      one.draw(done.at(-1) as RunEvent);
      expect(await wanted(one, "Ry")).to.equal(undefined);
      expect(shown()).to.match(/done +· +q leaves/);
      expect(await wanted(one, "\u0003")).to.equal("leave");
    });

    it("stays after a dry run, and closes if this view stopped the run or left", async () => {
      expect(await wanted(await open(recordedRun("dry-run")))).to.equal(undefined);
      await pass(200);
      expect(shown()).to.match(/changes that it would make/);
      await view?.close();
      const stopped = await open(failed.slice(0, -1));
      await type("\u0003");
      stopped.draw(failed.at(-1) as RunEvent);
      expect(await wanted(stopped)).to.equal("leave");
      await view?.close();
      const gone = await open(failed);
      await type("q");
      expect(await wanted(gone)).to.equal("leave");
    });
  });
});
