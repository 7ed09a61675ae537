import { attemptName } from "#engine/session/session.ts";
import { expect } from "chai";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { startDelayLine } from "#support/delay-line.ts";
import { draftOf, performOn, sessionOn } from "#support/sessions.ts";
import { startSshd } from "#support/sshd.ts";

describe("two processes that work for one run at a node", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "kcore-attempts-"))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const step = (name: string, seconds = 0): Step => ({
    want: {},
    probe: sh``,
    apply: sh`sleep ${seconds}; echo x >>${join(folder, name)}`,
    always: true,
  });
  const shared = { runId: "r1", nonce: "0123456789abcdef".repeat(2) };
  const attempt = (number: number) => ({ ...shared, attempt: attemptName(1, number), resumed: number > 1 });
  const drafts = () => [draftOf("slow", step("slow", 2)), draftOf("next", step("next"))];
  const begun = (state: string): string[] =>
    readFileSync(join(state, "runs", "r1", "journal"), "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[1] === "start");

  it("ends the follower of the earlier attempt, which says and does nothing when it wakes up", async () => {
    const state = join(folder, "state");
    const server = await startSshd();
    const endpoint = { ...server.endpoint(), name: "n1" };
    const line = await startDelayLine({ target: { port: endpoint.port } });
    try {
      const first = sessionOn(state, { ...attempt(1), endpoint: { ...endpoint, port: line.port } });
      const work = first.session.perform([{ stage: "s", drafts: drafts() }]);
      await first.seen(({ type }) => type === "step.started");
      line.blackhole();
      const second = await performOn(state, drafts(), { ...attempt(2), endpoint });
      expect([second.outcome, second.outcomes()]).to.deep.equal(["done", ["slow changed", "next changed"]]);
      line.heal();
      const { outcome, problem } = await work;
      await first.session.finish(outcome, problem);
      expect([outcome, problem?.code]).to.deep.equal(["failed", "SUPERSEDED"]);
      expect(readFileSync(join(folder, "slow"), "utf8")).to.equal("x\n");
      expect(readFileSync(join(folder, "next"), "utf8")).to.equal("x\n");
      expect(begun(state)).to.have.lengthOf(2);
    } finally {
      await line.close();
      await server.stop();
    }
  });

  it("refuses an attempt after a later one, also when the run has ended there", async () => {
    const state = join(folder, "state");
    expect((await performOn(state, drafts(), attempt(2))).outcome).to.equal("done");
    const late = await performOn(state, drafts(), attempt(1));
    expect([late.outcome, late.problem?.code, late.outcomes()]).to.deep.equal(["failed", "SUPERSEDED", []]);
    expect(begun(state)).to.have.lengthOf(2);
  });

  it("lets a later part of the run go on, whatever the number of its attempt", async () => {
    const state = join(folder, "state");
    expect((await performOn(state, drafts(), attempt(7))).outcome).to.equal("done");
    const next = await performOn(state, drafts(), { ...shared, attempt: attemptName(2, 0), resumed: true });
    expect(next.outcome).to.equal("done");
    expect(begun(state)).to.have.lengthOf(2);
  });
});
