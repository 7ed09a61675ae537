import { expect } from "chai";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { defineModule } from "#engine/step/define.ts";
import { TextOrSecret } from "#engine/step/fields.ts";
import { sh } from "#engine/step/sh.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import type { LateScope, PlannedStep, RenderedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import { expandedSteps } from "#support/expanded-steps.ts";
import { problemsOfRejection } from "#support/problems.ts";

const note = defineModule({
  name: "test.note",
  summary: "Keeps nothing in order.",
  args: z.strictObject({
    text: TextOrSecret.optional(),
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
  summary: "Wants the id of the disks' owner.",
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

describe("problems of a state", () => {
  const wrong = "test.note: { tezt: y }";
  /** Steps, and the places of their problems, in states/s.yaml unless another file is named. */
  const broken: Readonly<Record<string, readonly [steps: string, places: string]>> = {
    "a condition, a key of the step, an argument and its template": [
      'steps:\n  - id: a\n    when: "{{nope}}"\n    timeout: long\n    test.note: { number: x, tezt: y }\n',
      "3:14 4:14 5:26 5:29",
    ],
    "a key of the step and a refusal of the module": [
      "steps:\n  - id: a\n    timeout: long\n    test.note: { fail: true }\n",
      "3:14 4:5",
    ],
    "a key of the step and late values beside it": [
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
    "an unknown module, its arguments and its condition": [
      'steps:\n  - id: a\n    when: "{{nope}}"\n    test.nota: { text: "{{params.x}}" }\n',
      "3:14 4:5 4:27",
    ],
    "the head of the file, a step without a module, and the arguments of another": [
      `descriptoin: x\nsteps:\n  - id: a\n  - id: b\n    ${wrong}\n`,
      "1:1 3:5 5:18",
    ],
    "a missing state, and a step beside its include": [
      `steps:\n  - include: gone\n  - id: b\n    ${wrong}\n`,
      "2:14 4:18",
    ],
    "an included state with a wrong key, its steps, and a step behind it": [
      `steps:\n  - include: t\n  - id: b\n    ${wrong}\n`,
      "4:18 states/t.yaml:1:1 states/t.yaml:4:18",
    ],
  };
  for (const [what, [text, places]] of Object.entries(broken))
    it(`are reported at once: ${what}`, async () => {
      const reported = await problems(text, {
        "templates/t": "{{params.one}}\n{{params.two}}\n",
        "templates/v": "{{x}} {{y}} {{y.z}}{{params.gone}}\n",
        "states/t.yaml": `stepz: []\nsteps:\n  - id: c\n    ${wrong}\n`,
      });
      expect(reported.map((line) => line.split("+")[0]?.replace("states/s.yaml:", "")).join(" ")).to.equal(places);
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

  it("uses the first former id, if any, for disks", async () => {
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

  it("repeats a step for each item, with the item in its id", async () => {
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

  it("makes ids unique, even if an item equals another item with its number", async () => {
    const list = await state(`steps:\n  - { id: one, each: [a, a, a 2], test.note: { text: "{{item}}" } }\n`);
    expect(wants(list)).to.deep.equal("s/one[a]=a, s/one[a 2 2]=a, s/one[a 2]=a 2".split(", "));
  });

  it("includes states with arguments, and a repeated one under another id", async () => {
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

  it("skips a step whose when is false, without evaluating its arguments", async () => {
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

  it("makes ids unique over several stages, and resolves steps of earlier stages", async () => {
    const usedIds = new Set<string>();
    const files = {
      "states/s.yaml": "steps: [{ id: a, test.note: { text: x } }]\n",
      "states/t.yaml": 'steps: [{ id: b, test.note: { text: "{{steps.k.stdout}}" }, require: [s/a] }]\n',
    };
    expect(ids(await drafts(files, { usedIds }))).to.deep.equal(["s/a"]);
    expect(ids(await drafts(files, { usedIds }))).to.deep.equal(["s#2/a"]);
    const [later] = await drafts(files, { usedIds, apply: [{ state: "t" }], registered: ["k"] });
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

  it("are listed as a draft's needs, also through parameters and templates", async () => {
    const needed = (await state(text, more)).map(({ id, needs }) =>
      `${id} ${needs.facts} ${needs.steps.join()}`.trim(),
    );
    expect(needed).to.deep.equal(
      "s/key false, s/a false key, s/b true, inner/i false key, s/t true, s/c false".split(", "),
    );
  });

  it("are never evaluated (S-4)", async () => {
    const list = await state(text, more);
    const late = key("{{params.p}} $(id)");
    expect(
      list
        .map((draft) => draft.render(late))
        .map((step) => (step.kind === "step" ? step.plan.step.want["text"] : step.kind)),
    ).to.deep.equal(["k", "{{params.p}} $(id)", "b", "<{{params.p}} $(id)!>", "debian", "c"]);
  });

  it("make a step unknown in a dry run, after the step that would register them", async () => {
    const list = await state(text, more);
    const dry: LateScope = { facts: { os: "alpine" }, steps: new Map([["key", undefined]]) };
    expect(list[1]?.render(dry)).to.deep.equal({ kind: "unknown", id: "s/a", title: "a", after: "s/key" });
    expect(list[2]?.render(dry).kind).to.equal("skipped");
    expect(list[3]?.render(dry).kind).to.equal("unknown");
  });

  it("of an action's output, passed as parameters, need nothing of the node", async () => {
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
});

describe("values of a node's steps", () => {
  it("refuse a secret in a template unless the step is sensitive (S-7)", async () => {
    const text = (sensitive: string): string =>
      `params: { t: { type: secret, default: "env:T" } }\nsteps:\n  - { id: a, test.note: { template: t.hbs }${sensitive} }\n`;
    const more = { "templates/t.hbs": "{{params.t}}" };
    expect(await problems(text(""), more)).to.deep.equal([
      "states/s.yaml:3:37+5 the template “t.hbs” puts a secret into its text [EXPRESSION_TYPE] | give the step sensitive: true, so that the text is never shown",
    ]);
    expect(wants(await state(text(", sensitive: true"), more))).to.deep.equal(["s/a=s3cret"]);
  });

  it("refuse an environment with a secret, or with a name that kcore's sh uses", async () => {
    const text = (environment: string): string =>
      `params: { t: { type: secret, default: "env:T" }, p: { type: integer, default: 80 } }\nsteps:\n  - { id: a, test.note: { text: t }, environment: { ${environment} } }\n`;
    const [drafted] = await state(text('A_1: "{{params.p}}", b: "{{node.vars.x}}:{{params.p}}", KUBECONFIG: /k'));
    expect(planOf(drafted?.render(nothing)).environment).to.deep.equal({ A_1: "80", b: "vx:80", KUBECONFIG: "/k" });
    expect((await problems(text('A: "{{params.t}}"'))).join()).to.contain("must not be secret");
    expect((await problems(text("LC_ALL: C"))).join()).to.contain("give LANG");
    for (const name of ["K_TMP", "k_key", "kt_probe", "kS_1", "IFS", "UID", "PPID", "A-B", "1A", '""', "A B"])
      expect((await problems(text(`${name}: x`))).length, name).to.equal(1);
  });

  it("are never evaluated if they come from the roster's variables (S-4)", async () =>
    expect(
      wants(await state('steps: [{ id: a, test.note: { text: "{{vars.x}}" } }]\n', {}, { on: "n2" })),
    ).to.deep.equal(["s/a={{params.a}}"]));
});
