import { expect } from "chai";
import { differences } from "#kubernetes/difference.ts";
import type { KubeObject } from "#kubernetes/objects.ts";

const object = (fields: object, metadata: object = {}): KubeObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", ...metadata },
  ...fields,
});
const nothing = () => false;

describe("what an apply would change", () => {
  it("is nothing where only what the server counts differs", () => {
    const [live, next] = [
      { generation: 1, resourceVersion: "5" },
      { generation: 2, resourceVersion: "5" },
    ];
    expect(differences(object({}, live), object({}, next), nothing)).to.deep.equal([]);
  });

  it("is told field by field, list items by their names", () => {
    const spec = (image: string, more: object = {}) => ({
      spec: {
        containers: [
          { name: "a", image: "x" },
          { name: "web", image },
        ],
        ...more,
      },
    });
    expect(differences(object(spec("web:1")), object(spec("web:2", { replicas: 3 })), nothing)).to.deep.equal([
      'spec.containers[web].image: "web:1" → "web:2"',
      "spec.replicas: none → 3",
    ]);
    expect(differences(object({ args: ["a", "b"] }), object({ args: ["a"] }), nothing)).to.deep.equal([
      'args[1]: "b" → none',
    ]);
  });

  it("shows no value of a hidden field, nor what kubectl remembers of one", () => {
    const remembered = (text: string) => ({
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": text },
    });
    const [live, next] = [
      object({ data: { p: "b2xk" } }, remembered("old")),
      object({ data: { p: "bmV3" } }, remembered("new")),
    ];
    expect(differences(live, next, ([first]) => first === "data")).to.deep.equal([
      "data.p: *** → ***",
      "metadata.annotations.“kubectl.kubernetes.io/last-applied-configuration”: *** → ***",
    ]);
  });

  it("is also which fields are kcore's, and nobody else's ownership", () => {
    const owned = (manager: string, fieldsV1: object, time: string) => ({
      managedFields: [{ manager, operation: "Apply", fieldsV1, time }],
    });
    const live = object({}, owned("kcore", { "f:data": {} }, "1"));
    expect(differences(live, object({}, owned("kcore", { "f:data": {} }, "2")), nothing)).to.deep.equal([]);
    expect(differences(live, object({}, owned("kcore", {}, "1")), nothing)).to.deep.equal([
      "the fields that are kcore's",
    ]);
    expect(differences(object({}, owned("a", {}, "1")), object({}, owned("b", {}, "1")), nothing)).to.deep.equal([]);
  });

  it("is cut where there is much", () => {
    const data = (value: string) => ({
      data: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, value])),
    });
    const lines = differences(object(data("a")), object(data("b".repeat(500))), nothing);
    expect(lines).to.have.length(21);
    expect(lines.at(-1)).to.equal("and 10 more fields");
    expect(lines[0]?.length).to.be.lessThan(120);
  });
});
