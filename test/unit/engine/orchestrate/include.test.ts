import { join } from "node:path";
import { expect } from "chai";
import { loadOrchestration, type Orchestration } from "#engine/orchestrate/load-orchestration.ts";
import { problemsIn } from "#support/problems.ts";
import { inProject } from "#support/in-project.ts";

type Files = Readonly<Record<string, string>>;

/** Runs `work` in a project with these orchestrations; `load` reads the one named x. */
function withFiles<T>(files: Files, work: (load: () => Orchestration) => T): T {
  const texts = Object.entries(files).map(([name, text]) => [`orchestrate/${name}.yaml`, text] as const);
  return inProject(Object.fromEntries(texts), (project) => {
    const folder = { path: join(project, "orchestrate"), shown: "orchestrate", origin: "project" as const };
    return work(() => loadOrchestration("x", [folder]));
  });
}

const loaded = (files: Files): Orchestration => withFiles(files, (load) => load());
const problemsOf = (files: Files): string[] => withFiles(files, problemsIn);

const WEB = `params: { nodes: { type: target, required: true } }
waves: [{ on: "role:controller", batch: 1 }, { on: "*" }]
stages:
  - { id: web, on: "{{params.nodes}}", apply: [web] }
  - { id: check, run: check }
`;

const FLAT = WEB.replace(/^waves.*\n/m, "");

describe("an orchestration that includes others", () => {
  it("puts their stages in place of the include, nested ones too", () => {
    const { stages, params } = loaded({
      x: `stages:
  - { id: first, run: wait }
  - { include: middle }
  - { id: last, run: wait, when: "{{stages.check}}" }
`,
      middle: `stages: [{ include: inner/web, with: { nodes: n1 } }, { id: late, run: wait }]\n`,
      "inner/web": FLAT,
    });
    expect(stages.map(({ id, within }) => [id, ...within.map(({ include }) => include)].join(" in "))).to.deep.equal(
      "first, web in middle in inner/web, check in middle in inner/web, late in middle, last".split(", "),
    );
    expect([...params.keys()]).to.deep.equal([]);
  });

  it("takes the waves of an included one unless it has its own", () => {
    const target = "params: { all: { type: target } }\n";
    const include = "stages: [{ include: web, with: { nodes: '{{params.all}}' } }]\n";
    const inherited = loaded({ x: `${target}${include}`, web: WEB });
    expect(inherited.waves.map(({ at }) => at.file)).to.deep.equal(["orchestrate/web.yaml", "orchestrate/web.yaml"]);
    const own = loaded({ x: `${target}waves: [{ on: "*" }]\n${include}`, web: WEB });
    expect(own.waves.map(({ at }) => at.file)).to.deep.equal(["orchestrate/x.yaml"]);
    expect(problemsOf({ x: include, web: WEB })).to.deep.equal([
      "orchestrate/x.yaml:1:21+3 waves need exactly one parameter of type target, here are 0 [ORCHESTRATION_INVALID] | declare it: params: { node_name: { type: target, required: true } }",
    ]);
    const two = `${target}stages: [{ include: web, with: { nodes: a } }, { include: db, with: { nodes: b } }]\n`;
    const db = WEB.replace("id: web", "id: db").replace("id: check", "id: dbcheck");
    expect(problemsOf({ x: two, web: WEB, db })).to.deep.equal([
      'orchestrate/x.yaml:2:59+2 both “web” and “db” go in waves [ORCHESTRATION_INVALID] | say here how all of it goes: waves: [{ on: "role:controller", batch: 1 }, { on: "*" }]',
    ]);
  });

  it("reports a cycle at the include that closes it", () => {
    const including = (name: string): string => `stages: [{ include: ${name} }]\n`;
    expect(problemsOf({ x: including("y"), y: including("z"), z: including("y") })).to.deep.equal([
      "orchestrate/z.yaml:1:21+1 orchestrations include each other: y → z → y [STAGE_INCLUDE_CYCLE] | remove one include; stages that both need can stand in a third file",
    ]);
    expect(problemsOf({ x: including("x") })).to.have.length(1);
  });

  it("refuses a duplicate stage id, at the include or at a later stage", () => {
    const inner = "stages: [{ id: a, run: wait, onFailure: [{ id: b, run: wait }] }]\n";
    expect(
      problemsOf({
        x: "stages:\n  - { id: b, run: wait }\n  - { include: inner }\n  - { id: a, run: wait }\n",
        inner,
      }),
    ).to.deep.equal([
      "orchestrate/x.yaml:3:16+5 there are two stages “b” [STAGE_ID_DUPLICATE] | the first is in line 2; includes share their ids with the file",
      "orchestrate/x.yaml:4:11+1 there are two stages “a” [STAGE_ID_DUPLICATE] | the first is in line 3; rename one",
    ]);
    const [twice] = problemsOf({ x: "stages: [{ include: inner }, { include: inner }]\n", inner });
    expect(twice).to.contain("orchestrate/x.yaml:1:41+5 there are two stages “a”");
  });

  it("reports a wrong include at its place, together with problems of the included file", () =>
    expect(
      problemsOf({
        x: `stages:
  - { include: web, wiht: { nodes: "*" } }
  - { include: wbe }
  - { include: "{{params.x}}" }
  - { include: bad }
  - { id: a, run: wait, onFailure: [{ include: web }] }
`,
        web: WEB,
        bad: "stages: [{ id: b }]\n",
      }),
    ).to.deep.equal([
      'orchestrate/bad.yaml:1:10+9 a stage needs “apply” (states on nodes) or “run” (an action) [STAGE_INVALID] | such as { id: web, on: "role:web", apply: [web] } or { id: check, run: cluster.health }',
      "orchestrate/x.yaml:2:21+4 no key “wiht” is known here [YAML_KEY_UNKNOWN] | did you mean “with”?",
      "orchestrate/x.yaml:3:16+3 no orchestration “wbe” [ORCHESTRATION_NOT_FOUND] | did you mean “web”?",
      "orchestrate/x.yaml:4:16+14 “include” must name one orchestration, written out, such as deploy_node [YAML_TYPE]",
      "orchestrate/x.yaml:6:39+7 “include” does not belong to this stage [STAGE_INVALID] | it stands among the stages at the top of the file",
    ]));

  it("allows `when` to depend on earlier stages, and `with` on none", () => {
    const x = (when: string, given = "n1"): string =>
      `stages: [{ id: a, run: wait }, { include: web, when: "{{stages.${when}.x}}", with: { nodes: "${given}" } }]\n`;
    loaded({ x: x("a"), web: FLAT });
    expect(problemsOf({ x: x("web", "{{stages.a.x}}"), web: FLAT })).to.deep.equal([
      "orchestrate/x.yaml:1:54+18 the include of “web” rests on “stages.web”, which comes later [STAGE_INVALID] | only earlier stages have given something",
      "orchestrate/x.yaml:1:80+27 this must be known before the run starts, it cannot rest on “stages.a” [STAGE_INVALID] | use params, node, nodes or vars; “when” may rest on what stages gave",
    ]);
  });
});
