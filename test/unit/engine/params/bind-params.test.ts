import { expect } from "chai";
import { secret, type Secret } from "#engine/step/secret.ts";
import { bindParams, type GivenParam, givenFromNode, givenFromText } from "#engine/params/bind-params.ts";
import { nodeAt } from "#engine/yaml/node.ts";
import { declareParams, type ParamDeclarations } from "#engine/params/declare-params.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { problemsIn, problemsOfRejection } from "#support/problems.ts";

const declare = (text: string): ParamDeclarations => declareParams(parseSource("s.yaml", text));
const declared = declare(`
text: { type: string, default: x }
whole: { type: integer, default: 1 }
share: { type: number, default: 0.5 }
flag: { type: boolean, default: false }
names: { type: list, default: [a] }
map: { type: map, default: { a: 1 } }
mode: { type: enum, oneOf: [fast, safe], default: safe }
size: { type: size, default: 1GiB }
wait: { type: duration, default: 2m }
on: { type: target, default: n1 }
host: { type: string, default: "{{node.name}}" }
free: { type: string }
`);

/** Parameters from the command line: `--set name=text`. */
function typed(pairs: readonly string[]): ReadonlyMap<string, GivenParam> {
  return new Map(pairs.map((pair) => [pair.replace(/=.*/s, ""), { text: pair.replace(/^.*?=/s, "") }]));
}

async function bind(given: ReadonlyMap<string, GivenParam>, declarations = declared): Promise<Record<string, unknown>> {
  const readSecret = (reference: object): Promise<Secret> =>
    Promise.resolve(secret(`value of ${JSON.stringify(reference)}`));
  return bindParams(declarations, given, { owner: "state “x”", scope: { node: { name: "n1" } }, readSecret });
}

describe("bindParams", () => {
  const defaults = {
    text: "x",
    whole: 1,
    share: 0.5,
    flag: false,
    names: ["a"],
    map: { a: 1 },
    mode: "safe",
    size: 2 ** 30,
    wait: 120,
    on: "n1",
    host: "n1",
    free: null,
  };
  const bindPlain = async (given: ReadonlyMap<string, GivenParam>): Promise<unknown> => {
    const values = await bind(given);
    return { ...values, map: { ...(values["map"] as object) } };
  };

  it("evaluates defaults, and is null without one", async () =>
    expect(await bindPlain(new Map())).to.deep.equal(defaults));

  it("converts texts of the command line to the parameters' types", async () => {
    const given = ["text=5", "whole=7", "share=1.5", "flag=true", "names=a, b", "map={b: 2}", "mode=fast", "size=5M"];
    const more = ["wait=30", "on=role:worker and not n1", "free=a=b"];
    expect(await bindPlain(typed([...given, ...more]))).to.deep.equal({
      text: "5",
      whole: 7,
      share: 1.5,
      flag: true,
      names: ["a", "b"],
      map: { b: 2 },
      mode: "fast",
      size: 5 * 2 ** 20,
      wait: 30,
      on: "role:worker and not n1",
      host: "n1",
      free: "a=b",
    });
  });

  it("reports all wrong texts of the command line", async () => {
    const given = typed(["whole=x", "share=", "flag=yes", "mode=slow", "size=big", "wait=soon", "map=[1]", "textt=1"]);
    expect(await problemsOfRejection(bind(given))).to.deep.equal([
      "state “x” has no parameter “textt” [PARAM_UNKNOWN] | did you mean “text”?",
      "the parameter “whole” must be a number [PARAM_INVALID]",
      "the parameter “share” must be a number [PARAM_INVALID]",
      "the parameter “flag” must be true or false [PARAM_INVALID]",
      "the parameter “map” must be a map, not a list [PARAM_INVALID]",
      "the parameter “mode” must be fast or safe [PARAM_INVALID]",
      "the parameter “size” must be a size such as 10GiB, not a text [PARAM_INVALID]",
      "the parameter “wait” must be a duration such as 30s or 5m, not a text [PARAM_INVALID]",
    ]);
  });

  it("compares a size of the command line with the allowed values", async () => {
    const sizes = declare("size: { type: size, oneOf: [1024, 2048] }\n");
    expect((await bind(typed(["size=2K"]), sizes))["size"]).to.equal(2048);
    expect(await problemsOfRejection(bind(typed(["size=3K"]), sizes))).to.deep.equal([
      "the parameter “size” must be 1024 or 2048 [PARAM_INVALID]",
    ]);
  });

  it("accepts JSON, and reports its problems at their places", async () => {
    expect((await bind(givenFromText('{"whole": 3, "names": ["x"]}')))["names"]).to.deep.equal(["x"]);
    expect(await problemsOfRejection(bind(givenFromText('{"whole": "3"}')))).to.deep.equal([
      "--params:1:11+3 the parameter “whole” must be a whole number, not a text [PARAM_INVALID]",
    ]);
  });

  it("evaluates arguments of a file, and joins a list of targets", async () => {
    const given = (text: string, scope: Scope): Map<string, GivenParam> =>
      givenFromNode(parseSource("s.yaml", text), scope);
    const values = await bind(
      given('names: "{{params.all}}"\non: [n1, "role:worker"]\n', { params: { all: ["p", "q"] } }),
    );
    expect([values["names"], values["on"]]).to.deep.equal([["p", "q"], "n1,role:worker"]);
  });

  it("reports a missing required parameter with its description", async () => {
    const declarations = declare("a: { type: string, required: true, description: where it listens }\n");
    expect(await problemsOfRejection(bind(new Map(), declarations))).to.deep.equal([
      "state “x” needs the parameter “a” [PARAM_MISSING] | give it, a: where it listens",
    ]);
  });

  it("keeps an unknown value as Unknown, with its dependencies", async () => {
    const scope = {
      steps: new Map([["k", new Unknown("s/k", { steps: ["k"] })]]),
      facts: new Unknown("facts", { facts: true }),
    };
    const node = parseSource("s.yaml", 'text: "{{steps.k.stdout}} {{facts.os}}"\n');
    const { text } = await bind(givenFromNode(node, scope));
    expect(text).to.be.instanceOf(Unknown);
    expect((text as Unknown).needs).to.deep.equal({ facts: true, steps: ["k"], stages: [] });
  });
});

describe("a parameter of type secret", () => {
  const declarations = declare("token: { type: secret, required: true }\n");
  const revealed = async (text: string, scope: Scope = {}): Promise<string> => {
    const { token } = await bind(givenFromNode(parseSource("s.yaml", text), scope), declarations);
    return (token as Secret).reveal();
  };

  it("is read from its reference", async () => {
    expect(await revealed("token: env:TOKEN\n")).to.equal('value of {"env":"TOKEN"}');
    expect(await revealed("token: { command: pass show t }\n")).to.equal('value of {"command":"pass show t"}');
    expect(await revealed('token: "{{vars.t}}"\n', { vars: { t: "file:/run/t" } })).to.equal(
      'value of {"file":"/run/t"}',
    );
    const sealed = `age:YWdlLWVuY3J5cHRpb24ub3JnL3Yx${"A".repeat(80)}`;
    expect(await revealed('token: "{{vars.t}}"\n', { vars: { t: sealed } }), "put together").to.equal(sealed);
    const { token } = await bind(typed(["token=env:T"]), declarations);
    expect((token as Secret).reveal()).to.equal('value of {"env":"T"}');
  });

  it("refuses a literal secret, and never shows it (S-7)", async () => {
    expect(await problemsOfRejection(revealed("token: hunter2\n"))).to.deep.equal([
      "s.yaml:1:8+7 the parameter “token” must refer to a secret, not hold it [SECRET_LITERAL] | write env:NAME, file:PATH or command:CMD, or seal it: kcore secrets set",
    ]);
    expect((await problemsOfRejection(bind(typed(["token=hunter2"]), declarations)))[0]).not.to.include("hunter2");
  });

  it("accepts a command with a variable only where the variable is one shell word", async () => {
    const path = 'token: "command:pass show {{vars.path}}"\n';
    expect(await revealed(path, { vars: { path: "web/token" } })).to.equal(
      'value of {"command":"pass show web/token"}',
    );
    const quoted = 'token: "command:pass show {{shell vars.path}}"\n';
    expect(await revealed(quoted, { vars: { path: "a; id" } })).to.equal(`value of {"command":"pass show 'a; id'"}`);
    expect(await problemsOfRejection(revealed(path, { vars: { path: "a; touch /tmp/owned" } }))).to.deep.equal([
      "s.yaml:1:27+13 this value would stand unquoted in a shell text [EXPRESSION_UNQUOTED] | write {{shell vars.path}}",
    ]);
  });

  it("never runs a command that a stage's output, a parameter or an item contains (S-4)", async () => {
    const scope = {
      stages: { key: { stdout: "command:touch /tmp/owned" } },
      params: { p: "command:id" },
      item: "env:HOME",
    };
    expect(await revealed('token: "{{stages.key.stdout}}"\n', scope)).to.equal("command:touch /tmp/owned");
    expect(await revealed('token: "{{params.p}}"\n', scope)).to.equal("command:id");
    expect(await revealed('token: "{{item}}"\n', scope)).to.equal("env:HOME");
  });
});

describe("declareParams", () => {
  it("reports all wrong declarations", () =>
    expect(
      problemsIn(() =>
        declare(
          "a: { type: strin }\nb: { type: enum }\nc: { type: string, required: true, default: x }\nd-e: { type: string }\nf: string\n",
        ),
      ),
    ).to.deep.equal([
      "s.yaml:1:12+5 “type” must be “string” or “integer” or “number” or “boolean” or “list” or “map” or “enum” or “size” or “duration” or “target” or “secret” [YAML_TYPE] | did you mean “string”?",
      "s.yaml:2:1+1 “b” needs oneOf, a list of its values [PARAM_INVALID]",
      "s.yaml:3:1+1 “c” is required and has a default [PARAM_INVALID] | remove one of them",
      "s.yaml:4:1+3 “d-e” cannot name a parameter [PARAM_INVALID] | letters, digits and _ only",
      "s.yaml:5:4+6 the value must be a map, not a text [YAML_TYPE]",
    ]));
  it("accepts a file without parameters", () => {
    expect(declareParams(undefined).size).to.equal(0);
    expect(declareParams(nodeAt(parseSource("s.yaml", "params:\n"), ["params"])).size).to.equal(0);
  });
});
