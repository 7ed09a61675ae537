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

describe("the changes of an apply", () => {
  it("are none if only generation or resourceVersion differ", () => {
    const [live, next] = [
      { generation: 1, resourceVersion: "5" },
      { generation: 2, resourceVersion: "5" },
    ];
    expect(differences(object({}, live), object({}, next), nothing)).to.deep.equal([]);
  });

  it("are shown field by field, with list items by name", () => {
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

  it("show no value of a hidden field, nor kubectl's last-applied-configuration", () => {
    const lastApplied = (text: string) => ({
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": text },
    });
    const [live, next] = [
      object({ data: { p: "b2xk" } }, lastApplied("old")),
      object({ data: { p: "bmV3" } }, lastApplied("new")),
    ];
    expect(differences(live, next, ([first]) => first === "data")).to.deep.equal([
      "data.p: *** → ***",
      "metadata.annotations.“kubectl.kubernetes.io/last-applied-configuration”: *** → ***",
    ]);
  });

  it("include ownership of fields by kcore, but not by other managers", () => {
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

  it("are limited in number and length", () => {
    const data = (value: string) => ({
      data: Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, value])),
    });
    const lines = differences(object(data("a")), object(data("b".repeat(500))), nothing);
    expect(lines).to.have.length(21);
    expect(lines.at(-1)).to.equal("and 10 more fields");
    expect(lines[0]?.length).to.be.lessThan(120);
  });
});
