import { expect } from "chai";
import { UpdateNodes } from "#support/update-nodes.ts";

describe("kcore orchestrate update", function () {
  this.timeout(120_000);
  let nodes: UpdateNodes;
  afterEach(() => nodes.stop());

  it("says what it would do, does it, finds nothing to do, and takes it back", async () => {
    nodes = await UpdateNodes.start({ n1: "roles: [controller]", n2: "", n3: "" });
    const spec = "  selector: { allNodes: true }\n";
    const plan = await nodes.update(spec, "--dry-run");
    expect(plan.code, plan.stdout + plan.stderr).to.equal(0);
    console.log(plan.stdout);
    expect(nodes.report("n1")).to.equal(undefined);
    const done = await nodes.update(spec);
    console.log(done.stdout, done.stderr);
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(["n1", "n2", "n3"].map((name) => nodes.runtime(name))).to.deep.equal(["0.2.0", "0.2.0", "0.2.0"]);
  });
});
