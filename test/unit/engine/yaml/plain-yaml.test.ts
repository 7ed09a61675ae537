import { expect } from "chai";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";

describe("plain YAML", () => {
  it("is read as YAML 1.2 and printed so that it reads the same", () => {
    const value = { a: [1, "no", "0644", true, null], b: { c: "x: y" } };
    expect([parsePlainYaml(printYaml(value)), parsePlainYaml("a: no")]).to.deep.equal([value, { a: "no" }]);
  });
  it("S-4: is printed without a character that could drive a terminal", () => {
    const value = { "k\u009b": ["\u001b[2J\u009b2J\u007f", "right \u202eleft\u2028", "plain\ntext\n"], b: "\\u009b" };
    const text = printYaml(value);
    // oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
    expect(text).not.to.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
    expect(parsePlainYaml(text)).to.deep.equal(value);
  });
  it("S-18: refuses unknown tags, duplicate keys, syntax errors and other versions' directives", () => {
    for (const text of ["a: !!js/function x", "a: !x y", "a: 1\na: 2", "a: [1", "a: b: c"]) {
      expect(() => parsePlainYaml(text, "f.yaml"), text).to.throw("f.yaml");
    }
  });
  it("S-18: refuses bombs, deep nesting and large files quickly", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 9; level++)
      lines.push(
        `a${level}: &a${level} [${Array(9)
          .fill(`*a${level - 1}`)
          .join(", ")}]`,
      );
    expect(() => parsePlainYaml(lines.join("\n"))).to.throw("aliases");
    expect(() => parsePlainYaml("[".repeat(20_000))).to.throw("64 levels");
    expect(() => parsePlainYaml("- ".repeat(20_000))).to.throw("64 levels");
    expect(() => parsePlainYaml("x".repeat(1024 * 1024 + 1))).to.throw("1 MiB");
  });
  it("S-18: keeps a key called __proto__ from reaching any prototype", () => {
    const value = parsePlainYaml('{ "__proto__": { "polluted": true } }') as object;
    expect(Object.getPrototypeOf(value) === Object.prototype).to.equal(true);
    expect(({} as { polluted?: boolean }).polluted).to.equal(undefined);
  });
});
