import { expect } from "chai";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { BreakableNode } from "#support/breakable-node.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";

describe("a node's session over SSH, under faults", () => {
  const node = new BreakableNode();
  let state: string;
  beforeEach(() => (state = join(node.folder, "state")));

  const slow = (seconds: number, name = "log"): Step => ({
    want: {},
    probe: sh``,
    apply: sh`sleep ${seconds}; echo x >>${join(node.folder, name)}`,
    always: true,
  });
  const lines = (name = "log"): number =>
    existsSync(join(node.folder, name)) ? readFileSync(join(node.folder, name), "utf8").split("\n").length - 1 : 0;
  const startedStep = (title: string) => (event: RunEventBody) =>
    event.type === "step.started" && event.title === title;

  it("F-17 aborts the running step also when that is asked for while the connection is down", async () => {
    const run = sessionOn(state, { endpoint: node.endpoint(), retryDelays: [0, 200, 200, 200, 200, 200, 200, 200] });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("slow", slow(30))] }]);
    await run.seen(startedStep("slow"));
    node.line.cut();
    await run.seen(({ type }) => type === "node.disconnected");
    run.session.abort();
    node.line.heal();
    const result = await work;
    await run.session.finish("interrupted");
    expect(result.outcome).to.equal("interrupted");
    expect([lines(), run.outcomes()]).to.deep.equal([0, ["slow interrupted"]]);
  });

  it("gives up on a node that takes connections but runs no shell any more", async () => {
    const { connect } = createTransport({ home: state });
    let connections = 0;
    const run = sessionOn(state, {
      endpoint: node.endpoint(),
      retryDelays: [0, 0, 0],
      connect: async (to, options) => {
        const host = await connect(to, options);
        return ++connections === 1 ? host : { ...host, name: host.name, exec: () => host.exec("exit 1") };
      },
    });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("slow", slow(2))] }]);
    await run.seen(startedStep("slow"));
    node.line.cut();
    node.line.heal();
    const { outcome, problem } = await work;
    await run.session.finish(outcome, problem);
    expect([outcome, problem?.code]).to.deep.equal(["unreachable", "HOST_LOST"]);
    expect(connections).to.be.lessThan(6);
  });

  it("F-4 gives a new runner what is left when the old one is gone, and looks at the interrupted step again", async () => {
    const run = sessionOn(state, { endpoint: node.endpoint(), runId: "gone" });
    const path = join(node.folder, "log");
    const step: Step = {
      want: { n: "1" },
      probe: sh`[ -s ${path} ] && fact n 1 || fact n 0`,
      apply: sh`sleep 3; echo x >>${path}`,
      // One shell from beginning to end, without a first look.
      quiet: true,
    };
    const work = run.session.perform([
      { stage: "s", drafts: [draftOf("slow", step), draftOf("next", slow(0, "next"))] },
    ]);
    await run.seen(startedStep("slow"));
    // What a reboot does: the runner and its step die, the connection ends, the state folder stays.
    const current = join(state, "runs", "gone", "current");
    while (!existsSync(current) || readFileSync(current, "utf8") === "")
      await new Promise((resolve) => setTimeout(resolve, 10));
    const [pid = "0"] = readFileSync(current, "utf8").split(" ");
    const { execFileSync } = await import("node:child_process");
    const runner = execFileSync("ps", ["-o", "ppid=", "-p", pid], { encoding: "utf8" }).trim();
    process.kill(Number(runner), "SIGKILL");
    process.kill(-Number(pid), "SIGKILL");
    node.line.cut();
    node.line.heal();
    const result = await work;
    await run.session.finish("done");
    expect(result.outcome).to.equal("done");
    expect([lines(), lines("next")]).to.deep.equal([1, 1]);
    expect(run.events.some((event) => event.type === "warning" && event.text.includes("took the lock over"))).to.equal(
      true,
    );
  });

  it("notices a runner that died under an open connection, and gives a new one the rest when its step has ended", async () => {
    const run = sessionOn(state, { endpoint: node.endpoint(), runId: "died" });
    const path = join(node.folder, "log");
    const step: Step = {
      want: { n: "1" },
      probe: sh`[ -s ${path} ] && fact n 1 || fact n 0`,
      apply: sh`sleep 3; echo x >>${path}`,
    };
    const work = run.session.perform([
      { stage: "s", drafts: [draftOf("slow", step), draftOf("next", slow(0, "next"))] },
    ]);
    const pid = join(state, "runs", "died", "pid");
    await run.seen(startedStep("slow"));
    while (!existsSync(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
    process.kill(Number(readFileSync(pid, "utf8").split(" ")[0]), "SIGKILL");
    expect((await work).outcome).to.equal("done");
    await run.session.finish("done");
    expect([lines(), lines("next")]).to.deep.equal([1, 1]);
  });

  it("F-17 kills after 5 s what does not heed TERM, also below a shell that does", async () => {
    const deaf = { want: { a: "1" }, probe: sh`fact a 0`, apply: sh`sh -c "trap '' TERM; echo \$\$; sleep 60; true"` };
    const run = sessionOn(state, { endpoint: node.endpoint() });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("deaf", deaf)] }]);
    const said = await run.seen(({ type }) => type === "step.output");
    const pid = Number(said.type === "step.output" && said.text);
    run.session.abort();
    const result = await work;
    await run.session.finish("interrupted");
    expect(result.outcome).to.equal("interrupted");
    expect(run.outcomes()).to.deep.equal(["deaf interrupted"]);
    expect(pid).to.be.greaterThan(1);
    expect(isAlive(markProcess(pid))).to.equal(false);
  });
});
