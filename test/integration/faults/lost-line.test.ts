import { expect } from "chai";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { BreakableNode } from "#support/breakable-node.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { partOf } from "#support/slice.ts";

describe("a line that breaks at any byte", () => {
  const node = new BreakableNode();

  const big = blobOf(Buffer.alloc(2_500_000, "all work and no play\n"));
  const put = (): Step => {
    const path = join(node.folder, "big");
    return {
      want: { content: big.sha256 },
      probe: sh`[ -f ${path} ] && fact content "$(sha256sum <${path} | cut -d" " -f1)" || fact content absent`,
      apply: sh`put_file ${big} ${path} 0644 root root`,
    };
  };
  const count = (name: string): Step => ({
    want: {},
    probe: sh``,
    apply: sh`echo x >>${join(node.folder, name)}; echo "output of ${name}"`,
    always: true,
  });
  const lines = (name: string): number =>
    existsSync(join(node.folder, name)) ? readFileSync(join(node.folder, name), "utf8").split("\n").length - 1 : 0;

  /** One run of two segments and a large blob, over a line that breaks once. */
  async function runOver(cut: () => void): Promise<void> {
    cut();
    const state = join(node.folder, "state");
    const run = sessionOn(state, { endpoint: node.endpoint(), runId: "cut" });
    const result = await run.session.perform([
      {
        stage: "s",
        drafts: [
          draftOf("one", count("one"), { register: "one" }),
          draftOf("put", put()),
          draftOf("two", () => count("two"), { needs: { facts: false, steps: ["one"] } }),
        ],
      },
    ]);
    await run.session.finish(result.outcome);
    expect(result.problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["one changed", "put changed", "two changed"]);
    expect([lines("one"), lines("two")]).to.deep.equal([1, 1]);
    expect(readFileSync(join(node.folder, "big")).length).to.equal(big.size);
    const said = run.events.flatMap((event) => (event.type === "step.output" ? [event.text] : [])).join("");
    expect(said).to.equal("output of one\noutput of two\n");
    expect(readdirSync(join(state, "runs", "cut"))).to.deep.equal(["journal"]);
    expect(readFileSync(join(state, "runs", "cut", "journal"), "utf8")).to.match(/ bye done\n$/);
    rmSync(node.folder, { recursive: true, force: true });
  }

  for (const bytes of partOf([6_000, 9_000, 14_000, 36_000, 60_000, 1_300_000, 2_500_000, 2_560_000], 2))
    it(`F-1 loses nothing and repeats nothing when it breaks after ${bytes} bytes sent`, () =>
      runOver(() => node.line.cutNext("up", bytes)));
  for (const bytes of partOf([3_100, 3_600, 4_000, 4_500, 5_200, 6_000], 2))
    it(`F-1 loses nothing and repeats nothing when it breaks after ${bytes} bytes received`, () =>
      runOver(() => node.line.cutNext("down", bytes)));
});
