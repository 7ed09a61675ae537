import { expect } from "chai";
import { Unknown } from "#engine/expressions/unknown.ts";
import { fromJson, toJson } from "#engine/orchestrate/values-json.ts";
import { secret, type Secret } from "#engine/step/secret.ts";

describe("values as JSON", () => {
  const copy = (value: unknown): unknown => fromJson(JSON.parse(JSON.stringify(toJson(value))));

  it("come back equal: maps, sets, undefined, and objects with the mark itself", () => {
    const value = { list: [1, "a", null, undefined], map: new Map([["a", { $: "map" }]]), set: new Set(["x"]), $: 3 };
    expect(copy(value)).to.deep.equal(value);
  });

  it("keep secrets secret, and unknown values unknown", () => {
    const kept = copy([secret("hunter2"), new Unknown("stage a", { stages: ["a"] }, { port: null })]) as unknown[];
    expect((kept[0] as Secret).reveal()).to.equal("hunter2");
    expect(String(kept[0])).to.equal("***");
    expect(kept[1]).to.be.instanceOf(Unknown).and.to.deep.include({ after: "stage a" });
    expect((kept[1] as Unknown).needs.stages).to.deep.equal(["a"]);
  });
});
