import { expect } from "chai";
import fc from "#support/properties.ts";
import { addNode, setHostKeys, setNodeFields } from "#engine/roster/edit.ts";
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

/** Lines of only one of the texts: “-” of the first, “+” of the second; the others must have the same order. */
function diff(before: string, after: string): string[] {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const changes: string[] = [];
  let at = 0;
  for (const line of now) {
    const found = old.indexOf(line, at);
    if (found === at) at++;
    else if (found !== -1 && found - at === 1 && changes.at(-1)?.startsWith("+")) {
      changes.push(`-${old[at]}`);
      at = found + 1;
    } else changes.push(`+${line}`);
  }
  return [...changes, ...old.slice(at).map((line) => `-${line}`)];
}

describe("addNode", () => {
  it("adds lines and touches no other", () => {
    const fields = { address: "192.0.2.13", port: 2222, roles: ["worker" as const], labels: { tier: "ssd" } };
    const text = addNode({ file: "r", text: ROSTER }, "n3", fields);
    expect(diff(ROSTER, text)).to.deep.equal(
      "+  n3:, +    address: 192.0.2.13, +    port: 2222, +    roles: [worker], +    labels: { tier: ssd }".split(", "),
    );
    expect(text.indexOf("  n3:")).to.be.below(text.indexOf("# n3 comes next week"));
  });

  const LINES = "nodes:\n  n1:\n    address: h\n";
  const deep = "nodes:\n  a:\n    address: g\n    vars:\n      motd: |\n        hello\n";
  const starts: Readonly<Record<string, [before: string, after: string]>> = {
    "an empty file": ["", LINES],
    "a file of comments": ["# mine\n", `# mine\n${LINES}`],
    "no nodes": ["defaults: { dc: X }\n", `defaults: { dc: X }\n${LINES}`],
    "nodes: and nothing": ["nodes:   # none\nx: {}\n", "nodes:   # none\n  n1:\n    address: h\nx: {}\n"],
    "nodes: {}": ["nodes: {}\ngroups: {}\n", `${LINES}groups: {}\n`],
    "nodes: {} and a comment": ["nodes: {} # none\n", "nodes: { n1: { address: h } } # none\n"],
    "nodes in braces": ["nodes: { a: { address: g } }\n", "nodes: { a: { address: g }, n1: { address: h } }\n"],
    "four spaces": ["nodes:\n    a:\n        b: g\n", "nodes:\n    a:\n        b: g\n    n1:\n      address: h\n"],
    "no line break at the end": ["nodes:\n  a: { address: g }", "nodes:\n  a: { address: g }\n  n1:\n    address: h"],
    CRLF: ["nodes:\r\n  a: { address: g }\r\n", "nodes:\r\n  a: { address: g }\r\n  n1:\r\n    address: h\r\n"],
    "a last value that is a block text": [deep, `${deep}  n1:\n    address: h\n`],
  };
  for (const [what, [before, after]] of Object.entries(starts))
    it(`works from ${what}`, () =>
      expect(addNode({ file: "r", text: before }, "n1", { address: "h" })).to.equal(after));

  it("refuses a name that is there", () =>
    expect(problemsIn(() => addNode({ file: "r", text: ROSTER }, "n2", { address: "h" }))).to.deep.equal([
      "r:10:3+2 “n2” is in the roster already [ROSTER_DUPLICATE]",
    ]));

  it("quotes what would read as something else", () => {
    const vars = { a: "yes", b: "1.10", c: "x: y", d: "#no", e: "it's" };
    expect(addNode({ file: "r", text: "" }, "0755", { address: "h", vars })).to.equal(
      'nodes:\n  "0755":\n    address: h\n    vars: { a: "yes", b: "1.10", c: "x: y", d: "#no", e: "it\'s" }\n',
    );
  });
});

describe("setHostKeys", () => {
  const set = (text: string, name: string, ...keys: string[]): string => setHostKeys({ file: "r", text }, name, keys);

  it("adds one line to a node of lines", () =>
    expect(diff(ROSTER, set(ROSTER, "n1", KEY))).to.deep.equal([`+    hostKeys: [${KEY}]`]));
  it("changes one line of a node in braces", () => {
    const text = set(ROSTER, "n2", KEY);
    expect(text.split("\n").filter((line) => !ROSTER.includes(line))).to.deep.equal([
      `  n2: { address: 192.0.2.12, roles: [ worker ], hostKeys: [${KEY}],  }   # rack 2`,
    ]);
    expect(text.split("\n")).to.have.length(ROSTER.split("\n").length);
  });
  it("replaces pinned keys in their line", () => {
    const before = set(ROSTER, "n1", KEY);
    expect(set(before, "n1", OTHER)).to.equal(before.replace(KEY, OTHER));
    expect(set(before, "n1", KEY)).to.equal(before);
  });
  it("replaces keys written line by line, keeping comments", () => {
    const before = `nodes:\n  a:\n    address: g\n    hostKeys:\n      - ${KEY} # first\n      - ${OTHER}\n    user: root\n`;
    expect(set(before, "a", OTHER, KEY)).to.equal(before.replace(KEY, "1").replace(OTHER, KEY).replace("1", OTHER));
    expect(set(before, "a", OTHER)).to.equal(
      `nodes:\n  a:\n    address: g\n    hostKeys:\n      - ${OTHER}\n    user: root\n`,
    );
  });
  it("refuses a node that is not in the file, and one that is an alias", () => {
    expect(problemsIn(() => set(ROSTER, "n9", KEY))[0]).to.include("r has no node “n9” [ROSTER_NODE_UNKNOWN]");
    expect(problemsIn(() => set("nodes:\n  a: &a { address: g }\n  b: *a\n", "b", KEY))[0]).to.include("[ROSTER_EDIT]");
  });
});

describe("editing any roster", () => {
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

  it("adds nodes and keys and keeps every other line byte for byte", () =>
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
        const pinned = setHostKeys({ file: "r", text: added }, chosen, [KEY]);
        const [before, after] = [added.split("\n"), pinned.split("\n")];
        const changed = after.filter((line) => !before.includes(line));
        expect(changed).to.have.length(1);
        expect(changed[0]).to.include(`hostKeys: [${KEY}]`);
        const kept =
          after.length === before.length
            ? pinned.replace(`, hostKeys: [${KEY}]`, "")
            : after.filter((line) => line !== changed[0]).join("\n");
        expect(kept).to.equal(added);
        const replaced = setHostKeys({ file: "r", text: pinned }, chosen, [OTHER]);
        expect(replaced).to.equal(pinned.replace(KEY, OTHER));
        const plain = plainOf(parseSource("r", replaced)) as { nodes: Record<string, { hostKeys?: string[] }> };
        expect(plain.nodes[chosen]?.hostKeys).to.deep.equal([OTHER]);
        expect(Object.keys(plain.nodes)).to.deep.equal([...names, "zz-new"]);
      }),
      { numRuns: 300 },
    ));
});

describe("setNodeFields", () => {
  const set = (text: string, fields: Parameters<typeof setNodeFields>[2]) =>
    setNodeFields({ file: "r", text }, "n1", fields);

  it("replaces values in block and flow style and adds what is missing, each in its place", () => {
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
    expect(set(text, { address: "192.0.2.99", roles: ["worker"], labels: {}, dc: "DC2", port: 2222 })).to.equal(`nodes:
  n1:
    address:  192.0.2.99   # eth0
    roles: [worker] # both
    labels: {}   # fast
    dc: DC2
    port: 2222
  n2: { address: 192.0.2.12 }
`);
    expect(set("nodes:\n  n1: { address: h, labels: { a: b } } # x\n", { labels: { c: "d" }, port: 1 })).to.equal(
      "nodes:\n  n1: { address: h, labels: { c: d }, port: 1 } # x\n",
    );
    expect(set("nodes:\n  n1:\n", { address: "h" })).to.equal("nodes:\n  n1: { address: h }\n");
  });

  it("changes nothing where a value comes from elsewhere, or the node is unknown", () => {
    const shared = "defaults: &d { a: b }\nnodes:\n  n1: { address: h, labels: *d }\n";
    expect(problemsIn(() => set(shared, { labels: {} }))[0]).to.contain("ROSTER_EDIT");
    expect(problemsIn(() => set("nodes: { n2: { address: h } }", { port: 1 }))[0]).to.contain("ROSTER_NODE_UNKNOWN");
  });
});
