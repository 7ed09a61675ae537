import { expect } from "chai";
import fc, { anyText } from "#support/properties.ts";
import { Secret } from "#engine/step/secret.ts";
import { evaluate, evaluateBoolean } from "#engine/expressions/evaluate.ts";
import { nodeAt } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import { casesOf } from "#support/cases/read.ts";
import { cpuClock } from "#support/cpu.ts";
import { problemsIn } from "#support/problems.ts";

const scope = {
  params: {
    a: "x",
    n: 5,
    list: ["a", "b"],
    none: null,
    token: new Secret("s3cret"),
    empty: [],
    late: new Unknown("nix/x", { steps: ["x"] }),
  },
  node: { name: "n1", roles: ["controller"], labels: { tier: "ssd" }, address: "::1" },
  nodes: new Map([
    ["n1", { name: "n1", address: "192.0.2.1", roles: ["controller"] }],
    ["n2", { name: "n2", address: "192.0.2.2", roles: ["worker"] }],
  ]),
  vars: { evil: "{{params.a}}", with: "{{#with 'x' as |y|}}{{y}}{{/with}}" },
  facts: new Unknown("facts", { facts: true }),
  site: { network: { addresses: ["192.0.2.1", "192.0.2.2"] }, disks: [{ bytes: 7 }], none: [] },
  steps: new Map([["key", new Unknown("state/key", { steps: ["key"] })]]),
  stages: {},
};

function value(expression: string, names: Record<string, unknown> = scope): unknown {
  const node = nodeAt(parseSource("s.yaml", `k: ${JSON.stringify(expression)}\n`), ["k"]);
  return evaluate(node as NonNullable<typeof node>, names);
}
const problems = (expression: string): string[] => problemsIn(() => value(expression));

const { gives, refused, waits } = casesOf<{
  readonly gives: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly refused: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly waits: readonly string[];
}>("expressions.yaml");

describe("expressions", () => {
  for (const [what, cases] of Object.entries(gives))
    it(what, () => {
      for (const [expression, wanted] of Object.entries(cases))
        expect(value(expression), expression).to.deep.equal(wanted);
    });

  for (const [what, cases] of Object.entries(refused))
    describe(`refuse ${what}`, () => {
      for (const [expression, problem] of Object.entries(cases))
        it(expression, () => {
          const reported = problems(expression);
          expect(reported).to.have.length(1);
          if (!problem.includes("…")) expect(reported).to.deep.equal([`s.yaml:${problem}`]);
          for (const part of problem.split("…")) expect(reported[0]).to.include(part);
          const column = 5 + expression.indexOf("params.nope");
          if (column > 4) expect(reported[0]).to.include(`s.yaml:1:${column}+11 `);
        });
    });

  for (const expression of waits)
    it(`wait for an unknown value: ${expression}`, () => expect(() => value(expression)).to.throw(UnknownValue));

  it("return a secret parameter as the same secret, and a text with a secret as a secret", () => {
    expect(value("{{params.token}}")).to.equal(scope.params.token);
    for (const text of ["a-{{params.token}}", "{{join (list 'a' params.token) '-'}}"])
      expect((value(text) as Secret).reveal(), text).to.equal("a-s3cret");
  });
});

describe("data in expressions (S-4)", () => {
  it("is never evaluated, whatever its text", () => {
    const hostile = fc.constantFrom(
      "{{#with 'x'}}",
      "{{params.a}}",
      "$(id)",
      "__proto__",
      "constructor",
      "\u001b[2J",
      "../../x",
      "\n- a: b",
      "*a",
    );
    fc.assert(
      fc.property(fc.oneof(hostile, anyText()), (text) => {
        const names = { ...scope, vars: { text } };
        expect(value("{{vars.text}}", names)).to.equal(text);
        expect(value("a{{vars.text}}b", names)).to.equal(`a${text}b`);
        expect(value("{{#each vars}}{{this}}{{/each}}", names)).to.equal(text);
      }),
    );
  });
  it("is looked up by own keys only, inherited names never", () =>
    fc.assert(
      fc.property(fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "x"), (key) => {
        const map = Object.create(null) as Record<string, unknown>;
        map[key] = "own";
        expect(value(`{{lookup vars '${key}'}}`, { vars: map })).to.equal("own");
        expect(() => value(`{{lookup vars '${key}'}}`, { vars: {} })).to.throw("has no");
      }),
    ));
});

describe("the depth of blocks", () => {
  it("is limited to 64, and blocks one after the other do not add up", () => {
    for (const otherwise of ["{{else}}", "{{^}}", "{{~^~}}"])
      expect(value(`{{#if params.none}}x${otherwise}y{{/if}}`.repeat(100)), otherwise).to.equal("y".repeat(100));
    const nested = "{{#if params.n}}".repeat(65);
    expect(problems(`${nested}${"{{/if}}".repeat(65)}`)[0]).to.include("nested more than 64 deep [EXPRESSION_SYNTAX]");
  });
});

describe("errors of expressions", () => {
  it("are reported for all arguments of a helper", () => {
    const text = 'a: "{{concat params.c (upper params.b) node.nope}}"\n';
    const reported = problemsIn(() => evaluate(parseSource("s.yaml", text), scope)).map((line) => line.split(" ")[0]);
    expect(reported).to.deep.equal(["s.yaml:1:14+8", "s.yaml:1:30+8", "s.yaml:1:40+9"]);
  });

  it("point into every style of YAML scalar, and are all reported at once", () => {
    const text = `a: |
  line one
  x {{params.b}}
b: >
  folded {{params.a}}
  and {{params.c}}
c: 'it''s {{eq params.d ''x''}}'
d: "q \\"{{params.e}}\\" \\u0041 {{add 1 params.f}}"
e: plain
  {{params.g}}
`;
    expect(
      problemsIn(() => evaluate(parseSource("s.yaml", text), scope)).map((line) => line.split(" ")[0]),
    ).to.deep.equal("s.yaml:3:7+8 s.yaml:6:9+8 s.yaml:7:16+8 s.yaml:8:11+8 s.yaml:8:39+8 s.yaml:10:5+8".split(" "));
  });
});

describe("evaluateBoolean", () => {
  const when = (text: string): boolean => evaluateBoolean(parseSource("s.yaml", text), scope);
  it("takes true and false only", () => {
    expect([when("\"{{eq node.name 'n1'}}\""), when("false")]).to.deep.equal([true, false]);
    expect(problemsIn(() => when('"{{params.list}}"'))).to.deep.equal([
      "s.yaml:1:1+17 the condition must be true or false, not a list [EXPRESSION_TYPE] | compare it: {{gt (length x) 0}}",
    ]);
    expect(problemsIn(() => when('" {{true}}"'))[0]).to.include("must be true or false, not a text");
  });
});

describe("an unknown value", () => {
  it("hides no undefined name in a later argument", () =>
    expect(() => value("{{and facts.x false (eq nowhere 1)}}")).to.throw("nowhere"));
  it("is checked against the names that it will have", () => {
    const facts = new Unknown("facts", { facts: true }, { os: { id: true }, disks: true });
    const problems = (text: string) =>
      problemsIn(() => evaluate(parseSource("s.yaml", JSON.stringify(text)), { facts }));
    expect(problems("{{facts.os.idd}}")).to.deep.equal([
      "s.yaml:1:4+12 “facts.os” has no “idd” [EXPRESSION_UNDEFINED] | did you mean “id”?",
    ]);
    expect(problems("{{#if facts.oss.id}}a{{/if}}")[0]).to.include("“facts” has no “oss”");
    for (const fine of ["{{facts.os.id}}", "{{facts.disks.0.bytes}}", "{{default facts.os.id 'x'}}"])
      expect(() => evaluate(parseSource("s.yaml", JSON.stringify(fine)), { facts }), fine).to.throw(UnknownValue);
  });
  it("is found by its references, without evaluating", () => {
    const node = parseSource(
      "s.yaml",
      'a: "{{#each params.x}}{{facts.os}}{{/each}}"\nb: ["{{if (eq steps.[my key].rc 0) stages.issue.x 1}}"]\n',
    );
    const { facts, steps, stages, params } = referencesOf(node);
    expect([facts, [...steps], [...stages], [...params]]).to.deep.equal([true, ["my key"], ["issue"], ["x"]]);
  });
});

describe("hostile expressions (S-18, S-19)", () => {
  const bombs: Readonly<Record<string, string>> = {
    "nested blocks": "{{#if a}}".repeat(20_000) + "{{/if}}".repeat(20_000),
    "nested parentheses": `{{f ${"(f ".repeat(20_000)}1${")".repeat(20_000)}}}`,
    "open braces": "{{".repeat(20_000),
    "words without an end": "{{a b c ".repeat(20_000),
  };
  for (const [what, text] of Object.entries(bombs))
    it(`refuses ${what} in less than 500 ms of processor time`, () => {
      const node = parseSource("s.yaml", JSON.stringify({ k: text }));
      const used = cpuClock();
      expect(problemsIn(() => evaluate(node, scope))[0]).to.include("[EXPRESSION_SYNTAX]");
      expect(used(), "ms of processor").to.be.below(500);
    });

  it("refuses a value that is nested too deeply for a helper (S-4)", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    expect(() => value("{{json vars.deep}}", { vars: { deep } })).to.throw("nested too deeply");
  });
});
