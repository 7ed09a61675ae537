import { expect } from "chai";
import { nodeAt, plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { cpuClock } from "#support/cpu.ts";
import { casesOf } from "#support/cases/read.ts";
import { problemsIn } from "#support/problems.ts";

const parse = (text: string | Uint8Array): unknown => JSON.parse(JSON.stringify(plainOf(parseSource("f.yaml", text))));
const refuse = (text: string | Uint8Array): string[] => problemsIn(() => parseSource("f.yaml", text));

describe("parseSource", () => {
  it("reads YAML 1.2: yes and no are texts", () =>
    expect(parse("a: yes\nb: off\nc: true\nd: 5\ne: ~\nf: 1.5\n")).to.deep.equal({
      a: "yes",
      b: "off",
      c: true,
      d: 5,
      e: null,
      f: 1.5,
    }));

  it("records the place of each value and key", () => {
    const tree = parseSource("f.yaml", "a:\n  - x\n  - bcd: 12 # note\n");
    expect(nodeAt(tree, ["a", 1, "bcd"])?.at).to.deep.equal({ file: "f.yaml", line: 3, column: 10, length: 2 });
    const map = nodeAt(tree, ["a", 1]);
    expect(map?.kind === "map" && map.entries.get("bcd")?.keyAt).to.deep.equal({
      file: "f.yaml",
      line: 3,
      column: 5,
      length: 3,
    });
  });

  it("reads an empty file as null", () => {
    expect([parse(""), parse("# only a comment\n")]).to.deep.equal([null, null]);
  });

  it("reads numbers and booleans as keys by their text", () =>
    expect(parse("9090: a\ntrue: b\n")).to.deep.equal({ 9090: "a", true: "b" }));

  it("reads a byte order mark and CRLF", () =>
    expect(parse(Buffer.from("\uFEFFa: 1\r\nb: 2\r\n"))).to.deep.equal({ a: 1, b: 2 }));

  const refused =
    casesOf<Record<string, { readonly text: string; readonly problems: string | readonly string[] }>>(
      "yaml-refused.yaml",
    );
  for (const [what, { text, problems }] of Object.entries(refused))
    it(`refuses ${what}`, () => expect(refuse(text)).to.deep.equal([problems].flat().map((line) => `f.yaml:${line}`)));

  it("refuses bytes that are not UTF-8 (S-18)", () => {
    const [problem] = refuse(Buffer.concat([Buffer.from("a: 1\nb: caf"), Buffer.from([0xe9])]));
    expect(problem).to.match(/^f\.yaml:2:7\+1 f\.yaml is not UTF-8 text \[YAML_ENCODING\]/);
  });
});

describe("hostile YAML (S-18)", () => {
  const nine = (name: string, of: string): string => `${name}: &${name} [${Array(9).fill(of).join(", ")}]\n`;
  const laughs = `a: &a [x]\n${Array.from("bcdefghi")
    .map((name, index) => nine(name, `*${"abcdefgh"[index]}`))
    .join("")}`;
  const bombs: Readonly<Record<string, [string, string]>> = {
    "a billion laughs": [laughs, "YAML_UNSUPPORTED"],
    "many aliases of one anchor": [`a: &a [x]\nb: [${Array(60).fill("*a").join(", ")}]\n`, "YAML_UNSUPPORTED"],
    "20,000 open brackets": ["[".repeat(20_000), "YAML_TOO_DEEP"],
    "2,000 nested maps": [
      Array.from({ length: 1000 }, (_, level) => `${" ".repeat(level)}a:\n`).join(""),
      "YAML_TOO_DEEP",
    ],
    "more than 1 MiB": ["#".repeat(1_048_577), "FILE_TOO_LARGE"],
  };
  for (const [name, [text, code]] of Object.entries(bombs))
    it(`refuses ${name} in less than 500 ms of processor time (S-18)`, () => {
      const used = cpuClock();
      expect(refuse(text)[0]).to.include(`[${code}]`);
      expect(used(), "ms of processor").to.be.below(500);
    });

  it("allows 50 aliases of an anchor", () =>
    expect(() => parse(`a: &a [x]\nb: [${Array(50).fill("*a").join(", ")}]\n`)).not.to.throw());
});
