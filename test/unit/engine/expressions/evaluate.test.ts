import { expect } from "chai";
import fc, { anyText } from "#support/properties.ts";
import { Secret } from "#engine/step/secret.ts";
import { evaluate, evaluateBoolean } from "#engine/expressions/evaluate.ts";
import { nodeAt } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
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
  steps: new Map([["key", new Unknown("state/key", { steps: ["key"] })]]),
  stages: {},
};

function value(expression: string, names: Record<string, unknown> = scope): unknown {
  const node = nodeAt(parseSource("s.yaml", `k: ${JSON.stringify(expression)}\n`), ["k"]);
  return evaluate(node as NonNullable<typeof node>, names);
}
const problems = (expression: string): string[] => problemsIn(() => value(expression));

describe("a whole expression", () => {
  it("keeps its type", () => {
    expect(value("{{params.n}}")).to.equal(5);
    expect(value("{{params.list}}")).to.deep.equal(["a", "b"]);
    expect(value("{{params.none}}")).to.equal(null);
    expect(value("{{has node.roles 'controller'}}")).to.equal(true);
    expect(value("{{true}}")).to.equal(true);
    expect(value("{{{params.n}}}")).to.equal(5);
  });
  it("hands a secret on as a secret", () => {
    expect(value("{{params.token}}")).to.equal(scope.params.token);
  });
});

describe("an expression in a text", () => {
  it("gives a text and escapes nothing for HTML", () => {
    expect(value("v{{params.n}} {{concat '<&\"' \"'\"}}")).to.equal("v5 <&\"'");
  });
  it("makes the whole text a secret when a secret goes in", () => {
    const text = value("token={{params.token}}");
    expect(text).to.be.instanceOf(Secret);
    expect((text as Secret).reveal()).to.equal("token=s3cret");
    expect(String(text)).to.equal("***");
    expect((value("{{upper params.token}}") as Secret).reveal()).to.equal("S3CRET");
    expect((value("{{join (list 'a' params.token) '-'}}") as Secret).reveal()).to.equal("a-s3cret");
  });
  it("refuses nothing, lists and maps", () => {
    expect(problems("x {{params.none}}")).to.deep.equal([
      "s.yaml:1:7+15 nothing cannot be put into a text [EXPRESSION_TYPE] | default x 'y' gives another value for nothing",
    ]);
    expect(problems("x {{params.list}}")[0]).to.include("a list cannot be put into a text");
    expect(problems("x {{node.labels}}")[0]).to.include("a map cannot be put into a text");
  });
  it("leaves \\{{ alone", () => {
    expect(value("\\{{raw}} {{params.a}}")).to.equal("{{raw}} x");
  });
});

describe("blocks", () => {
  it("go through lists and maps, and see the names outside", () => {
    expect(
      value(
        "{{#each nodes}}{{@key}}={{address}}{{#if (eq name node.name)}}*{{/if}}{{#unless @last}},{{/unless}}{{/each}}",
      ),
    ).to.equal("n1=192.0.2.1*,n2=192.0.2.2");
    expect(value("{{#each params.list as |v i|}}{{i}}{{v}}{{../params.a}} {{/each}}")).to.equal("0ax 1bx ");
    expect(value("{{#each params.empty}}x{{else}}none{{/each}}")).to.equal("none");
    expect(value("{{#with node}}{{name}}{{this.address}}{{/with}}")).to.equal("n1::1");
    expect(value("{{#if params.none}}a{{else if params.n}}b{{else}}c{{/if}}")).to.equal("b");
  });
  it("are the four that are documented", () => {
    expect(problems("{{#foreach params.list}}{{/foreach}}")).to.deep.equal([
      "s.yaml:1:8+7 no block “#foreach” [EXPRESSION_SYNTAX] | the blocks are if, unless, each, with",
    ]);
    expect(problems("{{#each params.n}}{{/each}}")[0]).to.equal(
      "s.yaml:1:13+8 #each goes through a list or a map, not a number [EXPRESSION_TYPE]",
    );
  });
});

describe("an undefined name (S-19)", () => {
  const places: Readonly<Record<string, string>> = {
    alone: "{{params.nope}}",
    "in a text": "x {{params.nope}}",
    "in if": "{{#if params.nope}}a{{/if}}",
    "in unless": "{{#unless params.nope}}a{{/unless}}",
    "in each": "{{#each params.nope}}a{{/each}}",
    "in with": "{{#with params.nope}}a{{/with}}",
    "in lookup": "{{lookup params.nope 'x'}}",
    "as a helper's argument": "{{upper params.nope}}",
    "in a sub-expression": "{{if (eq params.nope 1) 'a' 'b'}}",
    "as a named argument": "{{json params.a indent=params.nope}}",
    "in default, where it would have to be declared": "{{default params.nope 'x'}}",
    "inside a block": "{{#each params.list}}{{params.nope}}{{/each}}",
  };
  for (const [where, expression] of Object.entries(places))
    it(`fails ${where}`, () => {
      const column = 5 + expression.indexOf("params.nope");
      expect(problems(expression)).to.have.length(1);
      expect(problems(expression)[0]).to.match(
        new RegExp(`^s\\.yaml:1:${column}\\+11 “params” has no “nope” \\[EXPRESSION_UNDEFINED\\]`),
      );
    });

  it("fails as the key of lookup", () => {
    expect(problems("{{lookup node 'nope'}}")[0]).to.include("has no “nope”");
  });
  it("fails in and, or and if also where another argument decides", () => {
    for (const text of ["{{or true params.nope}}", "{{and false params.nope}}", "{{if true 1 params.nope}}"])
      expect(problems(text)[0]).to.include("has no “nope”");
  });
  it("is suggested the nearest name", () => {
    expect(problems("{{node.nmae}}")).to.deep.equal([
      "s.yaml:1:7+9 “node” has no “nmae” [EXPRESSION_UNDEFINED] | did you mean “name”?",
    ]);
    expect(problems("{{ndoe.name}}")[0]).to.include(
      "“ndoe” is not defined [EXPRESSION_UNDEFINED] | did you mean “node”?",
    );
  });
  it("is excused by default at the end of a path into free maps only", () => {
    expect(value("{{default node.labels.zone 'none'}}")).to.equal("none");
    expect(value("{{default node.labels.tier 'none'}}")).to.equal("ssd");
    expect(value("{{default params.none 'y'}}")).to.equal("y");
    expect(problems("{{default node.lables.zone 'x'}}")[0]).to.include("did you mean “labels”?");
  });
});

describe("what a prototype has (S-19)", () => {
  for (const expression of [
    "{{constructor}}",
    "{{node.constructor}}",
    "{{node.__proto__}}",
    "{{node.toString}}",
    "{{params.list.length}}",
    "{{params.a.length}}",
    "{{lookup node 'constructor'}}",
    "{{lookup node '__proto__'}}",
    "{{#with node}}{{constructor}}{{/with}}",
    "{{params.token.reveal}}",
    "{{node.constructor.constructor}}",
    "{{__defineGetter__ 'x'}}",
    "{{lookup (lookup node 'constructor') 'name'}}",
  ])
    it(`cannot be reached by ${expression}`, () => {
      expect(problems(expression)).to.have.length(1);
    });
});

describe("data (S-4)", () => {
  it("is never evaluated", () => {
    expect(value("{{vars.evil}}")).to.equal("{{params.a}}");
    expect(value("<{{vars.with}}>")).to.equal("<{{#with 'x' as |y|}}{{y}}{{/with}}>");
    expect(value("{{join (list vars.evil) ','}}")).to.equal("{{params.a}}");
    expect(value("{{#each nodes}}{{../vars.evil}}{{/each}}")).to.equal("{{params.a}}{{params.a}}");
  });
  it("of any content comes out as it went in (S-4)", () => {
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
  it("may have any own key, and nothing else is found", () => {
    fc.assert(
      fc.property(fc.constantFrom("__proto__", "constructor", "toString", "hasOwnProperty", "x"), (key) => {
        const map = Object.create(null) as Record<string, unknown>;
        map[key] = "own";
        expect(value(`{{lookup vars '${key}'}}`, { vars: map })).to.equal("own");
        expect(() => value(`{{lookup vars '${key}'}}`, { vars: {} })).to.throw("has no");
      }),
    );
  });
});

describe("errors of expressions", () => {
  const cases: Readonly<Record<string, string>> = {
    "{{bogus 1}}": "s.yaml:1:5+11 no helper “bogus” [EXPRESSION_SYNTAX] | docs/templates.md lists the helpers",
    "{{uper 'x'}}": "s.yaml:1:5+12 no helper “uper” [EXPRESSION_SYNTAX] | did you mean “upper”?",
    "{{has 1}}": "s.yaml:1:5+9 has does not take 1 argument [EXPRESSION_SYNTAX] | write has list value | map key",
    "{{upper}}": "s.yaml:1:5+9 upper is a helper and needs arguments [EXPRESSION_SYNTAX] | write upper text",
    "{{not 'x'}}": "s.yaml:1:11+3 the argument of not must be true or false, not a text [EXPRESSION_TYPE]",
    "docker ps --format {{.Names}}": `s.yaml:1:26+1 the expression cannot be read: unexpected word [EXPRESSION_SYNTAX] | for another program's braces write \\{{… (within "…": \\\\{{…)`,
    "{{eq params.n 5": "s.yaml:1:19+1 the expression cannot be read [EXPRESSION_SYNTAX] | see docs/templates.md",
    "{{eq params.n 5)}}":
      "s.yaml:1:20+1 the expression cannot be read: unexpected ) [EXPRESSION_SYNTAX] | see docs/templates.md",
    "{{#if true}}x{{/each}}": "s.yaml:1:8+1 if doesn't match each [EXPRESSION_SYNTAX] | see docs/templates.md",
    "{{> other}}": "s.yaml:1:5+11 partials work in files under templates/ only [EXPRESSION_SYNTAX]",
    "{{* deco}}": "s.yaml:1:5+10 decorators and partial blocks are not known here [EXPRESSION_SYNTAX]",
    "{{steps}}": "s.yaml:1:7+5 “steps” alone is not a value [EXPRESSION_TYPE] | name one: steps.NAME",
  };
  for (const [expression, problem] of Object.entries(cases))
    it(`tell what is wrong with ${expression}`, () => {
      expect(problems(expression)).to.deep.equal([problem]);
    });

  it("are told for all arguments of a helper", () => {
    const text = 'a: "{{concat params.c (upper params.b) node.nope}}"\n';
    const told = problemsIn(() => evaluate(parseSource("s.yaml", text), scope)).map((line) => line.split(" ")[0]);
    expect(told).to.deep.equal(["s.yaml:1:14+8", "s.yaml:1:30+8", "s.yaml:1:40+9"]);
  });

  it("point into every style of scalar, and are told all at once", () => {
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
    ).to.deep.equal([
      "s.yaml:3:7+8",
      "s.yaml:6:9+8",
      "s.yaml:7:16+8",
      "s.yaml:8:11+8",
      "s.yaml:8:39+8",
      "s.yaml:10:5+8",
    ]);
  });
});

describe("evaluateBoolean", () => {
  const when = (text: string): boolean => evaluateBoolean(parseSource("s.yaml", text), scope);
  it("takes true and false only", () => {
    expect(when("\"{{eq node.name 'n1'}}\"")).to.equal(true);
    expect(when("false")).to.equal(false);
    expect(problemsIn(() => when('"{{params.list}}"'))).to.deep.equal([
      "s.yaml:1:1+17 the condition must be true or false, not a list [EXPRESSION_TYPE] | compare it: {{gt (length x) 0}}",
    ]);
    expect(problemsIn(() => when('" {{true}}"'))[0]).to.include("must be true or false, not a text");
  });
});

describe("a list", () => {
  const facts = { network: { addresses: ["192.0.2.1", "192.0.2.2"] }, disks: [{ bytes: 7 }], none: [] };
  const give = (text: string) => evaluate(parseSource("s.yaml", JSON.stringify(text)), { facts });
  it("gives an item by its index", () => {
    expect(give("{{facts.network.addresses.1}}")).to.equal("192.0.2.2");
    expect(give("{{facts.disks.0.bytes}}")).to.equal(7);
    expect(give("{{#if (eq facts.network.addresses.0 '192.0.2.1')}}{{add 1 2.5 -1}}{{/if}}")).to.equal("2.5");
    expect(give("{{default facts.network.addresses.2 'no'}}")).to.equal("no");
  });
  it("says how many items there are when there is none of that index", () => {
    const problem = (text: string) => problemsIn(() => give(text))[0];
    expect(problem("{{facts.network.addresses.2}}")).to.equal(
      "s.yaml:1:4+25 “facts.network.addresses” is a list of 2 and has no item 2 [EXPRESSION_UNDEFINED] | its items are 0 to 1; default facts.network.addresses.2 'y' gives another value",
    );
    expect(problem("{{facts.none.0}}")).to.include("“facts.none” is an empty list and has no item 0");
    expect(problem("{{facts.disks.bytes}}")).to.include(
      "has no “bytes” [EXPRESSION_UNDEFINED] | an index from 0, first",
    );
  });
});

describe("what is not known yet", () => {
  it("changes nothing where and, or have what decides", () => {
    expect(value("{{and facts.x false (eq steps.key.rc 0)}}")).to.equal(false);
    expect(value("{{or facts.x true}}")).to.equal(true);
    expect(value("{{not (and (eq params.late 'x') false)}}")).to.equal(true);
    expect(() => value("{{and facts.x false (eq nowhere 1)}}")).to.throw("nowhere");
  });

  for (const expression of [
    "{{facts.os}}",
    "x {{steps.key.stdout}}",
    "{{upper params.late}}",
    "{{#if facts.x}}a{{/if}}",
    "{{default facts.os 'x'}}",
    "{{and true facts.x}}",
    "{{or facts.x false}}",
  ])
    it(`stops ${expression} with what it waits for`, () => {
      expect(() => value(expression)).to.throw(UnknownValue);
    });
  it("is looked at by the names that it will have", () => {
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
  it("is found without evaluating", () => {
    const node = parseSource(
      "s.yaml",
      'a: "{{#each params.x}}{{facts.os}}{{/each}}"\nb: ["{{if (eq steps.[my key].rc 0) stages.issue.x 1}}"]\n',
    );
    const { facts, steps, stages, params } = referencesOf(node);
    expect([facts, [...steps], [...stages], [...params]]).to.deep.equal([true, ["my key"], ["issue"], ["x"]]);
  });
});

describe("expressions made to harm (S-18, S-19)", () => {
  const bombs: Readonly<Record<string, string>> = {
    "nested blocks": "{{#if a}}".repeat(20_000) + "{{/if}}".repeat(20_000),
    "nested parentheses": `{{f ${"(f ".repeat(20_000)}1${")".repeat(20_000)}}}`,
    "open braces": "{{".repeat(20_000),
    "words without an end": "{{a b c ".repeat(20_000),
  };
  for (const [what, text] of Object.entries(bombs))
    it(`refuses ${what} with little work`, () => {
      const node = parseSource("s.yaml", JSON.stringify({ k: text }));
      const used = cpuClock();
      expect(problemsIn(() => evaluate(node, scope))[0]).to.include("[EXPRESSION_SYNTAX]");
      expect(used(), "ms of processor").to.be.below(500);
    });

  it("tells a value that is nested too deeply for a helper (S-4)", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level++) deep = [deep];
    expect(() => value("{{json vars.deep}}", { vars: { deep } })).to.throw("nested too deeply");
  });
});
