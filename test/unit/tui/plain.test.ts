import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { createPlainView } from "#tui/plain.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { writtenText } from "#support/written-text.ts";

function draw(name: string, since = 0, run?: RunFold): string[] {
  const { out, take } = writtenText();
  const view = createPlainView({ out, color: false, since, ...(run && { run }) });
  for (const event of recordedRun(name)) {
    view.draw(event);
    run?.add(event);
  }
  return take().split("\n").slice(0, -1);
}

describe("the plain view", () => {
  it("has the node's name in each line of a step, with changes and diff", () => {
    const lines = draw("done");
    expect(lines).to.include("✔ n1  data disk  changed").and.to.include("› n1    table: none → gpt");
    expect(lines).to.include("✔ n1  issue file  changed  2.4 s").and.to.include("› n1    +kcore");
    expect(lines).to.include("✔ n2  data disk  in order").and.to.include("↓ n2  issue file  skipped (when is false)");
    expect(lines.slice(1).every((line) => /^\S (n1|n2)  /.test(line))).to.equal(true);
  });

  it("has the same lines if its caller reduces the events", () => {
    const adds: number[] = [];
    const run = new (class extends RunFold {
      override add(event: RunEvent): void {
        adds.push(event.seq);
        super.add(event);
      }
    })();
    expect(draw("failed", 0, run)).to.deep.equal(draw("failed"));
    expect(adds).to.deep.equal(recordedRun("failed").map(({ seq }) => seq));
  });

  it("begins with run, revision and nodes", () =>
    expect(draw("done")[0]).to.equal("→ deploy_node — run 20261121-061500-a1b2 at 3f2a91c0ffee — 2 nodes: n1, n2"));

  it("S-4: has no escape codes in a pipe", () => {
    const lines = draw("failed");
    expect(lines.join("\n")).to.not.contain("\u001b");
    expect(lines).to.include("› n1  ! E: giving up");
    expect(lines).to.include("✖ n1  install tool  failed: the command ended with exit code 100 [STEP_FAILED]  5.3 s");
  });

  it("has lost connections and unreachable nodes", () => {
    const lines = draw("failed");
    expect(lines).to.include("⚠ n1  connection lost: no sign of life for 15 s, trying again in 2.0 s");
    expect(lines).to.include("✖ n2  unreachable: n2 (192.0.2.12:22) does not answer within 10 s [HOST_UNREACHABLE]");
  });

  it("has a dry run's changes", () => {
    const lines = draw("dry-run");
    expect(lines[0]).to.contain("(dry run: nothing is changed)");
    expect(lines).to.include("✔ n1  issue file  would change").and.to.include("› n1    mode: 0600 → 0644");
    expect(lines).to.include("› n1    owner: (absent) → root");
    expect(lines).to.include("↓ n1  filesystem  unknown (after disks/table)");
  });

  it("begins after the given event", () => {
    const lines = draw("resumed", 8);
    expect(lines[0]).to.match(/^→ deploy_node, resumed — run/);
    expect(lines).to.include("✔ n1  long  changed  9.0 s");
  });
});
