import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { RunEventBody } from "#engine/events/event.ts";
import { Blob, blobOf } from "#engine/step/blob.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { isAlive, markProcess } from "#engine/run/process-mark.ts";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { commandStep, draftOf, performOn, printedIn, sessionOn, keptOfRun } from "#support/sessions.ts";
import { partOf } from "#support/slice.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a node's session over SSH, under faults", () => {
  let sshd: SshServer;
  let line: DelayLine;
  let endpoint: Endpoint;
  const inFolder = folderOfEachTest("breakable");
  let state: string;
  before(async () => {
    sshd = await startSshd();
    line = await startDelayLine({ target: { port: sshd.port } });
    endpoint = { ...sshd.endpoint(), name: "n1", port: line.port };
  });
  after(async () => {
    await line?.close();
    await sshd?.stop();
  });
  beforeEach(() => {
    chmodSync(inFolder(), 0o755);
    state = inFolder("state");
  });
  afterEach(() => {
    line.setRate(undefined);
  });

  const slow = (seconds: number, name = "log"): Step => commandStep(sh`sleep ${seconds}; echo x >>${inFolder(name)}`);
  /** The step “slow”, which takes 3 s unless it is in order, and the step “next”. */
  const twoSteps = (more: Partial<Step> = {}): UnresolvedStep[] => {
    const path = inFolder("log");
    const probe = sh`[ -s ${path} ] && fact n 1 || fact n 0`;
    const step = { want: { n: "1" }, probe, apply: sh`sleep 3; echo x >>${path}`, ...more };
    return [draftOf("slow", step), draftOf("next", slow(0, "next"))];
  };
  const lines = (name = "log"): number =>
    existsSync(inFolder(name)) ? readFileSync(inFolder(name), "utf8").split("\n").length - 1 : 0;
  const startedStep = (title: string) => (event: RunEventBody) =>
    event.type === "step.started" && event.title === title;

  it("F-17 aborts the running step when abort comes while the connection is down", async () => {
    const run = sessionOn(state, { endpoint, retryDelays: [0, 200, 200, 200, 200, 200, 200, 200] });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("slow", slow(30))] }]);
    await run.seen(startedStep("slow"));
    line.cut();
    await run.seen(({ type }) => type === "node.disconnected");
    run.session.abort();
    line.heal();
    const result = await work;
    await run.session.finish("interrupted");
    expect(result.outcome).to.equal("interrupted");
    expect([lines(), run.outcomes()]).to.deep.equal([0, ["slow interrupted"]]);
  });

  it("gives up on a node that accepts connections but runs no shell", async () => {
    const { connect } = createTransport({ home: state });
    let connections = 0;
    const run = sessionOn(state, {
      endpoint,
      retryDelays: [0, 0, 0],
      connect: async (to, options) => {
        const host = await connect(to, options);
        return ++connections === 1 ? host : { ...host, name: host.name, exec: () => host.exec("exit 1") };
      },
    });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("slow", slow(2))] }]);
    await run.seen(startedStep("slow"));
    line.cut();
    line.heal();
    const { outcome, problem } = await work;
    await run.session.finish(outcome, problem);
    expect([outcome, problem?.code]).to.deep.equal(["unreachable", "HOST_LOST"]);
    expect(connections).to.be.lessThan(6);
  });

  it("F-4 gives the rest to a new runner when the old one is gone, and probes the interrupted step again", async () => {
    const run = sessionOn(state, { endpoint, runId: "gone" });
    // One shell for the whole step, without a separate probe.
    const work = run.session.perform([{ stage: "s", drafts: twoSteps({ quiet: true }) }]);
    await run.seen(startedStep("slow"));
    // A reboot ends the runner, its step and the connection; the state folder stays.
    const current = join(state, "runs", "gone", "current");
    while (!existsSync(current) || readFileSync(current, "utf8") === "")
      await new Promise((resolve) => setTimeout(resolve, 10));
    const [pid = "0"] = readFileSync(current, "utf8").split(" ");
    const runner = execFileSync("ps", ["-o", "ppid=", "-p", pid], { encoding: "utf8" }).trim();
    process.kill(Number(runner), "SIGKILL");
    process.kill(-Number(pid), "SIGKILL");
    line.cut();
    line.heal();
    const result = await work;
    await run.session.finish("done");
    expect(result.outcome).to.equal("done");
    expect([lines(), lines("next")]).to.deep.equal([1, 1]);
    expect(run.events.some((event) => event.type === "warning" && event.text.includes("took the lock over"))).to.equal(
      true,
    );
  });

  it("replaces a runner that died while the connection stays open, once its step has ended", async () => {
    const run = sessionOn(state, { endpoint, runId: "died" });
    const work = run.session.perform([{ stage: "s", drafts: twoSteps() }]);
    const pid = join(state, "runs", "died", "pid");
    await run.seen(startedStep("slow"));
    while (!existsSync(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
    process.kill(Number(readFileSync(pid, "utf8").split(" ")[0]), "SIGKILL");
    expect((await work).outcome).to.equal("done");
    await run.session.finish("done");
    expect([lines(), lines("next")]).to.deep.equal([1, 1]);
  });

  it("F-17 kills a process after 5 s that ignores SIGTERM, also below a shell that obeys it", async () => {
    const deaf = { want: { a: "1" }, probe: sh`fact a 0`, apply: sh`sh -c "trap '' TERM; echo \$\$; sleep 60; true"` };
    const run = sessionOn(state, { endpoint });
    const work = run.session.perform([{ stage: "s", drafts: [draftOf("deaf", deaf)] }]);
    const printed = await run.seen(({ type }) => type === "step.output");
    const pid = Number(printed.type === "step.output" && printed.text);
    run.session.abort();
    const result = await work;
    await run.session.finish("interrupted");
    expect(result.outcome).to.equal("interrupted");
    expect(run.outcomes()).to.deep.equal(["deaf interrupted"]);
    expect(pid).to.be.greaterThan(1);
    expect(isAlive(markProcess(pid))).to.equal(false);
  });

  const stepWithContent = (size: number): Step => {
    const bytes = randomBytes(size);
    const { sha256 } = blobOf(bytes);
    const blob = new Blob({ sha256, size, sensitive: false, read: () => Promise.resolve(bytes), label: "image" });
    const path = inFolder("image");
    return {
      want: { size: String(size) },
      probe: sh`fact size "$(stat -c %s ${path} 2>/dev/null || echo 0)"`,
      apply: sh`cat ${blob} >${path}`,
    };
  };

  it("reports progress of a large content on a slow line, which may take longer than the stall limit", async () => {
    line.setRate(1_200_000);
    const size = 6_000_000;
    const run = await performOn(state, [draftOf("image", stepWithContent(size))], { endpoint, transferStall: 1500 });
    expect([run.outcome, run.outcomes()]).to.deep.equal(["done", ["image changed"]]);
    const progress = run.events.flatMap((event) => (event.type === "node.sending" ? [event] : []));
    expect(progress.length).to.be.at.least(3);
    expect(progress.map(({ sent }) => sent)).to.deep.equal(progress.map(({ sent }) => sent).toSorted((a, b) => a - b));
    // Only acknowledged bytes count as sent: a window is 2 MiB.
    expect(progress[0]?.sent).to.be.at.most(2_400_000);
    expect(progress.at(-1)?.rate).to.be.within(1, 2_400_000);
    const sent = run.events.filter(({ type }) => type === "node.sent");
    expect(sent).to.have.length(1);
    expect(sent[0]).to.include({ name: "image", bytes: size });
    expect((sent[0] as { duration: number }).duration).to.be.greaterThan(3000);
  });

  const big = blobOf(Buffer.alloc(2_500_000, "all work and no play\n"));
  const putBigFile = (): Step => {
    const path = inFolder("big");
    return {
      want: { content: big.sha256 },
      probe: sh`[ -f ${path} ] && fact content "$(sha256sum <${path} | cut -d" " -f1)" || fact content absent`,
      apply: sh`put_file ${big} ${path} 0644 root root`,
    };
  };
  const countingStep = (name: string): Step => commandStep(sh`echo x >>${inFolder(name)}; echo "output of ${name}"`);
  /** Performs two segments and a large content over a line that breaks once. */
  async function runOver(cut: () => void): Promise<void> {
    cut();
    const drafts = [
      draftOf("one", countingStep("one"), { register: "one" }),
      draftOf("put", putBigFile()),
      draftOf("two", () => countingStep("two"), { needs: { facts: false, steps: ["one"] } }),
    ];
    const run = await performOn(state, drafts, { endpoint, runId: "cut" });
    expect(run.problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["one changed", "put changed", "two changed"]);
    expect([lines("one"), lines("two")]).to.deep.equal([1, 1]);
    expect(readFileSync(inFolder("big")).length).to.equal(big.size);
    expect(printedIn(run).join("")).to.equal("output of one\noutput of two\n");
    expect(keptOfRun(state, "cut")).to.deep.equal(["journal"]);
    expect(readFileSync(join(state, "runs", "cut", "journal"), "utf8")).to.match(/ bye done\n$/);
    rmSync(inFolder(), { recursive: true, force: true });
  }

  for (const bytes of partOf([6_000, 9_000, 14_000, 36_000, 60_000, 1_300_000, 2_500_000, 2_560_000], 2))
    it(`F-1 loses and repeats nothing when the line breaks after ${bytes} bytes sent`, () =>
      runOver(() => line.cutNext("up", bytes)));
  for (const bytes of partOf([3_100, 3_600, 4_000, 4_500, 5_200, 6_000], 2))
    it(`F-1 loses and repeats nothing when the line breaks after ${bytes} bytes received`, () =>
      runOver(() => line.cutNext("down", bytes)));
});
