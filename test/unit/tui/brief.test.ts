import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { createPlainView, type PlainOptions } from "#tui/plain.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { FakeTimers } from "#support/fake-timers.ts";
import { writtenText } from "#support/written-text.ts";
import { wideRun } from "#support/wide-run.ts";
import { runStarted } from "#support/run-started.ts";

function draw(events: readonly RunEvent[], options: Partial<PlainOptions> = {}): readonly string[] {
  const { out, take } = writtenText();
  const view = createPlainView({ out, color: false, detail: "brief", ...options });
  for (const event of events) view.draw(event);
  return take().split("\n").slice(0, -1);
}

const names = { node: "n1", stage: "tools", step: "tools/tool", title: "install tool", module: "command.run" } as const;
const started: RunEventBody = runStarted({
  title: "state apply tools",
  command: "kcore state apply tools --on n1",
  stages: ["tools"],
});
const output = (text: string): RunEventBody => ({
  type: "step.output",
  node: "n1",
  step: names.step,
  stream: "out",
  text,
});
const stamped = (...bodies: readonly RunEventBody[]): readonly RunEvent[] =>
  bodies.map((body, index) => ({ seq: index + 1, at: Date.UTC(2026, 10, 21, 6, 15, index), ...body }));
const noisy = (outcome: "changed" | "failed", text: string) =>
  stamped(started, { type: "step.started", ...names }, output(text), {
    type: "step.finished",
    ...names,
    outcome,
    changes: [{ name: "version", want: "2" }],
    ...(outcome === "failed" && { problem: { code: "STEP_FAILED", message: "it ended with exit code 3" } }),
  });
const six = "1\n2\n3\n4\n5\n6\n";

/** A deploy_node of three nodes on which every step is in order. */
const inOrderAgain = wideRun({ nodes: 3, steps: 16, isInOrder: true });

describe("the brief view", () => {
  it("shows notes of steps in order in a dry run only", () => {
    const shown = (dryRun: boolean): string =>
      draw(
        stamped(
          { ...started, dryRun },
          { type: "step.started", ...names },
          { type: "step.note", node: "n1", step: names.step, text: "/dev/sda  64 MiB  serial S1: blank" },
          { type: "step.finished", ...names, outcome: "ok", changes: [] },
        ),
      ).join("\n");
    expect(shown(true)).to.contain("/dev/sda  64 MiB  serial S1: blank");
    expect(shown(false)).not.to.contain("blank");
  });

  it("shows a note of an action after five seconds if the action still runs", () => {
    const action = { stage: "join", action: "cluster.waitReady", item: "n1" } as const;
    const note = "waiting for n1: it is pending until an operator says: kcore node approve 1";
    const events = stamped(
      started,
      { type: "action.started", ...action },
      { type: "action.note", ...action, text: note },
    );
    const { out, take } = writtenText();
    const clock = new FakeTimers();
    clock.spend(events[2]?.at ?? 0);
    const view = createPlainView({ out, color: false, detail: "brief", timers: clock });
    for (const event of events) view.draw(event);
    expect(take()).not.to.contain("pending");
    clock.pass(5000);
    expect(take()).to.contain("kcore node approve 1");
    const ended = { type: "action.finished", ...action, outcome: "ok", duration: 100 } as const;
    expect(draw([...events, ...stamped(started, started, started, ended).slice(3)]).join("\n")).not.to.contain(
      "pending",
    );
  });

  it("shows once that a node is connected, and again after a lost connection", () => {
    const connected: readonly RunEventBody[] = [
      { type: "node.connecting", node: "n1", attempt: 1 },
      { type: "node.connected", node: "n1", fingerprint: "SHA256:x" },
    ];
    const lost: RunEventBody = { type: "node.disconnected", node: "n1", reason: "reset" };
    const again: RunEventBody = { ...started, resumed: true };
    // A resumed run connects once for steps that still run, and again for the other steps.
    const lines = draw(
      stamped(started, ...connected, again, ...connected, ...connected, lost, ...connected, ...connected),
    );
    expect(lines.filter((line) => line.includes("connected"))).to.deep.equal(["✔ n1  connected  SHA256:x"]);
    expect(lines.at(-1)).to.contain("connected");
  });

  it("shows steps in order as one line per stage and node", () => {
    const lines = draw(inOrderAgain);
    expect(lines.filter((line) => line.includes("n1  "))).to.deep.equal([
      ...["preflight", "disks", "nix", "kcore"].map((stage) => `✔ n1  ${stage}  in order: 3 steps, 1 skipped`),
      "✔ n1  done: 12 in order, 4 skipped",
    ]);
    expect(lines.filter((line) => /n[23] {2}kcore {2}/.test(line))).to.have.length(2);
    expect(lines).to.have.length(16);
  });

  it("shows changes in full, and the rest of their stage as one line", () => {
    const lines = draw(recordedRun("done"));
    for (const whole of ["✔ n1  data disk  changed", "› n1    table: none → gpt", "✔ n1  issue file  changed  2.4 s"])
      expect(lines).to.include(whole);
    expect(lines).to.include("› n1    +kcore").and.to.include("✔ n1  preflight  in order: 1 step");
    expect(lines).to.include("✔ n2  disks  in order: 1 step, 1 skipped");
    expect(lines).to.include("✔ n1  done: 1 in order, 3 changed");
  });

  it("shows failures, lost connections and warnings like the verbose view", () => {
    const verbose = draw(recordedRun("failed"), { detail: "verbose" });
    const bad = (lines: readonly string[]) => lines.filter((line) => /^[✖⚠›]|↻/.test(line));
    expect(bad(draw(recordedRun("failed")))).to.deep.equal(bad(verbose));
    expect(bad(verbose).length).to.be.greaterThan(4);
  });

  it("shows a stage again when a resumed run repeats the stage", () => {
    const step = (name: string, outcome: "ok" | "interrupted", stage = "tools"): RunEventBody => ({
      type: "step.finished",
      ...names,
      stage,
      step: name,
      outcome,
    });
    const interrupted: RunEventBody = { type: "node.finished", node: "n1", outcome: "interrupted" };
    const events = stamped(
      started,
      step("one", "ok"),
      interrupted,
      { ...started, resumed: true },
      step("one", "ok"),
      step("two", "ok", "later"),
    );
    expect(draw(events).filter((line) => line.includes("tools  in order: 1 step"))).to.have.length(2);
    expect(draw(events, { since: 3 }).slice(1)).to.deep.equal(["✔ n1  tools  in order: 1 step"]);
  });

  it("shows times with the option", () => {
    const [first = "", , second = ""] = draw(noisy("changed", "1\n"), { times: true });
    expect(first).to.match(/^→ 06:15:00 {2}state apply tools/);
    expect(second).to.equal("› 06:15:02  n1  | 1");
  });

  it("shows an action that takes long before its end, with its latest note", () => {
    const action = { stage: "join", action: "cluster.waitReady", item: "n1" } as const;
    const events = stamped(
      started,
      { type: "action.started", ...action },
      ...[1, 2, 3, 4, 5].map((count) => ({ type: "action.note", ...action, text: `look ${count}` }) as const),
      { type: "action.finished", ...action, outcome: "ok", duration: 6000 },
    );
    expect(draw(events).slice(1)).to.deep.equal([
      "❯ n1  join: cluster.waitReady",
      "› n1  join: look 5",
      "✔ n1  join: cluster.waitReady  in order  6.0 s",
    ]);
  });

  it("folds a change's output on GitHub, but not a failure's", () => {
    expect(draw(noisy("changed", six), { ci: "github" }).slice(1)).to.deep.equal([
      "❯ n1  install tool",
      "✔ n1  install tool  changed",
      "› n1    version: (absent) → 2",
      "::group::n1  install tool: 6 lines",
      ...["1", "2", "3", "4", "5", "6"].map((line) => `› n1  | ${line}`),
      "::endgroup::",
    ]);
    const failed = draw(noisy("failed", six), { ci: "github" });
    expect(failed.join("\n")).to.not.contain("::group::");
    expect(failed).to.include("› n1  | 6");
  });

  it("folds a change's output on GitLab as a section with its times", () => {
    const at = (second: number) => Date.UTC(2026, 10, 21, 6, 15, second) / 1000;
    const text = draw(noisy("changed", six), { ci: "gitlab" }).join("\n");
    expect(text).to.contain(
      `\u001b[0Ksection_start:${at(1)}:kcore_4[collapsed=true]\r\u001b[0Kn1  install tool: 6 lines\n`,
    );
    expect(text).to.match(new RegExp(`\n\\u001b\\[0Ksection_end:${at(3)}:kcore_4\r\\u001b\\[0K$`));
  });

  it("shows a node's output without workflow commands", () => {
    const text = draw(noisy("failed", "##[error]me\n::add-mask::x\n"), { ci: "github" }).join("\n");
    expect(text).to.not.match(/##\[|^\s*::/m);
  });
});
