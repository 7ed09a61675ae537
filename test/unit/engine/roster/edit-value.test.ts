import { expect } from "chai";
import { keysOfPath, removeEntry, replaceScalars, setValue, valueAt } from "#engine/roster/edit-value.ts";
import { scalarsOf } from "#engine/encrypted-values/places.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { problemsIn } from "#support/problems.ts";

const file = "roster/a.yaml";
const set = (text: string, path: string, name = file): string =>
  setValue({ file: name, text }, keysOfPath(parseSource(name, text), path), "V");

describe("setValue", () => {
  const cases: readonly (readonly [string, string, string, string])[] = [
    ["a plain value", "a: x # c\nb: 1\n", "a", "a: V # c\nb: 1\n"],
    ["a quoted one", "a: 'x: y'  # c\n", "a", "a: V  # c\n"],
    ["a block", "a: |\n  one\n  two\nb: 1\n", "a", "a: V\nb: 1\n"],
    ["a block at the end", "a: >-\n  one", "a", "a: V"],
    ["an item of a list", "l: [x, y]\n", "l.1", "l: [x, V]\n"],
    ["nothing", "a:\nb: 1\n", "a", "a: V\nb: 1\n"],
    ["null", "a: ~\n", "a.b", "a: { b: V }\n"],
    ["an empty map", "a: {} # c\n", "a.b", "a: { b: V } # c\n"],
    ["a new key beside others", "n:\n  a: 1 # c\n\nm: 2\n", "n.b", "n:\n  a: 1 # c\n  b: V\n\nm: 2\n"],
    ["new keys, each on its line", "n:\n  a: 1\n", "n.v.w", "n:\n  a: 1\n  v:\n    w: V\n"],
    ["new keys below an empty one", "n:\n  v:\nm: 1\n", "n.v.w", "n:\n  v:\n    w: V\nm: 1\n"],
    ["a new key in braces", "n: { a: 1 }\n", "n.b.c", "n: { a: 1, b: { c: V } }\n"],
    ["a new key at the top", "a: 1\n", "b.c", "a: 1\nb:\n  c: V\n"],
    ["a new file", "", "a.b", "a:\n  b: V\n"],
    ["a file of comments", "# c", "a", "# c\na: V\n"],
    ["Windows line breaks", "n:\r\n  a: 1\r\nm: 2\r\n", "n.b", "n:\r\n  a: 1\r\n  b: V\r\nm: 2\r\n"],
    [
      "an argument of a step, by the step's id",
      "steps:\n  - id: a\n    x.y: { z: 1 }\n  - id: b\n    x.y:\n      z: 2\n",
      "steps.b.x.y.w",
      "steps:\n  - id: a\n    x.y: { z: 1 }\n  - id: b\n    x.y:\n      z: 2\n      w: V\n",
    ],
  ];
  for (const [what, text, path, wanted] of cases)
    it(`sets ${what} and leaves every other character`, () => {
      expect(set(text, path)).to.equal(wanted);
      expect(set(set(text, path), path)).to.equal(wanted);
    });

  it("keeps JSON JSON", () => {
    const json = set(set('{ "a": 1 }\n', "b", "p.json"), "c.d", "p.json");
    expect(JSON.parse(json)).to.deep.equal({ a: 1, b: "V", c: { d: "V" } });
    expect(JSON.parse(set("{}", "b", "p.json"))).to.deep.equal({ b: "V" });
    expect(JSON.parse(set('{"a": "x"}', "a", "p.json"))).to.deep.equal({ a: "V" });
  });

  it("refuses what it cannot edit by splicing", () => {
    for (const [text, path] of [
      ["a: &x 1\nb: *x\n", "b"],
      ["a: { b: 1 }\n", "a"],
      ["a: 1\n", "a.b"],
      ["a: [1]\n", "a.7"],
    ] as const) {
      const [problem = ""] = problemsIn(() => set(text, path));
      expect(problem, text).to.match(/\[ROSTER_EDIT\] \| edit the file by hand$/);
    }
  });
});

describe("keysOfPath", () => {
  it("takes the longest key that is there, since keys may hold dots", () => {
    const root = parseSource(file, "steps:\n  - id: a.b\n    file.managed: { path: /x }\nx: { y: 1 }\nx.y: 2\n");
    expect(keysOfPath(root, "steps.a.b.file.managed.path")).to.deep.equal(["steps", "a.b", "file.managed", "path"]);
    expect(keysOfPath(root, "x.y")).to.deep.equal(["x.y"]);
    expect(keysOfPath(root, "new.deep.key")).to.deep.equal(["new", "deep", "key"]);
    expect(valueAt(root, ["steps", "a.b", "file.managed", "path"])).to.include({ value: "/x" });
  });
});

describe("replaceScalars and removeEntry", () => {
  it("replace several values at once", () => {
    const text = "a: one # c\nb:\n  - one\n  - |\n    one\n";
    const root = parseSource(file, text);
    const ones = scalarsOf(root, (value) => String(value).trim() === "one").map(({ node }, index) => {
      return [node, { text: `V${index}` }] as const;
    });
    expect(replaceScalars({ file, text }, root, new Map(ones))).to.equal("a: V0 # c\nb:\n  - V1\n  - V2\n");
  });

  it("remove one line, and refuse what has more", () => {
    expect(removeEntry({ file, text: "# c\na: x # d\nb: y\n" }, "a")).to.equal("# c\nb: y\n");
    expect(removeEntry({ file, text: "a: x" }, "a")).to.equal("");
    for (const text of ["{ a: x, b: y }\n", "a:\n  x: 1\nb: y\n", "b: y\n"])
      expect(problemsIn(() => removeEntry({ file, text }, "a"))[0]).to.contain("ROSTER_EDIT");
  });
});
