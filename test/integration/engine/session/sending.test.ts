import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { blobOf, Blob } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { BreakableNode } from "#support/breakable-node.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";

describe("a large content on its way over SSH", () => {
  const node = new BreakableNode();

  function stepWith(size: number): Step {
    const bytes = randomBytes(size);
    const { sha256 } = blobOf(bytes);
    const blob = new Blob({ sha256, size, sensitive: false, read: () => Promise.resolve(bytes), label: "image" });
    const path = join(node.folder, "image");
    return {
      want: { size: String(size) },
      probe: sh`fact size "$(stat -c %s ${path} 2>/dev/null || echo 0)"`,
      apply: sh`cat ${blob} >${path}`,
    };
  }
  it("is told while a thin line takes it, longer than it may stand still, and arrives", async () => {
    node.line.setRate(1_200_000);
    const run = sessionOn(join(node.folder, "state"), { endpoint: node.endpoint(), transferStall: 1500 });
    const size = 6_000_000;
    const { outcome } = await run.session.perform([{ stage: "s", drafts: [draftOf("image", stepWith(size))] }]);
    await run.session.finish("done");
    expect([outcome, run.outcomes()]).to.deep.equal(["done", ["image changed"]]);
    const told = run.events.flatMap((event) => (event.type === "node.sending" ? [event] : []));
    expect(told.length).to.be.within(3, 12);
    expect(told.map(({ sent }) => sent)).to.deep.equal(told.map(({ sent }) => sent).toSorted((a, b) => a - b));
    // What is merely on its way does not count: a window is 2 MiB, and the line takes its time for it.
    expect(told[0]?.sent).to.be.within(300_000, 2_400_000);
    expect(told.at(-1)?.rate).to.be.within(500_000, 2_400_000);
    const sent = run.events.filter(({ type }) => type === "node.sent");
    expect(sent).to.have.length(1);
    expect(sent[0]).to.include({ name: "image", bytes: size });
    expect((sent[0] as { duration: number }).duration).to.be.greaterThan(3000);
  });
});
