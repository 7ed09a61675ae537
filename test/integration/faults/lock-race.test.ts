import { expect } from "chai";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf, performOn, sessionOn, keptOfRun } from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("several runs on one node at once", () => {
  const at = folderOfEachTest("race");

  for (let round = 1; round <= 5; round++)
    it(`F-15 never interleave, and the losers are refused at once, round ${round}`, async () => {
      const state = at("state");
      const log = at("log");
      const step = (name: string): Step => ({
        want: {},
        probe: sh``,
        apply: sh`echo begin ${name} >>${log}; sleep 0.1; echo end ${name} >>${log}`,
        always: true,
      });
      const names = Array.from({ length: 8 }, (_, index) => `run${index}`);
      const results = await Promise.all(
        names.map(async (name) => {
          const run = sessionOn(state, { runId: name });
          // Each process starts at a random moment.
          await new Promise((resolve) => setTimeout(resolve, Math.random() * 120));
          const result = await run.session.perform([{ stage: "s", drafts: [draftOf("it", step(name))] }]);
          await run.session.finish(result.outcome);
          return result;
        }),
      );
      const verdicts = results.map(({ outcome, problem }) => problem?.code ?? outcome);
      const done = verdicts.filter((verdict) => verdict === "done").length;
      expect(verdicts.filter((verdict) => verdict !== "done" && verdict !== "NODE_LOCKED")).to.deep.equal([]);
      expect(done).to.be.greaterThan(0);
      const lines = existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
      expect(lines.length).to.equal(2 * done);
      for (let index = 0; index < lines.length; index += 2)
        expect(lines[index + 1]).to.equal(lines[index]?.replace("begin", "end"));
      // After the next run, nothing but the runs' journals is left (S-5).
      await performOn(state, [draftOf("it", step("last"))], { runId: "last" });
      const left = readdirSync(join(state, "runs")).flatMap((name) => keptOfRun(state, name));
      expect(new Set(left)).to.deep.equal(new Set(["journal"]));
    });
});
