import { expect } from "chai";
import { type Orchestration, readOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { problemsIn } from "#support/problems.ts";

const FILE = "orchestrate/x.yaml";

function read(text: string): Orchestration {
  return readOrchestration("x", FILE, parseSource(FILE, text), (name) => {
    throw new Error(`no test includes ${name}`);
  });
}

const problemsOf = (text: string): string[] => problemsIn(() => read(text));

describe("readOrchestration", () => {
  it("reads stages of states and of actions, with their arguments", () => {
    const { description, target, stages } = read(`
description: Deploys
params:
  node_name: { type: target, required: true }
stages:
  - { id: health, run: cluster.health, afterEach: true }
  - { id: disks, title: Disks, on: "{{params.node_name}}", apply: disks, with: { mode: ext4 } }
  - { id: issue, run: pki.issueNode, each: "{{params.node_name}}", days: 90, register: cert }
`);
    expect([description, target?.name]).to.deep.equal(["Deploys", "node_name"]);
    expect(stages.map(({ id, title, register }) => [id, title, register])).to.deep.equal([
      ["health", "health", "health"],
      ["disks", "Disks", "disks"],
      ["issue", "issue", "cert"],
    ]);
    const [health, disks, issue] = stages;
    expect(health).to.include({ afterEach: true });
    expect(disks?.work).to.have.nested.property("states[0].name", "disks");
    expect(issue?.work.kind === "run" && [...issue.work.args.entries.keys()]).to.deep.equal(["days"]);
  });

  it("reports all mistakes of the file at their places, with hints", () =>
    expect(
      problemsOf(`
stages:
  - { id: a, on: "*", aply: [x] }
  - { id: a, on: "*", apply: [x], concurency: 2 }
  - { id: b, apply: [x] }
  - { id: b, run: wait, on: "*" }
  - { id: "1 b", run: wait }
  - oops
`),
    ).to.deep.equal([
      "orchestrate/x.yaml:3:23+4 a stage needs “apply” (states on nodes) or “run” (an action) [STAGE_INVALID] | did you mean “apply”?",
      "orchestrate/x.yaml:4:35+10 no key “concurency” is known here [YAML_KEY_UNKNOWN] | did you mean “concurrency”?",
      'orchestrate/x.yaml:5:5+21 stage “b” does not say on which nodes [STAGE_INVALID] | add on: "role:worker"',
      "orchestrate/x.yaml:6:11+1 there are two stages “b” [STAGE_ID_DUPLICATE] | the first is in line 5; rename one",
      "orchestrate/x.yaml:6:25+2 “on” does not belong to this stage [STAGE_INVALID] | an action takes “each” for one call a node",
      "orchestrate/x.yaml:7:11+5 “id” must be letters, digits, - and _, a letter first [YAML_TYPE]",
      'orchestrate/x.yaml:8:5+4 a stage must be a map [YAML_TYPE] | such as { id: web, on: "role:web", apply: [web] } or { id: check, run: cluster.health }',
    ]));

  it("refuses to depend on a later or unknown stage, and a target that depends on a stage", () =>
    expect(
      problemsOf(`
stages:
  - { id: use, on: "*", apply: [x], with: { c: "{{stages.issue.cert}}" } }
  - { id: issue, run: pki.issueNode, each: "*" }
  - { id: after, on: "*", apply: [x], with: { c: "{{stages.isue.cert}}" } }
  - { id: where, on: "{{stages.issue.nodes}}", apply: [x] }
`),
    ).to.deep.equal([
      "orchestrate/x.yaml:3:43+30 stage “use” rests on “stages.issue”, which comes later [STAGE_INVALID] | only earlier stages have given something",
      "orchestrate/x.yaml:5:45+29 stage “after” rests on “stages.isue”, which there is not [STAGE_INVALID] | did you mean “issue”?",
      "orchestrate/x.yaml:6:22+24 this must be known before the run starts, it cannot rest on “stages.issue” [STAGE_INVALID] | use params, node, nodes or vars; “when” may rest on what stages gave",
    ]));

  it("refuses @ in stage ids of an orchestration with waves", () => {
    const stages = `stages: [{ id: "a@2", on: "*", apply: [x], onFailure: [{ id: "b@2", apply: [x] }] }]\n`;
    const waves = `params: { nodes: { type: target, required: true } }\nwaves: [{ on: "*" }]\n`;
    expect(problemsOf(`${waves}${stages}`).map((text) => text.replace(/^\S+ /, ""))).to.deep.equal(
      ["a@2", "b@2"].map(
        (id) => `stage “${id}”: waves number the ids of their stages themselves [STAGE_INVALID] | leave out the @`,
      ),
    );
  });

  it("binds onFailure stages to the failed node, without a target of their own", () => {
    const text = (inner: string): string =>
      `stages:\n  - id: a\n    on: "*"\n    apply: [x]\n    onFailure:\n      - ${inner}\n`;
    expect(read(text("{ id: clean, apply: [clean] }")).stages[0]?.onFailure[0]?.id).to.equal("clean");
    expect(problemsOf(text('{ id: clean, apply: [clean], on: "*" }'))).to.deep.equal([
      "orchestrate/x.yaml:6:38+2 “on” does not belong to this stage [STAGE_INVALID] | here it concerns the node whose stage failed",
    ]);
    expect(problemsOf(text("{ id: a, run: wait }"))[0]).to.contain("[STAGE_ID_DUPLICATE]");
  });

  it("refuses a file without stages, or that is no map", () => {
    expect(problemsOf("stage: []\n")).to.deep.equal([
      "orchestrate/x.yaml:1:1+9 “stages” is missing [YAML_KEY_MISSING]",
      "orchestrate/x.yaml:1:1+5 no key “stage” is known here [YAML_KEY_UNKNOWN] | did you mean “stages”?",
    ]);
    expect(problemsOf("stages: []\n")[0]).to.contain("“stages” must not be empty");
    expect(problemsOf("- a\n")[0]).to.contain("must be a map");
  });
});
