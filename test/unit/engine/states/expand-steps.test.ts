import { expect } from "chai";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { defineModule } from "#engine/step/define.ts";
import { Text } from "#engine/step/fields.ts";
import { sh } from "#engine/step/sh.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import type { LateScope, PlannedStep, RenderedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import { expandedSteps } from "#support/expanded-steps.ts";
import { problemsOfRejection } from "#support/problems.ts";

const note = defineModule({
  name: "test.note",
  summary: "Keeps nothing in order.",
  args: z.strictObject({
    text: Text.optional(),
    number: z.int().optional(),
    template: z.string().optional(),
    vars: z.record(z.string(), z.unknown()).optional(),
    file: z.string().optional(),
    fail: z.boolean().optional(),
  }),
  step: ({ text, number, template, file, fail }, context) => {
    if (fail === true) throw new KcoreError({ code: "USAGE", message: "this cannot work" });
    const rendered = template === undefined ? String(text ?? number) : context.renderTemplate(template);
    return {
      want: { text: file === undefined ? rendered : context.readFile(file).sha256.slice(0, 8) },
      probe: sh`fact text x`,
      ...(file !== undefined && { apply: sh`cat ${context.readFile(file)}` }),
    };
  },
});
const owner = defineModule({
  name: "test.owner",
  summary: "Wants whose its disks are.",
  args: z.strictObject({}),
  step: (_, { nodeId = "" }) => ({ want: { owner: nodeId }, probe: sh`fact owner x` }),
});
const modules = new Map([note, owner].map((module) => [module.name, module] as const));

const ROSTER = `nodes:
  n1: { address: h1, roles: [controller], vars: { x: vx } }
  n2: { address: h2, roles: [worker], vars: { x: "{{params.a}}" } }
`;

type Files = Readonly<Record<string, string>>;
type Options = Parameters<typeof expandedSteps>[2];

const drafts = (files: Files, options?: Options): Promise<readonly UnresolvedStep[]> =>
  expandedSteps({ "roster/r.yaml": ROSTER, ...files }, modules, options);
const state = (text: string, more: Files = {}, options?: Options): Promise<readonly UnresolvedStep[]> =>
  drafts({ "states/s.yaml": text, ...more }, options);
const problems = (text: string, more?: Files, options?: Options): Promise<string[]> =>
  problemsOfRejection(state(text, more, options));

const nothing: LateScope = { steps: new Map() };
const planOf = (rendered: RenderedStep | undefined): PlannedStep => {
  if (rendered?.kind !== "step") throw new Error(`expected a step, found ${rendered?.kind}`);
  return rendered.plan;
};
const wants = (list: readonly UnresolvedStep[]): string[] =>
  list.map((draft) => `${draft.id}=${planOf(draft.render(nothing)).step.want["text"]}`);
const ids = (list: readonly UnresolvedStep[]): string[] => list.map(({ id }) => id);

describe("what is wrong with a state", () => {
  const wrong = "test.note: { tezt: y }";
  /** Steps, and the places of their problems, in states/s.yaml unless another file is named. */
  const broken: Readonly<Record<string, readonly [steps: string, places: string]>> = {
    "a condition, a key of the step, an argument and its template": [
      'steps:\n  - id: a\n    when: "{{nope}}"\n    timeout: long\n    test.note: { number: x, tezt: y }\n',
      "3:14 4:14 5:26 5:29",
    ],
    "a key of the step and what the module refuses": [
      "steps:\n  - id: a\n    timeout: long\n    test.note: { fail: true }\n",
      "3:14 4:5",
    ],
    "a key of the step and what is late beside it": [
      'steps:\n  - id: a\n    timeout: long\n    when: "{{nope}}"\n    test.note: { text: "{{facts.os.id}}", tezt: y }\n',
      "3:14 4:14 5:43",
    ],
    "a key of the step and several places of its template": [
      "steps:\n  - id: a\n    timeout: long\n    test.note: { template: t }\n",
      "3:14 templates/t:1:3 templates/t:2:3",
    ],
    "a step with late arguments and its template": [
      'steps:\n  - id: a\n    test.note: { text: "{{facts.os.id}}", template: t, tezt: y }\n',
      "3:56 templates/t:1:3 templates/t:2:3",
    ],
    "a step whose vars are broken and late, and the template that sees them": [
      'steps:\n  - id: a\n    test.note: { template: v, vars: { x: "{{params.no}}", y: "{{facts.os.id}}" } }\n',
      "3:45 templates/v:1:22",
    ],
    "a module that is not known, its arguments and its condition": [
      'steps:\n  - id: a\n    when: "{{nope}}"\n    test.nota: { text: "{{params.x}}" }\n',
      "3:14 4:5 4:27",
    ],
    "the head of the file, a step without a module, and the arguments of another": [
      `descriptoin: x\nsteps:\n  - id: a\n  - id: b\n    ${wrong}\n`,
      "1:1 3:5 5:18",
    ],
    "a state that is not there, and a step beside its include": [
      `steps:\n  - include: gone\n  - id: b\n    ${wrong}\n`,
      "2:14 4:18",
    ],
    "an included state with a wrong key, its steps, and a step behind it": [
      `steps:\n  - include: t\n  - id: b\n    ${wrong}\n`,
      "4:18 states/t.yaml:1:1 states/t.yaml:4:18",
    ],
  };
  for (const [what, [text, places]] of Object.entries(broken))
    it(`is told at once: ${what}`, async () => {
      const told = await problems(text, {
        "templates/t": "{{params.one}}\n{{params.two}}\n",
        "templates/v": "{{x}} {{y}} {{y.z}}{{params.gone}}\n",
        "states/t.yaml": `stepz: []\nsteps:\n  - id: c\n    ${wrong}\n`,
      });
      expect(told.map((line) => line.split("+")[0]?.replace("states/s.yaml:", "")).join(" ")).to.equal(places);
    });
});

describe("expandSteps", () => {
  it("plans each step with its keys", async () => {
    const [first, second] = await state(`
params: { t: { type: string, default: hello } }
steps:
  - id: one
    test.note: { text: "{{params.t}} {{node.name}}" }
    register: first
    milestone: Begun
    creates: /x
    sensitive: true
  - id: two
    test.note: { number: 3 }
    require: one
    onChanges: [one]
    restartOn: [one]
    retry: { attempts: 3, interval: 2s }
    timeout: 5m
    runAs: nobody
    onlyIf: "test -e {{shell params.t}}"
    unless: "false"
`);
    const { at, step, ...one } = planOf(first?.render(nothing));
    expect(one).to.deep.include({
      id: "s/one",
      title: "one",
      state: "s",
      module: "test.note",
      register: "first",
      milestone: "Begun",
      creates: "/x",
      sensitive: true,
    });
    expect(at).to.deep.equal({ file: "states/s.yaml", line: 4, column: 9, length: 3 });
    expect(step.want).to.deep.equal({ text: "hello n1" });
    const { at: _at, step: _step, ...two } = planOf(second?.render(nothing));
    expect(two).to.deep.equal({
      id: "s/two",
      title: "two",
      state: "s",
      module: "test.note",
      sensitive: false,
      onFailure: [],
      require: ["s/one"],
      onChanges: ["s/one"],
      restartOn: ["s/one"],
      retry: { attempts: 3, interval: 2 },
      timeout: 300,
      runAs: "nobody",
      onlyIf: "test -e hello",
      unless: "false",
    });
    expect([second?.watches, second?.answers]).to.deep.equal([["s/one"], []]);
  });

  it("C12: disks are those of the first former id, where the machine was taken over", async () => {
    const former = "3f0c2a52-6c1b-4c55-9d8e-0d6a4c1f7b21";
    const ownerOf = async (more: string): Promise<unknown> => {
      const roster = `nodes:\n  n1: { address: h1, id: 11111111-2222-4333-8444-555555555555${more} }\n`;
      const [draft] = await drafts({
        "roster/r.yaml": roster,
        "states/s.yaml": "steps:\n  - id: a\n    test.owner: {}\n",
      });
      return planOf(draft?.render(nothing)).step.want["owner"];
    };
    expect(await ownerOf("")).to.equal("11111111-2222-4333-8444-555555555555");
    expect(await ownerOf(`, formerIds: [${former}, 22222222-2222-4333-8444-555555555555]`)).to.equal(former);
  });

  it("repeats a step for each item, and names them", async () => {
    const list = await state(`
params: { m: { type: map, default: { a: 1, b: 2 } } }
steps:
  - { id: one, each: [x, y, x], test.note: { text: "{{item}}" } }
  - { id: two, each: "{{params.m}}", test.note: { text: "{{item.key}}{{item.value}}" } }
  - { id: three, each: [], test.note: { text: "{{item.nope}}" } }
  - { id: four, test.note: { text: z }, require: [one, two, three] }
`);
    expect(wants(list)).to.deep.equal(
      "s/one[x]=x, s/one[y]=y, s/one[x 3]=x, s/two[a]=a1, s/two[b]=b2, s/four=z".split(", "),
    );
    expect(planOf(list.at(-1)?.render(nothing)).require).to.deep.equal(
      "s/one[x], s/one[y], s/one[x 3], s/two[a], s/two[b]".split(", "),
    );
  });

  it("includes states with arguments; the same one twice under different ids", async () => {
    const list = await state(
      `
params: { t: { type: string, default: T } }
steps:
  - { id: first, include: inner, with: { name: "{{params.t}}" } }
  - { include: inner, with: { name: b }, each: [1, 2] }
  - { id: end, test.note: { text: z }, require: [first, inner/a] }
`,
      {
        "states/inner.yaml":
          'params: { name: { type: string, required: true } }\nsteps:\n  - { id: a, test.note: { text: "{{params.name}}" } }\n',
      },
    );
    expect(wants(list)).to.deep.equal(["inner/a=T", "inner#2/a=b", "inner#3/a=b", "s/end=z"]);
    expect(planOf(list.at(-1)?.render(nothing)).require).to.deep.equal(["inner/a", "inner#3/a"]);
  });

  it("leaves out what when says, without looking at the rest of it", async () => {
    const list = await state(
      `
steps:
  - { id: a, when: "{{has node.roles 'worker'}}", test.note: { text: "{{vars.nope}}" } }
  - { include: inner, when: "{{eq 1 2}}", with: { name: "{{vars.nope}}" } }
  - { id: b, test.note: { text: b }, require: [a], restartOn: [inner/a] }
  - { id: c, test.note: { text: c }, onFailure: [a] }
  - { id: d, test.note: { text: d }, onChanges: [inner/a] }
`,
      { "states/inner.yaml": "params: { name: { type: string } }\nsteps:\n  - { id: a, test.note: { text: x } }\n" },
    );
    expect(list.map((draft) => `${draft.id} ${draft.render(nothing).kind}`)).to.deep.equal(
      "s/a skipped, s/b step, s/c skipped, s/d skipped".split(", "),
    );
    const reason = "onFailure: a step that it names was left out";
    expect(list[2]?.render(nothing)).to.deep.equal({ kind: "skipped", id: "s/c", title: "c", reason });
  });

  it("keeps ids apart over several stages, and lets a later one name steps of an earlier one", async () => {
    const taken = new Set<string>();
    const files = {
      "states/s.yaml": "steps: [{ id: a, test.note: { text: x } }]\n",
      "states/t.yaml": 'steps: [{ id: b, test.note: { text: "{{steps.k.stdout}}" }, require: [s/a] }]\n',
    };
    expect(ids(await drafts(files, { taken }))).to.deep.equal(["s/a"]);
    expect(ids(await drafts(files, { taken }))).to.deep.equal(["s#2/a"]);
    const [later] = await drafts(files, { taken, apply: [{ state: "t" }], registered: ["k"] });
    expect(later?.needs).to.deep.equal({ facts: false, steps: ["k"] });
  });
});

describe("late values", () => {
  const text = `
params: { p: { type: string, default: d } }
steps:
  - { id: key, test.note: { text: k }, register: key }
  - { id: a, test.note: { text: "{{steps.key.stdout}}" } }
  - { id: b, test.note: { text: b }, when: "{{eq facts.os 'debian'}}" }
  - { include: inner, with: { name: "{{steps.key.stdout}}!" } }
  - { id: t, test.note: { template: t.hbs } }
  - { id: c, test.note: { text: c } }
`;
  const more = {
    "states/inner.yaml":
      'params: { name: { type: string, required: true } }\nsteps:\n  - { id: i, test.note: { text: "<{{params.name}}>" } }\n',
    "templates/t.hbs": "{{#if facts.os}}{{facts.os}}{{/if}}",
  };
  const key = (stdout: string): LateScope => ({
    facts: { os: "debian" },
    steps: new Map([["key", { changed: true, rc: 0, stdout, facts: {} }]]),
  });

  it("are what a draft needs, also through parameters and templates", async () => {
    const needed = (await state(text, more)).map(({ id, needs }) =>
      `${id} ${needs.facts} ${needs.steps.join()}`.trim(),
    );
    expect(needed).to.deep.equal(
      "s/key false, s/a false key, s/b true, inner/i false key, s/t true, s/c false".split(", "),
    );
  });

  it("are data when they come (S-4)", async () => {
    const list = await state(text, more);
    const late = key("{{params.p}} $(id)");
    expect(
      list
        .map((draft) => draft.render(late))
        .map((step) => (step.kind === "step" ? step.plan.step.want["text"] : step.kind)),
    ).to.deep.equal(["k", "{{params.p}} $(id)", "b", "<{{params.p}} $(id)!>", "debian", "c"]);
  });

  it("that a dry run lacks make a step unknown, after the step that would give them", async () => {
    const list = await state(text, more);
    const dry: LateScope = { facts: { os: "alpine" }, steps: new Map([["key", undefined]]) };
    expect(list[1]?.render(dry)).to.deep.equal({ kind: "unknown", id: "s/a", title: "a", after: "s/key" });
    expect(list[2]?.render(dry).kind).to.equal("skipped");
    expect(list[3]?.render(dry).kind).to.equal("unknown");
  });

  it("of a stage on the bastion, handed over as parameters, need nothing of the node", async () => {
    const given = new Map(["pem", "list"].map((name) => [name, { value: new Unknown("stage issue") }]));
    const list = await state(
      'params: { pem: { type: string }, list: { type: list } }\nsteps:\n  - { id: a, test.note: { text: "{{params.pem}}" } }\n  - { id: b, each: "{{params.list}}", test.note: { text: "{{item}}" } }\n',
      {},
      { apply: [{ state: "s", given }] },
    );
    expect(list.map(({ needs }) => needs)).to.deep.equal([
      { facts: false, steps: [] },
      { facts: false, steps: [] },
    ]);
    expect(list.map((draft) => draft.render(nothing))).to.deep.equal([
      { kind: "unknown", id: "s/a", title: "a", after: "stage issue" },
      { kind: "unknown", id: "s/b", title: "b", after: "stage issue" },
    ]);
  });

  it("do not hide mistakes in the other arguments", async () =>
    expect(
      await problems(
        'steps:\n  - { id: a, test.note: { text: "{{facts.os}}", numbr: 1, number: x } }\n  - { id: b, test.note: { text: "{{steps.kye.stdout}}" } }\n',
      ),
    ).to.deep.equal([
      "states/s.yaml:2:49+5 no key “numbr” is known here [YAML_KEY_UNKNOWN] | did you mean “number”?",
      "states/s.yaml:2:67+1 “number” must be a number, not a text [YAML_TYPE]",
      "states/s.yaml:3:36+16 “steps” has no “kye” [EXPRESSION_UNDEFINED]",
    ]));

  it("may not decide how often a step is repeated", async () =>
    expect(await problems('steps:\n  - { id: a, each: "{{facts.disks}}", test.note: { text: x } }\n')).to.deep.equal([
      "states/s.yaml:2:20+17 each goes over what is known before the run: params, node, nodes, vars [STATE_STEP_INVALID]",
    ]));
});

describe("problems of a node's steps", () => {
  it("are told all at once, each at its place", async () =>
    expect(
      await problems(`
steps:
  - { id: a, test.noet: { text: x } }
  - { id: b, test.note: { text: [1], nope: "{{vars.y}}" } }
  - { id: c, test.note: { fail: true } }
  - { id: d, when: "yes", test.note: {} }
  - { id: e, timeout: soon, retry: { attempts: 0 }, test.note: {} }
  - { id: f, test.note: { template: nope.hbs } }
  - { id: g, test.note: { file: ../../etc/passwd } }
  - { include: nope }
`),
    ).to.deep.equal([
      "states/s.yaml:3:14+9 no state module “test.noet” [STATE_MODULE_UNKNOWN] | did you mean “test.note”?",
      "states/s.yaml:4:33+3 “text” must be a text or Secret, not a list [YAML_TYPE]",
      "states/s.yaml:4:38+4 no key “nope” is known here [YAML_KEY_UNKNOWN] | known here: text, number, template, vars, file, fail",
      "states/s.yaml:4:47+6 “vars” has no “y” [EXPRESSION_UNDEFINED] | did you mean “x”?",
      "states/s.yaml:5:14+9 this cannot work [USAGE]",
      "states/s.yaml:6:20+5 the condition must be true or false, not a text [EXPRESSION_TYPE] | write one expression and nothing around it: \"{{eq node.dc 'DC1'}}\"",
      "states/s.yaml:7:23+4 “timeout” must be a duration such as 30s, 5m or 1h [YAML_TYPE]",
      "states/s.yaml:7:48+1 “retry.attempts” must be at least 1 [YAML_TYPE]",
      "states/s.yaml:8:37+8 no template “nope.hbs” [TEMPLATE_NOT_FOUND]",
      "states/s.yaml:9:14+9 no file “../../etc/passwd” in the project [FILE_UNREADABLE] | the path is relative to the project's folder and must not leave it",
      "states/s.yaml:10:16+4 no state “nope” [STATE_NOT_FOUND] | kcore state list shows them all",
    ]));

  it("refuse a secret in a template that is not kept from view (S-7)", async () => {
    const text = (sensitive: string): string =>
      `params: { t: { type: secret, default: "env:T" } }\nsteps:\n  - { id: a, test.note: { template: t.hbs }${sensitive} }\n`;
    const more = { "templates/t.hbs": "{{params.t}}" };
    expect(await problems(text(""), more)).to.deep.equal([
      "states/s.yaml:3:37+5 the template “t.hbs” puts a secret into its text [EXPRESSION_TYPE] | give the step sensitive: true, so that the text is never shown",
    ]);
    expect(wants(await state(text(", sensitive: true"), more))).to.deep.equal(["s/a=s3cret"]);
  });

  it("O5: refuse an environment that is secret, or that kcore's own texts would read", async () => {
    const text = (environment: string): string =>
      `params: { t: { type: secret, default: "env:T" }, p: { type: integer, default: 80 } }\nsteps:\n  - { id: a, test.note: { text: t }, environment: { ${environment} } }\n`;
    const [drafted] = await state(text('A_1: "{{params.p}}", b: "{{node.vars.x}}:{{params.p}}", KUBECONFIG: /k'));
    expect(planOf(drafted?.render(nothing)).environment).to.deep.equal({ A_1: "80", b: "vx:80", KUBECONFIG: "/k" });
    expect((await problems(text('A: "{{params.t}}"'))).join()).to.contain("must not be secret");
    expect((await problems(text("LC_ALL: C"))).join()).to.contain("give LANG");
    for (const name of ["K_TMP", "k_key", "kt_probe", "kS_1", "IFS", "UID", "PPID", "A-B", "1A", '""', "A B"])
      expect((await problems(text(`${name}: x`))).length, name).to.equal(1);
  });

  it("refuse a risk where nothing could be taken back, and a time to confirm without one", async () => {
    const text = (module: string, keys: string): string => `steps:\n  - { id: a, ${module}, ${keys} }\n`;
    expect(await problems(text("test.note: { text: t }", "risk: connectivity"))).to.deep.equal([
      "states/s.yaml:2:14+9 this use of test.note cannot be taken back, so it cannot have a risk [RISK_INVALID] | what can: files, links, units, services, and commands and scripts with revert:",
    ]);
    expect(await problems(text("test.note: { text: t }", "confirm: 10s"))).to.deep.equal([
      "states/s.yaml:2:14+9 confirm is for a step with a risk [RISK_INVALID] | add risk: connectivity",
    ]);
  });

  it("refuse a file of the bastion for a step that runs as another user", async () => {
    const text = (runAs: string): string => `steps:\n  - { id: a, test.note: { file: f }${runAs} }\n`;
    expect(await problems(text(", runAs: nobody"), { f: "x" })).to.deep.equal([
      "states/s.yaml:2:14+9 this use of test.note needs a file from the bastion, which nobody could not read on the node [RUN_AS_FILES] | leave runAs out, and give the user as owner:",
    ]);
    expect((await state(text(""), { f: "x" })).length).to.equal(1);
  });

  it("of one node do not come from another's data (S-4)", async () =>
    expect(
      wants(await state('steps: [{ id: a, test.note: { text: "{{vars.x}}" } }]\n', {}, { on: "n2" })),
    ).to.deep.equal(["s/a={{params.a}}"]));
});
