import { expect } from "chai";
import { KcoreError } from "#errors/problem.ts";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";

describe("plain YAML", () => {
  it("is read as YAML 1.2, and printed so that it is read back unchanged", () => {
    const value = { a: [1, "no", "0644", true, null], b: { c: "x: y" } };
    expect([parsePlainYaml(printYaml(value)), parsePlainYaml("a: no")]).to.deep.equal([value, { a: "no" }]);
  });
  it("is printed without control characters (S-4)", () => {
    const value = { "k\u009b": ["\u001b[2J\u009b2J\u007f", "right \u202eleft\u2028", "plain\ntext\n"], b: "\\u009b" };
    const text = printYaml(value);
    // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
    expect(text).not.to.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
    expect(parsePlainYaml(text)).to.deep.equal(value);
  });
  it("is read as strictly as project files (S-18)", () => {
    for (const text of ["a: !x y", "a: 1\na: 2", "a: [1", '{ "__proto__": 1 }', "[".repeat(20_000)])
      expect(() => parsePlainYaml(text), text.slice(0, 20)).to.throw(KcoreError);
  });
});
