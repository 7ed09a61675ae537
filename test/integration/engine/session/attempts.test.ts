import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { WorkResult } from "#engine/session/session.ts";
import { type SessionPlan, longWork } from "#support/session-process.ts";
import { sessionOn, type TestSession } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("two processes that work for one run at a node", () => {
  let sshd: SshServer;
  const inFolder = folderOfEachTest("attempts");
  before(async () => (sshd = await startSshd()));
  after(() => sshd?.stop());
  let plan: SessionPlan;
  beforeEach(() => {
    chmodSync(inFolder(), 0o755);
    const endpoint = { ...sshd.endpoint(), name: "n1" };
    plan = { endpoint, runId: "r", nonce: "a".repeat(32), attempt: 1, resumed: false, folder: inFolder() };
  });
  const session = (attempt: number): TestSession =>
    sessionOn(inFolder("state"), { ...plan, attempt, resumed: attempt > 1, retryDelays: [0, 100] });
  const perform = async ({ session: one }: TestSession): Promise<WorkResult> => {
    const result = await one.perform([{ stage: "s", drafts: longWork(inFolder()) }]);
    await one.finish(result.outcome, result.problem);
    return result;
  };
  const started = (name: string) => (event: { readonly type: string; readonly title?: string }) =>
    event.type === "step.started" && event.title === name;
  const release = (): void => writeFileSync(inFolder("release"), "");
  const log = (): string => readFileSync(inFolder("log"), "utf8");
  const inRun = (...names: readonly string[]): string => join(inFolder("state"), "runs", plan.runId, ...names);
  const begun = (): string[] => readFileSync(inRun("journal"), "utf8").match(/ start \S+/g) ?? [];
  const expectSuperseded = ({ outcome, problem }: Pick<WorkResult, "outcome" | "problem">): void => {
    expect([outcome, problem?.code]).to.deep.equal(["failed", "RUN_SUPERSEDED"]);
  };

  it("ends the lower one's follower while its process stands still, and refuses it when it goes on", async () => {
    const program = join(import.meta.dirname, "../../../support/session-process.ts");
    const child = spawn(process.execPath, [program, JSON.stringify(plan)], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      const told: (WorkResult & { readonly type: string; readonly title?: string })[] = [];
      const lines = createInterface({ input: child.stdout });
      const atWork = Promise.withResolvers<void>();
      lines.on("line", (line) => {
        told.push(JSON.parse(line) as (typeof told)[number]);
        if (told.some(started("long"))) atWork.resolve();
      });
      await atWork.promise;
      child.kill("SIGSTOP");

      const later = session(2);
      const work = perform(later);
      await later.seen(({ type }) => type === "node.connected");
      await later.seen(started("long"));
      expect(readdirSync(inRun("followers")).map((name) => Number(name.split(".")[0]))).to.deep.equal([2]);
      release();
      const { outcome } = await work;

      const closed = once(lines, "close");
      child.kill("SIGCONT");
      await closed;
      expect(outcome).to.equal("done");
      expect(log()).to.equal("long\nnext\n");
      expect(begun().length, "the steps that began in the journal").to.equal(2);
      const end = told.at(-1);
      expectSuperseded(end as WorkResult);
      expect(told.filter(started("next"))).to.deep.equal([]);
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("refuses the lower one that comes later, and leaves the higher one's work alone", async () => {
    const first = session(2);
    const work = perform(first);
    await first.seen(started("long"));
    expectSuperseded(await perform(session(1)));
    release();
    expect((await work).outcome).to.equal("done");
    expect(log()).to.equal("long\nnext\n");
    expect(first.events.filter(({ type }) => type === "node.disconnected")).to.deep.equal([]);
  });

  it("refuses the lower one after the run has ended at the node, and lets the same number in again", async () => {
    release();
    expect((await perform(session(2))).outcome).to.equal("done");
    expectSuperseded(await perform(session(1)));
    expect((await perform(session(2))).outcome).to.equal("done");
    expect(log()).to.equal("long\nnext\n");
  });
});
