import { expect } from "chai";
import { ApiRefusal, type ApiClient } from "#api/client.ts";
import { nodeTitle, findNodes } from "#cli/node/find-node.ts";
import { readLabelChanges, readTaintChanges } from "#cli/node/label-changes.ts";
import { filterNodes } from "#cli/get/listings.ts";
import { problemsIn } from "#support/problems.ts";
import { rejectionOf } from "#support/rejection.ts";

const nodes = [
  { id: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11", hostname: "n1", dc: "DC1", labels: { tier: "ssd", gpu: "" } },
  { id: "6f1c2a52-0000-4f0e-9a50-0d8a3b0f4e12", hostname: "n2", dc: "DC2", labels: { tier: "hdd" } },
  { id: "7a000000-0000-4f0e-9a50-0d8a3b0f4e13", hostname: "twin", dc: "DC2", labels: {} },
  { id: "8b000000-0000-4f0e-9a50-0d8a3b0f4e14", hostname: "twin", dc: "DC2", labels: {} },
];

describe("findNodes", () => {
  /** A controller that knows these nodes. */
  const client = {
    call: (_method: string, _body: object, { id: word }: { readonly id: string }) => {
      const found = nodes.find(({ id, hostname }) => id === word || hostname === word);
      if (found) return Promise.resolve(found);
      const code = word === "" ? "API_DENIED" : "NODE_UNKNOWN";
      const refusal = { code, message: `no “${word}”`, hint: "look", detail: "these" };
      return Promise.reject(new ApiRefusal({ host: "c1", port: 9090 }, 404, refusal));
    },
  } as unknown as ApiClient;

  it("gives each node once", async () =>
    expect(await findNodes(client, ["n1", "n2", nodes[0]?.id ?? ""])).to.deep.equal(nodes.slice(0, 2)));

  it("reports every unknown name with the controller's problem", async () =>
    expect((await rejectionOf(findNodes(client, ["n1", "n9", "nope"]))).problems).to.deep.equal([
      { code: "NODE_UNKNOWN", message: "no “n9”", hint: "look", detail: "these" },
      { code: "NODE_UNKNOWN", message: "no “nope”", hint: "look", detail: "these" },
    ]));

  it("rethrows other refusals", async () =>
    expect(await rejectionOf(findNodes(client, [""]))).to.include({ reason: "API_DENIED" }));

  it("S-4: a title has no control characters of a node's name", () =>
    expect(nodeTitle({ hostname: "\u001B[2Jn1\n", id: "7a" })).to.equal("n1  (7a)"));
});

describe("selectNodes", () => {
  const names = (selector: readonly string[], dc: readonly string[] = []) =>
    filterNodes(nodes, { selector, dc }).map(({ hostname }) => hostname);

  it("requires all label terms, and one of the datacenters", () => {
    expect([names(["tier=ssd"]), names(["tier!=ssd"])]).to.deep.equal([["n1"], ["n2", "twin", "twin"]]);
    expect([names(["tier,!gpu"]), names(["gpu="])]).to.deep.equal([["n2"], ["n1"]]);
    expect([names(["tier==hdd", "!gpu"], ["DC2", "DC9"]), names([], ["DC1"])]).to.deep.equal([["n2"], ["n1"]]);
  });

  it("refuses malformed selectors", () => {
    for (const text of ["", "a b", "!a=b", "=x", "a=b=c"])
      expect(problemsIn(() => names([text]))[0], text).to.contain("is no label selector [USAGE]");
  });
});

describe("changes of labels and taints", () => {
  it("set with key=value and remove with key-", () => {
    expect(readLabelChanges(["tier=ssd", "empty=", "a=b=c", "old-"])).to.deep.equal({
      set: { tier: "ssd", empty: "", a: "b=c" },
      remove: ["old"],
    });
    expect(readTaintChanges(["dedicated=gpu:NoSchedule", "maintenance:NoExecute", "old-"])).to.deep.equal({
      set: [
        { key: "dedicated", value: "gpu", effect: "NoSchedule" },
        { key: "maintenance", value: "", effect: "NoExecute" },
      ],
      remove: ["old"],
    });
  });

  it("are refused if malformed or contradictory, all at once, with a suggestion", () => {
    expect(problemsIn(() => readLabelChanges(["tier", "-", "ok=1"]))).to.have.length(2);
    expect(problemsIn(() => readLabelChanges(["a=1", "a-"]))[0]).to.contain("changes a twice");
    expect(problemsIn(() => readLabelChanges(["a=1", "a=2"]))[0]).to.contain("changes a twice");
    expect(problemsIn(() => readTaintChanges(["a=b:NoSchedul"]))[0]).to.contain("did you mean “NoSchedule”?");
    expect(problemsIn(() => readTaintChanges(["a=b"]))[0]).to.contain("names no effect");
  });
});
