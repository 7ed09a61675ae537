import { expect } from "chai";
import { changedNode, nodeChange } from "#kubernetes/node-change.ts";
import type { KubeNode } from "#kubernetes/objects.ts";

const dedicated = { key: "dedicated", value: "storage", effect: "NoSchedule" };
const foreign = { key: "node.kubernetes.io/unreachable", effect: "NoExecute", timeAdded: "2026-11-25T00:00:00Z" };
const node: KubeNode = {
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n1", resourceVersion: "7", labels: { zone: "a", old: "x" } },
  spec: { taints: [dedicated, foreign] },
};

describe("the change of a node", () => {
  it("is none if the node is as wanted", () => {
    const wanted = {
      labels: { zone: "a", gone: null },
      taints: { "dedicated:NoSchedule": "storage" },
      cordoned: false,
    };
    expect([nodeChange(node, wanted), nodeChange(node, {})]).to.deep.equal([undefined, undefined]);
  });

  it("sets missing and differing labels and removes others, without unchanged ones", () =>
    expect(nodeChange(node, { labels: { zone: "b", rack: "r1", old: null } })).to.deep.equal({
      lines: ['label zone: "a" → "b"', 'label rack: none → "r1"', 'label old: "x" → none'],
      patch: { metadata: { labels: { zone: "b", rack: "r1", old: null } } },
    }));

  it("sets a label with a name of Object.prototype", () =>
    expect(nodeChange(node, { labels: { constructor: "x" } })?.lines).to.deep.equal(['label constructor: none → "x"']));

  it("keeps other taints, and sends the resourceVersion that was read", () =>
    expect(nodeChange(node, { taints: { "dedicated:NoSchedule": "gpu" } })?.patch).to.deep.equal({
      metadata: { resourceVersion: "7" },
      spec: { taints: [foreign, { key: "dedicated", value: "gpu", effect: "NoSchedule" }] },
    }));

  it("distinguishes taints of one key by effect", () => {
    const change = nodeChange(node, { taints: { "dedicated:NoExecute": "" } });
    expect(change?.patch["spec"]).to.deep.equal({
      taints: [dedicated, foreign, { key: "dedicated", effect: "NoExecute" }],
    });
    expect(nodeChange(node, { taints: { "dedicated:NoExecute": null } })).to.equal(undefined);
  });

  it("removes every effect of a key without an effect", () => {
    const both = { ...node, spec: { taints: [dedicated, { key: "dedicated", effect: "NoExecute" }, foreign] } };
    expect(nodeChange(both, { taints: { dedicated: null } })?.patch["spec"]).to.deep.equal({ taints: [foreign] });
  });

  it("cordons and uncordons, and is none when done", () => {
    const change = nodeChange(node, { cordoned: true });
    expect(change).to.deep.equal({ lines: ["cordoned"], patch: { metadata: {}, spec: { unschedulable: true } } });
    const cordoned = changedNode(node, change ?? { lines: [], patch: {} });
    expect(nodeChange(cordoned, { cordoned: true })).to.equal(undefined);
    const back = nodeChange(cordoned, { cordoned: false });
    expect(back?.patch["spec"]).to.deep.equal({ unschedulable: null });
    expect(changedNode(cordoned, back ?? { lines: [], patch: {} }).spec).to.deep.equal(node.spec);
  });
});
