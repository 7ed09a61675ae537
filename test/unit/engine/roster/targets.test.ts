import { expect } from "chai";
import fc from "#support/properties.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { matchesGlob } from "#engine/roster/patterns.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { problemsIn } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

const roster: Roster = inProject(
  {
    "roster/a.yaml": `groups: { storage: {}, edge: {} }
nodes:
  n1: { address: h1, roles: [controller], dc: DC1, labels: { tier: ssd }, groups: [storage] }
  n2: { address: h2, roles: [worker], dc: DC1, labels: { tier: hdd } }
  n3: { address: h3, roles: [worker], dc: DC2, groups: [storage, edge] }
  web-1: { address: h4, dc: DC2 }
`,
  },
  (project) => loadRoster(project),
);
const match = (expression: string | readonly string[]): string =>
  matchTargets(expression, roster)
    .map(({ name }) => name)
    .join(" ");

describe("matchTargets", () => {
  const cases: Readonly<Record<string, string>> = {
    n1: "n1",
    "n3,n1": "n1 n3",
    "n1 or n2": "n1 n2",
    "*": "n1 n2 n3 web-1",
    "n*": "n1 n2 n3",
    "n[1-2]": "n1 n2",
    "n[!1]": "n2 n3",
    "n?": "n1 n2 n3",
    "role:worker": "n2 n3",
    "role:*": "n1 n2 n3",
    "dc:DC2": "n3 web-1",
    "group:storage": "n1 n3",
    "label:tier": "n1 n2",
    "label:tier=ssd": "n1",
    "label:tier=s*": "n1",
    "/^n\\d$/": "n1 n2 n3",
    "/(^web|1$)/": "n1 web-1",
    "not n1": "n2 n3 web-1",
    "not not n1": "n1",
    "role:worker and dc:DC1": "n2",
    "n1 or role:worker and dc:DC2": "n1 n3",
    "(n1 or role:worker) and dc:DC1": "n1 n2",
    "role:worker and not n2": "n3",
    "not (n1, n2)": "n3 web-1",
    "n1 , n2": "n1 n2",
  };
  for (const [expression, names] of Object.entries(cases))
    it(`matches ${expression}`, () => expect(match(expression)).to.equal(names));

  it("takes a list as alternatives", () => expect(match(["n1", "role:worker and dc:DC2"])).to.equal("n1 n3"));

  it("refuses a name that is not in the roster, also where others match and behind not", () => {
    expect(problemsIn(() => match("n1,n4"))).to.deep.equal([
      "no node “n4” in the roster [TARGET_UNKNOWN] | did you mean “n1”?",
    ]);
    expect(problemsIn(() => match("not wbe-1"))[0]).to.include("did you mean “web-1”?");
  });

  it("refuses an expression that matches no node, and lists the nodes (S-25)", () => {
    for (const expression of ["role:nope", "n1 and n2", "not *", "zz*", "/zz/"])
      expect(problemsIn(() => match(expression))).to.deep.equal([
        `no node matches “${expression}” [TARGET_EMPTY] | the roster holds n1 (controller), n2 (worker), n3 (worker), web-1`,
      ]);
  });

  it("hints that label: means labels of the roster where none matches", () =>
    expect(problemsIn(() => match("label:zz"))[0]).to.include(
      "no node matches “label:zz” [TARGET_EMPTY] | label: means labels of the roster;",
    ));

  it("refuses more than 32 levels of nesting", () => {
    for (const expression of [`${"not ".repeat(33)}n1`, `${"(".repeat(33)}n1${")".repeat(33)}`])
      expect(problemsIn(() => match(expression))[0]).to.include("nested too deeply [TARGET_SYNTAX]");
  });

  it("never matches all nodes without a pattern or not (S-25)", () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), (text) => {
        let names: string[] = [];
        try {
          names = matchTargets(text, roster).map(({ name }) => name);
        } catch {
          return;
        }
        if (names.length === roster.nodes.size) expect(text).to.match(/[*?[/]|not/);
      }),
      { numRuns: 2000 },
    ));

  it("follows the laws of sets (S-25)", () => {
    const term = fc.constantFrom(
      "n1",
      "n2",
      "n*",
      "/n[12]/",
      "role:worker",
      "dc:DC1",
      "group:storage",
      "label:tier=ssd",
    );
    const names = (expression: string): Set<string> => {
      try {
        return new Set(match(expression).split(" "));
      } catch {
        return new Set();
      }
    };
    fc.assert(
      fc.property(term, term, (a, b) => {
        const [inA, inB] = [names(a), names(b)];
        const all = [...roster.nodes.keys()];
        expect([...names(`${a} and ${b}`)]).to.deep.equal(all.filter((name) => inA.has(name) && inB.has(name)));
        expect([...names(`${a} or ${b}`)]).to.deep.equal(all.filter((name) => inA.has(name) || inB.has(name)));
        expect([...names(`not (${a})`)]).to.deep.equal(all.filter((name) => !inA.has(name)));
        expect([...names(`not (${a} or ${b})`)]).to.deep.equal([...names(`not (${a}) and not (${b})`)]);
      }),
    );
  });

  it("reports syntax errors at their place", () => {
    const at = { file: "orchestrate/x.yaml", line: 3, column: 10 };
    const where = (expression: string): string[] => problemsIn(() => matchTargets(expression, roster, at));
    for (const [expression, message] of Object.entries({
      "n1 n2": "13+2 unexpected “n2” [TARGET_SYNTAX] | join by “and”, “or” or a comma",
      "(n1": "10+1 this parenthesis is not closed [TARGET_SYNTAX] | docs/rosters.md, Targets",
      "n1 and": "16+1 the target ends too early [TARGET_SYNTAX] | a node or term is missing",
      "rol:x": "10+5 no target term “rol:” [TARGET_SYNTAX] | did you mean “role”?",
      "n1, /[/": "14+3 not a regular expression: Unterminated character class [TARGET_SYNTAX]",
    }))
      expect(where(expression)).to.deep.equal([`orchestrate/x.yaml:3:${message}`]);
    expect(where("")[0]).to.include("the target is empty");
    expect(where("n1;reboot")[0]).to.include("“n1;reboot” cannot be a name");
  });

  it("stops a regular expression that takes too long", () => {
    const long: Roster = {
      ...roster,
      nodes: new Map([["a".repeat(60) + "b", { ...roster.nodes.get("n1"), name: `${"a".repeat(60)}b` } as never]]),
    };
    expect(problemsIn(() => matchTargets("/^(a+)+$/", long))[0]).to.include("takes too long");
  });
});

describe("matchesGlob", () => {
  it("agrees with a regular expression", () => {
    const unit = fc.constantFrom("a", "b", "*", "?");
    fc.assert(
      fc.property(
        fc.string({ unit, maxLength: 8 }),
        fc.string({ unit: fc.constantFrom("a", "b"), maxLength: 8 }),
        (glob, name) => {
          const regex = new RegExp(`^${glob.replaceAll("*", ".*").replaceAll("?", ".")}$`);
          expect(matchesGlob(glob, name)).to.equal(regex.test(name));
        },
      ),
    );
  });
});
