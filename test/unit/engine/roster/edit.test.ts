import { expect } from "chai";
import fc from "#support/properties.ts";
import { keysOfPath, scalarsOf, valueAt } from "#engine/encrypted-values/places.ts";
import { addNode, replaceScalars, setNodeFields, setValue } from "#engine/roster/edit.ts";
import { removeEntry, removeNode } from "#engine/roster/remove.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { problemsIn } from "#support/problems.ts";

const KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ3hr7uXyJ3i8rX5l3mT0n5Jk2bGm1mX9v0h5mJ8m3xk";
const OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBBr7uXyJ3i8rX5l3mT0n5Jk2bGm1mX9v0h5mJ8m3xk";

const ROSTER = `# the first site

defaults: {  user: root,   dc: DC1 }   # aligned by hand
nodes:
  # the controller
  n1:
    address:  192.0.2.11   # eth0
    roles: [controller]

  n2: { address: 192.0.2.12, roles: [ worker ],  }   # rack 2
  # n3 comes next week
jumps:
    gw: {address: gw.example.org}
`;

describe("addNode", () => {
  const LINES = "nodes:\n  n1:\n    address: h\n";
  const deep = "nodes:\n  a:\n    address: g\n    vars:\n      motd: |\n        hello\n";
  const starts: Readonly<Record<string, [before: string, after: string]>> = {
    "an empty file": ["", LINES],
    "a file of comments": ["# mine\n", `# mine\n${LINES}`],
    "a file without nodes": ["defaults: { dc: X }\n", `defaults: { dc: X }\n${LINES}`],
    "an empty nodes:": ["nodes:   # none\nx: {}\n", "nodes:   # none\n  n1:\n    address: h\nx: {}\n"],
    "nodes: {}": ["nodes: {}\ngroups: {}\n", `${LINES}groups: {}\n`],
    "nodes: {} and a comment": ["nodes: {} # none\n", "nodes: { n1: { address: h } } # none\n"],
    "nodes in flow style": ["nodes: { a: { address: g } }\n", "nodes: { a: { address: g }, n1: { address: h } }\n"],
    "nodes indented by four spaces": [
      "nodes:\n    a:\n        b: g\n",
      "nodes:\n    a:\n        b: g\n    n1:\n      address: h\n",
    ],
    "a file without a final line break": [
      "nodes:\n  a: { address: g }",
      "nodes:\n  a: { address: g }\n  n1:\n    address: h",
    ],
    "a file with CRLF": [
      "nodes:\r\n  a: { address: g }\r\n",
      "nodes:\r\n  a: { address: g }\r\n  n1:\r\n    address: h\r\n",
    ],
    "nodes with a comment behind the last": [
      "nodes:\n  a: { address: g } # x\n  # later\n",
      "nodes:\n  a: { address: g } # x\n  n1:\n    address: h\n  # later\n",
    ],
    "nodes that end with a block scalar": [deep, `${deep}  n1:\n    address: h\n`],
  };
  for (const [what, [before, after]] of Object.entries(starts))
    it(`appends a node to ${what}`, () =>
      expect(addNode({ file: "r", text: before }, "n1", { address: "h" })).to.equal(after));

  it("refuses a name that the roster has", () =>
    expect(problemsIn(() => addNode({ file: "r", text: ROSTER }, "n2", { address: "h" }))).to.deep.equal([
      "r:10:3+2 “n2” is in the roster already [ROSTER_DUPLICATE]",
    ]));

  it("quotes texts that YAML would read as another type", () => {
    const vars = { a: "yes", b: "1.10", c: "x: y", d: "#no", e: "it's" };
    expect(addNode({ file: "r", text: "" }, "0755", { address: "h", vars })).to.equal(
      'nodes:\n  "0755":\n    address: h\n    vars: { a: "yes", b: "1.10", c: "x: y", d: "#no", e: "it\'s" }\n',
    );
  });
});

describe("setNodeFields", () => {
  const set = (text: string, name: string, ...hostKeys: string[]): string =>
    setNodeFields({ file: "r", text }, name, { hostKeys });
  const fields = (text: string, given: Parameters<typeof setNodeFields>[2]): string =>
    setNodeFields({ file: "r", text }, "n1", given);

  it("replaces host keys in block style, keeping comments", () => {
    const before = `nodes:\n  a:\n    address: g\n    hostKeys:\n      - ${KEY} # first\n      - ${OTHER}\n    user: root\n`;
    expect(set(before, "a", OTHER, KEY)).to.equal(before.replace(KEY, "1").replace(OTHER, KEY).replace("1", OTHER));
    expect(set(before, "a", OTHER)).to.equal(
      `nodes:\n  a:\n    address: g\n    hostKeys:\n      - ${OTHER}\n    user: root\n`,
    );
  });
  it("refuses a node that the file lacks, and an alias", () => {
    expect(problemsIn(() => set(ROSTER, "n9", KEY))[0]).to.include("r has no node “n9” [ROSTER_NODE_UNKNOWN]");
    expect(problemsIn(() => set("nodes:\n  a: &a { address: g }\n  b: *a\n", "b", KEY))[0]).to.include("[ROSTER_EDIT]");
  });

  it("replaces values and adds keys in block and flow style", () => {
    const text = `nodes:
  n1:
    address:  192.0.2.11   # eth0
    roles:
      - controller
      - infra # both
    labels: { tier: ssd }   # fast
    dc:
  n2: { address: 192.0.2.12 }
`;
    expect(fields(text, { address: "192.0.2.99", roles: ["worker"], labels: {}, dc: "DC2", port: 2222 })).to
      .equal(`nodes:
  n1:
    address:  192.0.2.99   # eth0
    roles:
      - worker # both
    labels: {}   # fast
    dc: DC2
    port: 2222
  n2: { address: 192.0.2.12 }
`);
    expect(fields("nodes:\n  n1: { address: h, labels: { a: b } } # x\n", { labels: { c: "d" }, port: 1 })).to.equal(
      "nodes:\n  n1: { address: h, labels: { c: d }, port: 1 } # x\n",
    );
    expect(fields("nodes:\n  n1:\n", { address: "h" })).to.equal("nodes:\n  n1:\n    address: h\n");
  });
});

describe("editing generated rosters", () => {
  const name = fc
    .stringMatching(/^[a-z][a-z0-9]{0,6}$/)
    .filter((text) => !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].includes(text));
  const comment = fc.constantFrom("", "   # a note", " # x: y");
  const fields = fc
    .array(
      fc.constantFrom(
        "user: ops",
        "port: 2222",
        "roles: [worker]",
        "dc: 'DC 2'",
        "labels: { a: b }",
        'vars: { x: "{ }", y: [1, 2] }',
      ),
      { maxLength: 3 },
    )
    .map((all) => [...new Set(all)]);
  const node = fc.record({
    name,
    fields,
    comment,
    isFlow: fc.boolean(),
    blank: fc.constantFrom("", "\n", "\n  # between\n\n"),
    address: fc.constantFrom("h", "192.0.2.1", '"h"'),
  });
  const rosters = fc
    .record({
      nodes: fc.uniqueArray(node, { minLength: 1, maxLength: 5, selector: (entry) => entry.name }),
      indent: fc.constantFrom("  ", "    "),
      before: fc.constantFrom("", "defaults: { dc: DC1 }\n", "# top\n\n"),
      after: fc.constantFrom("", "jumps: {}\n", "# end\n"),
    })
    .map(({ nodes, indent, before, after }) => {
      const texts = nodes.map((entry) =>
        entry.isFlow
          ? `${indent}${entry.name}: { ${["address: h", ...entry.fields].join(", ")} }${entry.comment}\n${entry.blank}`
          : `${indent}${entry.name}:${entry.comment}\n${[`address: ${entry.address}`, ...entry.fields].map((field) => `${indent}  ${field}\n`).join("")}${entry.blank}`,
      );
      return { text: `${before}nodes:\n${texts.join("")}${after}`, names: nodes.map((entry) => entry.name) };
    });

  it("adds nodes and host keys, and keeps every other line byte for byte", () =>
    fc.assert(
      fc.property(rosters, fc.nat(), ({ text, names }, index) => {
        const chosen = names[index % names.length] ?? "";
        const added = addNode({ file: "r", text }, "zz-new", { address: "192.0.2.99", roles: ["worker"] });
        const lines = added.split("\n");
        lines.splice(
          lines.findIndex((line) => line.trim() === "zz-new:"),
          3,
        );
        expect(lines.join("\n")).to.equal(text);
        const pinned = setNodeFields({ file: "r", text: added }, chosen, { hostKeys: [KEY] });
        const [before, after] = [added.split("\n"), pinned.split("\n")];
        const changed = after.filter((line) => !before.includes(line));
        expect(changed).to.have.length(1);
        expect(changed[0]).to.include(`hostKeys: [${KEY}]`);
        const kept =
          after.length === before.length
            ? pinned.replace(`, hostKeys: [${KEY}]`, "")
            : after.filter((line) => line !== changed[0]).join("\n");
        expect(kept).to.equal(added);
        const replaced = setNodeFields({ file: "r", text: pinned }, chosen, { hostKeys: [OTHER] });
        expect(replaced).to.equal(pinned.replace(KEY, OTHER));
        const plain = plainOf(parseSource("r", replaced)) as { nodes: Record<string, { hostKeys?: string[] }> };
        expect(plain.nodes[chosen]?.hostKeys).to.deep.equal([OTHER]);
        expect(Object.keys(plain.nodes)).to.deep.equal([...names, "zz-new"]);
      }),
      { numRuns: 300 },
    ));
});

const file = "roster/a.yaml";
const set = (text: string, path: string, name = file): string =>
  setValue({ file: name, text }, keysOfPath(parseSource(name, text), path), "V");

describe("setValue", () => {
  const cases: readonly (readonly [string, string, string, string])[] = [
    ["a plain value", "a: x # c\nb: 1\n", "a", "a: V # c\nb: 1\n"],
    ["a quoted value", "a: 'x: y'  # c\n", "a", "a: V  # c\n"],
    ["a block scalar", "a: |\n  one\n  two\nb: 1\n", "a", "a: V\nb: 1\n"],
    ["a block scalar at the end", "a: >-\n  one", "a", "a: V"],
    ["an item of a list", "l: [x, y]\n", "l.1", "l: [x, V]\n"],
    ["an empty value", "a:\nb: 1\n", "a", "a: V\nb: 1\n"],
    ["a key below null", "a: ~\n", "a.b", "a: { b: V }\n"],
    ["a key of an empty map", "a: {} # c\n", "a.b", "a: { b: V } # c\n"],
    ["a new key after others", "n:\n  a: 1 # c\n\nm: 2\n", "n.b", "n:\n  a: 1 # c\n  b: V\n\nm: 2\n"],
    ["new keys, each on its line", "n:\n  a: 1\n", "n.v.w", "n:\n  a: 1\n  v:\n    w: V\n"],
    ["new keys below an empty one", "n:\n  v:\nm: 1\n", "n.v.w", "n:\n  v:\n    w: V\nm: 1\n"],
    ["new keys in flow style", "n: { a: 1 }\n", "n.b.c", "n: { a: 1, b: { c: V } }\n"],
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
  for (const [what, text, path, edited] of cases)
    it(`sets ${what}, and changes no other character`, () => {
      expect(set(text, path)).to.equal(edited);
      expect(set(set(text, path), path)).to.equal(edited);
    });

  it("keeps a JSON file valid JSON", () => {
    const json = set(set('{ "a": 1 }\n', "b", "p.json"), "c.d", "p.json");
    expect(JSON.parse(json)).to.deep.equal({ a: 1, b: "V", c: { d: "V" } });
    expect(JSON.parse(set("{}", "b", "p.json"))).to.deep.equal({ b: "V" });
    expect(JSON.parse(set('{"a": "x"}', "a", "p.json"))).to.deep.equal({ a: "V" });
  });

  it("refuses aliases, maps, keys below a value and missing items", () => {
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
  it("takes the longest existing key, since keys may contain dots", () => {
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

  it("remove an entry of one line, and refuse any other", () => {
    expect(removeEntry({ file, text: "# c\na: x # d\nb: y\n" }, "a")).to.equal("# c\nb: y\n");
    expect(removeEntry({ file, text: "a: x" }, "a")).to.equal("");
    for (const text of ["{ a: x, b: y }\n", "a:\n  x: 1\nb: y\n", "b: y\n"])
      expect(problemsIn(() => removeEntry({ file, text }, "a"))[0]).to.contain("ROSTER_EDIT");
  });
});

describe("removeNode", () => {
  const without = (text: string, name = "b", at = file): string | undefined => removeNode({ file: at, text }, name);

  it("takes out exactly the node's own lines", () => {
    const text =
      "nodes:\n  a: { address: x } # first\n  # about b\n  b:\n    address: y # its\n    roles:\n      - worker\n\n  c: { address: z }\n";
    expect(without(text)).to.equal("nodes:\n  a: { address: x } # first\n  # about b\n\n  c: { address: z }\n");
    expect(without(text, "c")).to.equal(text.replace("  c: { address: z }\n", ""));
    expect(without(text, "d")).to.equal(undefined);
    expect(without("defaults: { user: ops }\n")).to.equal(undefined);
  });

  it("leaves an empty map behind the last node, and the commas of a map in one line", () => {
    expect(without("nodes:\n  b:\n    address: y\ngroups: {}\n")).to.equal("nodes: {}\ngroups: {}\n");
    for (const [name, left] of [
      ["a", "{ b: { address: y }, c: {} }"],
      ["b", "{ a: { address: x }, c: {} }"],
      ["c", "{ a: { address: x }, b: { address: y } }"],
    ] as const)
      expect(without("nodes: { a: { address: x }, b: { address: y }, c: {} }\n", name)).to.equal(`nodes: ${left}\n`);
    expect(without("nodes: { b: {} }\n")).to.match(/^nodes: \{ +\}\n$/);
  });

  it("refuses a node whose anchor others use", () => {
    expect(() => without("nodes:\n  b: &b { address: y }\n  c: *b\n")).to.throw();
  });
});
