import { expect } from "chai";
import { z } from "zod";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Action } from "#engine/orchestrate/action.ts";
import { actionNames, findAction } from "#actions/registry.ts";
import { executeRun } from "#engine/orchestrate/execute-run.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/execute.ts";
import { formatProblem, KcoreError } from "#errors/problem.ts";
import { testAction } from "#support/actions.ts";
import { fakeNodes, type FakeNodes, type Lesson } from "#support/fake-session.ts";
import { makeProject } from "#support/project.ts";
import { runDependencies, runRequest } from "#support/runs.ts";

const ROSTER = `nodes:
  w1: { address: 192.0.2.1, roles: [worker] }
  c1: { address: 192.0.2.2, roles: [controller] }
  w2: { address: 192.0.2.3, roles: [worker] }
  c2: { address: 192.0.2.4, roles: [controller] }
`;
const WEB = `params: { port: { type: integer, default: 80 } }
steps:
  - { id: config, file.managed: { path: /etc/web, content: "{{params.port}} {{node.name}}\\n" } }
`;
const KEY = `steps:
  - { id: make, command.run: { cmd: make-key }, creates: /key, register: spki }
`;
const CERTS = `params: { cert: { type: string, required: true } }
steps:
  - { id: cert, file.managed: { path: /cert, content: "{{params.cert}}" } }
  - { id: folder, directory.managed: { path: /certs } }
`;

interface Given {
  readonly files: Readonly<Record<string, string>>;
  readonly request?: Partial<RunRequest>;
  readonly actions?: readonly Action[];
  readonly lessons?: Readonly<Record<string, Lesson>>;
  readonly deps?: Partial<RunDependencies>;
}

interface Ran {
  readonly exitCode: number;
  readonly events: RunEventBody[];
  readonly nodes: FakeNodes;
}

async function execute({ files, request, actions = [], lessons = {}, deps }: Given): Promise<Ran> {
  const project = await makeProject({ "roster/r.yaml": ROSTER, ...files });
  try {
    const events: RunEventBody[] = [];
    const nodes = fakeNodes(lessons);
    const { exitCode } = await executeRun(
      runRequest(request),
      runDependencies(nodes, events, {
        project: project.path,
        actions: (name) => Promise.resolve(actions.find((action) => action.name === name)),
        actionNames: actions.map(({ name }) => name),
        ...deps,
      }),
    );
    return { exitCode, events, nodes };
  } finally {
    await project.remove();
  }
}

/** What the input was refused with: one line for each problem, with its hint. */
async function problemsOf(given: Given): Promise<string[]> {
  const error: unknown = await execute(given).catch((thrown: unknown) => thrown);
  if (!(error instanceof KcoreError)) throw new Error("it was accepted", { cause: error });
  return error.problems.map((problem) => `${formatProblem(problem)}${problem.hint ? `  ${problem.hint}` : ""}`);
}

function outline(events: readonly RunEventBody[]): string[] {
  const [started] = events;
  if (started?.type !== "run.started") throw new Error("the run did not start");
  return started.stages.map(({ id, title, nodes }) => `${id} | ${title} | ${nodes.join(" ")}`);
}

const healthy = testAction(
  "cluster.health",
  () => ({ changed: false, outputs: {} }),
  () => ({ changed: false, outputs: {} }),
  z.strictObject({}),
);

const DEPLOY = `description: Deploys nodes
params:
  node_name: { type: target, required: true }
waves:
  - { on: "role:controller", batch: 1 }
  - { on: "*" }
stages:
  - { id: health, run: cluster.health, afterEach: true }
  - { id: web, on: "{{params.node_name}}", apply: [web] }
`;

describe("executing a run", () => {
  it("tells when it begins how many steps each node has in each stage, and where that is not known yet", async () => {
    const action = testAction("x.list", () => ({ changed: false, outputs: { names: ["a", "b"], is: true } }));
    const { events } = await execute({
      files: {
        "states/certs.yaml": CERTS,
        "states/many.yaml": `params: { names: { type: list, required: true } }
steps:
  - { id: first, command.run: { cmd: "true" } }
  - { id: each, each: "{{params.names}}", command.run: { cmd: "echo {{item}}" } }
`,
        "states/mine.yaml": `steps:
  - { id: mine, each: "{{node.roles}}", command.run: { cmd: "true" } }
  - { id: left, when: "{{eq node.name 'w1'}}", command.run: { cmd: "true" } }
`,
        "orchestrate/test.yaml": `params: { on: { type: target, required: true } }
stages:
  - { id: list, run: x.list }
  - { id: mine, on: "{{params.on}}", apply: [mine] }
  - { id: certs, on: "{{params.on}}", apply: [certs], with: { cert: "{{stages.list.is}}" } }
  - { id: many, on: "{{params.on}}", apply: [many], with: { names: "{{stages.list.names}}" } }
  - { id: maybe, on: "{{params.on}}", apply: [certs], when: "{{stages.list.is}}", with: { cert: x } }
  - { id: never, on: "{{params.on}}", apply: [certs], when: "{{eq 1 2}}", with: { cert: x } }
  - { id: issue, run: x.list, each: "{{params.on}}" }
`,
        "roster/r.yaml": `nodes:
  w1: { address: 192.0.2.1, roles: [worker] }
  w2: { address: 192.0.2.3, roles: [worker, web] }
`,
      },
      request: { what: { kind: "orchestration", name: "test" }, on: "w1,w2", dryRun: true },
      actions: [action],
      lessons: Object.fromEntries(
        ["mine/mine[worker]", "mine/mine[web]", "mine/left", "certs/cert", "certs/folder"].map((id) => [id, {}]),
      ),
    });
    const [begun] = events;
    if (begun?.type !== "run.started") throw new Error("the run did not start");
    const planned = begun.stages.map(({ id, planned: count, open }) => [id, count, open ?? false]);
    expect(planned).to.deep.equal([
      ["list", 1, false],
      ["mine", [2, 3], false],
      ["certs", 2, false],
      ["many", 1, true],
      ["maybe", 0, true],
      ["never", 0, false],
      ["issue", 1, false],
    ]);
  });

  it("takes a target by --on, by the command line and by --set alike, in the roster's order", async () => {
    const files = { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB };
    const given = { files, actions: [healthy], lessons: { "web/config": {} } };
    const byOn = await execute({ ...given, request: { on: "w2,w1" } });
    const bySet = await execute({ ...given, request: { params: { node_name: "w2,w1" } } });
    const byRole = await execute({ ...given, request: { on: "role:worker" } });
    expect(byOn.exitCode).to.equal(0);
    expect(outline(byOn.events)).to.deep.equal([
      "health | health | ",
      "web | web | w1 w2",
      "health@2 | health (again) | ",
    ]);
    expect(bySet.events).to.deep.equal(byOn.events);
    expect(byRole.events).to.deep.equal(byOn.events);
  });

  it("S-14: gives keys a challenge that nobody can know before the run, the same in states, actions and when it is resumed", async () => {
    const told: unknown[] = [];
    const signs = testAction("pki.signs", ({ challenge }, args) => {
      told.push([challenge, args]);
      return { changed: false, outputs: {} };
    });
    const files = {
      "orchestrate/test.yaml":
        'description: Signs\nstages:\n  - { id: a, run: pki.signs, text: "{{run.challenge}}" }\n',
    };
    for (const nonce of ["a", "a", "b"]) await execute({ files, actions: [signs], deps: { nonce: nonce.repeat(32) } });
    const [first, again, other] = told as [string, { text: string }][];
    expect(first?.[0]).to.match(/^[\w-]{43}$/);
    expect(first?.[1].text).to.equal(first?.[0]);
    expect(again).to.deep.equal(first);
    expect(other?.[0]).not.to.equal(first?.[0]);
  });

  it("takes controllers one at a time, then workers together, with health between", async () => {
    const files = { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB };
    const { events, nodes } = await execute({
      files,
      actions: [healthy],
      lessons: { "web/config": {} },
      request: { on: "*" },
    });
    expect(outline(events)).to.deep.equal([
      "health | health | ",
      "web | web (1 of 3: c1) | c1",
      "health@2 | health (again, 1 of 3: c1) | ",
      "web@2 | web (2 of 3: c2) | c2",
      "health@3 | health (again, 2 of 3: c2) | ",
      "web@3 | web (3 of 3: w1, w2) | w1 w2",
      "health@4 | health (again, 3 of 3: w1, w2) | ",
    ]);
    expect(nodes.log.filter((line) => line.includes("finish"))[0]).to.equal("c1 finish done");
    expect(nodes.log.indexOf("c1 finish done")).to.be.lessThan(nodes.log.indexOf("c2 connect"));
  });

  it("takes included stages with the arguments of the include, in the waves that come with them", async () => {
    const files = {
      "orchestrate/test.yaml": `params: { all: { type: target, default: "*" }, web: { type: boolean, default: true } }
stages:
  - { id: first, run: first, once: true }
  - { include: inner, with: { node_name: "{{params.all}}", port: "{{add 80 1}}" }, when: "{{params.web}}" }
`,
      "orchestrate/inner.yaml": DEPLOY.replace(
        "required: true }",
        "required: true }\n  port: { type: integer }",
      ).replace("apply: [web]", 'apply: [web], with: { port: "{{params.port}}" }'),
      "states/web.yaml": WEB,
    };
    const given = {
      files,
      actions: [healthy, testAction("first", () => ({ changed: false, outputs: {} }))],
      lessons: { "web/config": {} },
    };
    const { events, exitCode, nodes } = await execute(given);
    expect(exitCode).to.equal(0);
    expect(outline(events)).to.deep.equal([
      "first | first | ",
      "health | health | ",
      "web | web (1 of 3: c1) | c1",
      "health@2 | health (again, 1 of 3: c1) | ",
      "web@2 | web (2 of 3: c2) | c2",
      "health@3 | health (again, 2 of 3: c2) | ",
      "web@3 | web (3 of 3: w1, w2) | w1 w2",
      "health@4 | health (again, 3 of 3: w1, w2) | ",
    ]);
    expect(nodes.log.filter((line) => line.includes(" step "))).to.have.length(4);
    const without = await execute({ ...given, request: { params: { web: false } } });
    expect(without.exitCode).to.equal(0);
    expect(without.nodes.log.filter((line) => line.includes(" step "))).to.deep.equal([]);
  });

  it("tells wrong arguments of an include where they stand, and a target of it that matches nobody", async () => {
    const problems = (given: string): Promise<string[]> =>
      problemsOf({
        files: {
          "orchestrate/test.yaml": `stages: [{ include: inner, with: ${given} }]\n`,
          "orchestrate/inner.yaml": `params: { nodes: { type: target, required: true }, n: { type: integer } }
stages: [{ id: web, on: "{{params.nodes}}", apply: [web] }]
`,
          "states/web.yaml": WEB,
        },
      });
    expect(await problems("{ nods: w1, n: x }")).to.deep.equal([
      "orchestrate/test.yaml:1:34  the orchestration “inner” needs the parameter “nodes”  [PARAM_MISSING]  give it, nodes, target",
      "orchestrate/test.yaml:1:42  the orchestration “inner” has no parameter “nods”  [PARAM_UNKNOWN]  did you mean “nodes”?",
      "orchestrate/test.yaml:1:49  the parameter “n” must be a whole number, not a text  [PARAM_INVALID]",
    ]);
    expect(await problems("{ nodes: 'role:storage' }")).to.deep.equal([
      "orchestrate/test.yaml:1:43  no node matches “role:storage”  [TARGET_EMPTY]  the roster holds w1 (worker), c1 (controller), w2 (worker), c2 (controller)",
    ]);
  });

  it("leaves out included stages whose target has no node in a wave", async () => {
    const { events } = await execute({
      files: {
        "orchestrate/test.yaml": `params: { all: { type: target, default: "*" } }
waves: [{ on: "role:controller" }, { on: "*" }]
stages: [{ include: inner, with: { nodes: "({{params.all}}) and role:worker" } }]
`,
        "orchestrate/inner.yaml": `params: { nodes: { type: target, required: true } }
stages: [{ id: web, on: "{{params.nodes}}", apply: [web] }]
`,
        "states/web.yaml": WEB,
      },
      lessons: { "web/config": {} },
    });
    expect(outline(events)).to.deep.equal(["web | web (2 of 2: w1, w2) | w1 w2"]);
  });

  it("stops between waves when health fails", async () => {
    let calls = 0;
    const sick = testAction("cluster.health", () => {
      if (++calls === 2) throw new KcoreError({ code: "CLUSTER_UNHEALTHY", message: "c1 does not replicate" });
      return { changed: false, outputs: {} };
    });
    const { exitCode, nodes } = await execute({
      files: { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB },
      actions: [sick],
      lessons: { "web/config": {} },
      request: { on: "role:controller" },
    });
    expect([exitCode, nodes.options.has("c2")]).to.deep.equal([1, false]);
  });

  it("records that health checks were left out", async () => {
    const { events } = await execute({
      files: { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB },
      actions: [testAction("cluster.health", () => expect.fail("called"))],
      lessons: { "web/config": {} },
      request: { on: "w1", skipHealth: true },
    });
    expect(events).to.deep.include({ type: "warning", text: "health checks are left out (--skip-health)" });
    expect(
      events.filter((event) => event.type === "stage.finished" && event.reason === "--skip-health"),
    ).to.have.length(2);
  });

  it("gives what a health check that was left out leaves to later stages", async () => {
    const files = {
      "orchestrate/test.yaml": `params: { nodes: { type: target } }
stages:
  - { id: health, run: cluster.health }
  - { id: web, on: "{{params.nodes}}", apply: [web], when: "{{eq (length stages.health.controllers) 0}}" }
`,
      "states/web.yaml": WEB,
    };
    const run = (leftOut?: { controllers: string[] }) =>
      execute({
        files,
        actions: [{ ...testAction("cluster.health", () => expect.fail("called")), ...(leftOut && { leftOut }) }],
        lessons: { "web/config": {} },
        request: { on: "w1", skipHealth: true },
      });
    expect((await run({ controllers: [] })).exitCode).to.equal(0);
    expect((await run()).exitCode).to.equal(1);
  });

  it("S-25: no target is an error that lists the roster's nodes, never all", async () => {
    const files = { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB };
    const [problem] = await problemsOf({ files, actions: [healthy] });
    expect(problem).to.contain("[TARGET_MISSING]");
    const error = (await execute({ files, actions: [healthy] }).catch((thrown: unknown) => thrown)) as KcoreError;
    expect(error.problems[0]?.detail).to.equal(
      "the roster's nodes: w1 (worker), c1 (controller), w2 (worker), c2 (controller)",
    );
    expect(await problemsOf({ files, actions: [healthy], request: { on: "role:storage" } })).to.have.length(1);
  });

  it("refuses a target named twice", async () => {
    const files = { "orchestrate/test.yaml": DEPLOY, "states/web.yaml": WEB };
    const [problem] = await problemsOf({
      files,
      actions: [healthy],
      request: { on: "w1", params: { node_name: "w2" } },
    });
    expect(problem).to.contain("the nodes are named twice");
  });

  it("collects what is wrong with stages, states and parameters of every node, and connects to none", async () => {
    const nodes = fakeNodes({});
    const problems = await problemsOf({
      files: {
        "orchestrate/test.yaml": `stages:
  - { id: a, on: "role:worker", apply: [web], with: { prt: 1 } }
  - { id: b, on: "role:worker", apply: [wbe] }
  - { id: c, run: wiat, for: 1s }
  - { id: d, run: wait, fro: 1s }
  - { id: e, on: "w9", apply: [web] }
  - { id: f, on: "*", apply: [bad] }
`,
        "states/web.yaml": WEB,
        "states/bad.yaml": `steps:\n  - { id: x, file.managed: { path: /x, content: "{{node.nme}}" } }\n`,
      },
      actions: [
        testAction(
          "wait",
          () => expect.fail("called"),
          () => "unknown",
          z.strictObject({ for: z.string() }),
        ),
      ],
      deps: { openSession: nodes.open },
    });
    expect(problems.map((line) => line.replace(/ {2}\S.*\[/, "  … ["))).to.deep.equal([
      "orchestrate/test.yaml:2:55  … [PARAM_UNKNOWN]  did you mean “port”?",
      "orchestrate/test.yaml:3:41  … [STATE_NOT_FOUND]  did you mean “web”?",
      "orchestrate/test.yaml:4:19  … [ACTION_UNKNOWN]  did you mean “wait”?",
      "orchestrate/test.yaml:5:5  … [YAML_KEY_MISSING]",
      "orchestrate/test.yaml:5:25  … [YAML_KEY_UNKNOWN]  did you mean “for”?",
      "orchestrate/test.yaml:6:19  … [TARGET_UNKNOWN]  did you mean “w1”?",
      "states/bad.yaml:2:52  … [EXPRESSION_UNDEFINED]  did you mean “name”?",
    ]);
    expect(nodes.log).to.deep.equal([]);
  });

  it("renders every node before the first connection: a problem of the last one stops all", async () => {
    const problems = await problemsOf({
      files: {
        "orchestrate/test.yaml": `stages:\n  - { id: a, on: "*", apply: [bad] }\n`,
        "states/bad.yaml": `steps:\n  - { id: x, file.managed: { path: "/{{node.labels.rack}}", content: a } }\n`,
        "roster/r.yaml": ROSTER.replace(/roles: /g, "labels: { rack: r1 }, roles: ").replace(
          "c2: { address: 192.0.2.4, labels: { rack: r1 }",
          "c2: { address: 192.0.2.4",
        ),
      },
    });
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain("states/bad.yaml:2:").and.contain("[EXPRESSION_UNDEFINED]");
  });

  const ISSUE = `stages:
  - { id: identity, on: "role:worker", apply: [key] }
  - { id: issue, run: issue, each: "role:worker", spki: "{{stages.identity.spki.stdout}}" }
  - { id: certs, on: "role:worker", apply: [certs], with: { cert: "{{stages.issue.cert}}" } }
`;
  const issuing = { "orchestrate/test.yaml": ISSUE, "states/key.yaml": KEY, "states/certs.yaml": CERTS };

  it("hands a registered value to an action and its output to the next stage, per node", async () => {
    const got: unknown[] = [];
    const issue = testAction("issue", ({ node }, args) => {
      got.push([node?.name, (args as { spki: string }).spki]);
      return { changed: true, outputs: { cert: `cert of ${node?.name}` } };
    });
    const { exitCode, nodes } = await execute({
      files: issuing,
      actions: [issue],
      lessons: {
        "w1 key/make": { registered: { stdout: "AAA" } },
        "w2 key/make": { registered: { stdout: "BBB" } },
        "certs/cert": {},
        "certs/folder": {},
      },
    });
    expect(exitCode).to.equal(0);
    expect(got).to.have.deep.members([
      ["w1", "AAA"],
      ["w2", "BBB"],
    ]);
    expect(nodes.log.filter((line) => line.startsWith("w1 perform"))).to.deep.equal([
      "w1 perform [identity]",
      "w1 perform [certs]",
    ]);
  });

  it("sends states around a stage in one piece, if that stage's condition is false before they ran (ADR 0004)", async () => {
    const asked: unknown[] = [];
    const check = testAction("check", ({ node }) => (asked.push(node?.name), { changed: false, outputs: {} }));
    const orchestration = `stages:
  - { id: identity, on: "w1,w2", apply: [key] }
  - { id: taken, run: check, each: "w1,w2", when: "{{and (eq node.name 'w1') (eq stages.identity.spki.stdout 'AAA')}}" }
  - { id: late, on: "w1,w2", when: "{{and (eq node.name 'w1') (eq stages.identity.spki.stdout 'AAA')}}", apply: [web] }
  - { id: certs, on: "w1,w2", apply: [certs], with: { cert: one } }
`;
    const { exitCode, nodes } = await execute({
      files: { ...issuing, "orchestrate/test.yaml": orchestration, "states/web.yaml": WEB },
      actions: [check],
      lessons: {
        "key/make": { registered: { stdout: "AAA" } },
        "web/config": {},
        "certs/cert": {},
        "certs/folder": {},
      },
    });
    expect([exitCode, asked]).to.deep.equal([0, ["w1"]]);
    expect(nodes.log.filter((line) => line.includes(" perform "))).to.have.members([
      "w1 perform [identity]",
      "w1 perform [late+certs]",
      "w2 perform [identity+certs]",
    ]);
  });

  it("O16: what stages gave by node comes in the roster's order, whoever ended first", async () => {
    for (const first of ["w1", "w2", "c2"]) {
      const begun = Promise.withResolvers<void>();
      const order: unknown[] = [];
      const look = testAction("look", (_, args) => {
        order.push((args as { all: object }).all);
        return { changed: false, outputs: {} };
      });
      const lesson = (name: string) => ({
        registered: { stdout: name },
        ...(name === first ? { begins: begun.resolve } : { after: begun.promise }),
      });
      const { exitCode } = await execute({
        files: {
          ...issuing,
          "orchestrate/test.yaml": `stages:
  - { id: identity, on: "*", apply: [key] }
  - { id: look, run: look, all: "{{json stages.identity}}" }
`,
        },
        actions: [look],
        lessons: Object.fromEntries(["w1", "c1", "w2", "c2"].map((name) => [`${name} key/make`, lesson(name)])),
      });
      expect(exitCode).to.equal(0);
      expect(Object.keys(JSON.parse(String(order[0])) as object), `${first} first`).to.deep.equal([
        "w1",
        "c1",
        "w2",
        "c2",
      ]);
    }
  });

  const handOver = (stages: string, lessons: Readonly<Record<string, Lesson>> = {}) => ({
    files: { ...issuing, "orchestrate/test.yaml": `stages:\n${stages}` },
    lessons: {
      "w1 key/make": { registered: { stdout: "AAA" } },
      "w2 key/make": { registered: { stdout: "BBB" } },
      "certs/cert": {},
      "certs/folder": {},
      ...lessons,
    },
  });

  it("O16: one node's result comes to another one's stage, when all that node's work before it is done", async () => {
    const slow = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    const see = testAction("see", ({ node }, args) => {
      seen.push([node?.name, args]);
      return { changed: false, outputs: {} };
    });
    const given = handOver(
      `  - { id: first, on: "role:worker", apply: [key] }
  - { id: second, on: "role:worker", apply: [certs], with: { cert: "{{stages.first.w1.spki.stdout}}" } }
  - { id: third, on: "role:controller", apply: [certs], when: "{{eq stages.first.w2.spki.stdout 'BBB'}}", with: { cert: "{{stages.first.w1.spki.stdout}}" } }
  - { id: see, run: see, each: "*", theirs: "{{stages.first.w2.spki.stdout}}" }
  - { id: mixed, run: see, each: "role:worker", theirs: "{{stages.first.w2.spki.stdout}}", own: "{{stages.first.spki.stdout}}" }
`,
      {
        "w1 key/make": { registered: { stdout: "AAA" }, after: slow.promise },
        "w2 key/make": { registered: { stdout: "BBB" }, begins: () => setImmediate(slow.resolve) },
      },
    );
    const ran = await execute({ ...given, actions: [see] });
    expect(ran.exitCode, JSON.stringify(ran.events.at(-1))).to.equal(0);
    const { log } = ran.nodes;
    expect(log.indexOf("w2 perform [second]")).to.be.greaterThan(log.indexOf("w1 step key/make"));
    expect(log).to.include("c1 perform [third]");
    expect(seen).to.deep.include.members([
      ["c2", { theirs: "BBB" }],
      ["w1", { theirs: "BBB" }],
      ["w1", { theirs: "BBB", own: "AAA" }],
      ["w2", { theirs: "BBB", own: "BBB" }],
    ]);
  });

  it("O16: says whose result is missing where another node has none", async () => {
    const { exitCode, events } = await execute(
      handOver(`  - { id: first, on: w1, apply: [key] }
  - { id: second, on: w2, apply: [certs], with: { cert: "{{stages.first.c1.spki.stdout}}" } }
`),
    );
    expect(exitCode).to.equal(1);
    const [problem] = events.flatMap((event) => (event.type === "node.finished" && event.problem) || []);
    expect(problem).to.include({
      code: "STAGE_OUTPUT_UNKNOWN",
      hint: "“c1” has no such stage, or did not come through it",
    });
  });

  it("S2: what a node told names no file, program or host for the bastion", async () => {
    for (const [action, arg] of [
      ["local.file", 'path: "kept/{{VALUE}}", content: x'],
      ["local.command", 'command: ["{{VALUE}}", x]'],
      ["local.command", 'command: ["true"], cwd: "{{VALUE}}"'],
      ["local.command", 'command: ["true"], creates: "{{#if true}}{{VALUE}}{{/if}}"'],
      ["kubernetes.node", 'name: n1, kubeconfig: "{{VALUE}}"'],
      ["kubernetes.object", 'kubeconfig: a, file: "{{VALUE}}"'],
      ["kubernetes.kubeconfig", 'file: a, server: "https://{{VALUE}}:6443"'],
      ["kubernetes.takeKubeconfig", 'content: x, server: "https://192.0.2.1", file: "{{VALUE}}"'],
      ["system.image", 'mirror: "http://{{VALUE}}/"'],
      ["store.export", 'path: "{{VALUE}}"'],
      ["wait", 'tcp: "{{VALUE}}:22"'],
    ] as const)
      for (const [value, each] of [
        ["stages.identity.spki.stdout", 'each: "role:worker", '],
        ["stages.identity.w1.spki.stdout", ""],
        ["lookup (lookup stages 'identity') 'w1'", ""],
      ]) {
        const use = arg.replace("VALUE", value as string);
        const problems = await problemsOf({
          files: {
            ...issuing,
            "orchestrate/test.yaml": `stages:
  - { id: identity, on: "role:worker", apply: [key] }
  - { id: use, ${each}run: ${action}, ${use} }
`,
          },
          deps: { actions: findAction, actionNames },
        });
        expect(problems[0], use).to.match(
          /^orchestrate\/test\.yaml:3:\d+ {2}“[\w.]+” names a file, a program or a host for the bastion: it cannot rest on what a node told/,
        );
      }
  });

  it("S2: what a node told names no file of the bastion by a state's parameter either", async () => {
    const given = {
      ...handOver(`  - { id: first, on: w1, apply: [key] }
  - { id: second, on: w2, apply: [copy], with: { file: "{{stages.first.w1.spki.stdout}}", plain: "files/{{stages.first.w1.spki.stdout}}", all: ["{{stages.first.w1.spki.stdout}}"] } }
`),
    };
    const states = (source: string, each = "") => ({
      "states/copy.yaml": `params: { file: { type: string }, plain: { type: string }, all: { type: list } }
steps:
  - { id: copy${each}, file.managed: { path: /x, source: "{{${source}}}" } }
`,
      "files/AAA": "of the project",
    });
    for (const files of [states("params.file"), states("item", ', each: "{{params.all}}"')]) {
      const refused = await execute({ ...given, files: { ...given.files, ...files } });
      expect(refused.exitCode).to.equal(1);
      expect(JSON.stringify(refused.events)).to.include("a node's answer must not name a file of the bastion");
    }
    const lessons = { ...given.lessons, "copy/copy": {} };
    const taken = await execute({ ...given, lessons, files: { ...given.files, ...states("params.plain") } });
    expect(taken.exitCode).to.equal(0);
  });

  it("a dry run of the whole says what is unknown, and after what; nothing runs", async () => {
    const issue = testAction("issue", () => expect.fail("run in a dry run"));
    const { exitCode, events } = await execute({
      files: issuing,
      actions: [issue],
      lessons: { "key/make": { outcome: "changed" }, "certs/folder": { outcome: "changed" } },
      request: { dryRun: true },
    });
    expect(exitCode).to.equal(0);
    const ends = events.flatMap((event) => {
      if (event.type === "step.finished" && event.node === "w1")
        return [`${event.step} ${event.outcome} ${event.reason ?? ""}`.trim()];
      if (event.type === "action.finished" && event.item === "w1")
        return [`${event.action} ${event.outcome} ${event.reason ?? ""}`.trim()];
      return [];
    });
    expect(ends).to.deep.equal([
      "key/make would-change",
      "issue unknown after identity/make",
      "certs/cert unknown after identity/make",
      "certs/folder would-change",
    ]);
  });

  describe("applies the state that each node asks for", () => {
    const files = (c1: string, w1: string): Readonly<Record<string, string>> => ({
      "roster/r.yaml": `nodes:\n  c1: { address: 192.0.2.2, vars: { os: ${c1} } }\n  w1: { address: 192.0.2.1, vars: { os: ${w1} } }\n`,
      "states/os/a.yaml": CERTS,
      "states/os/own.yaml": `steps: [{ id: own, command.run: { cmd: "install {{node.name}}" } }]\n`,
      "orchestrate/test.yaml": `params: { on: { type: target, required: true } }
stages:
  - { id: image, run: x.image, each: "{{params.on}}", when: "{{eq vars.os 'a'}}" }
  - { id: os, on: "{{params.on}}", when: "{{ne vars.os ''}}", apply: ["os/{{vars.os}}"], with: { cert: "{{stages.image.image}}" } }
`,
    });
    const image = testAction("x.image", () => ({ changed: false, outputs: { image: "made" } }));

    it("with what it takes: one that takes nothing of a stage does not rest on it", async () => {
      const { exitCode, events } = await execute({
        files: files("a", "own"),
        request: { on: "*" },
        actions: [image],
        lessons: { "os/a/cert": {}, "os/a/folder": {}, "os/own/own": {} },
      });
      const steps = events.flatMap((event) => (event.type === "step.finished" ? [`${event.node} ${event.step}`] : []));
      expect([exitCode, ...steps.sort()]).to.deep.equal([0, "c1 os/a/cert", "c1 os/a/folder", "w1 os/own/own"]);
    });

    it("and says before the first connection that there is no such state, where the node stands", async () => {
      expect(await problemsOf({ files: files("a", "owm"), request: { on: "*" }, actions: [image] })).to.deep.equal([
        "roster/r.yaml:3:3  there is no state “os/owm”, which w1 asks for  [STATE_NOT_FOUND]  did you mean “os/own”?",
      ]);
    });

    it("but not one that rests on the run", async () => {
      const late = {
        ...files("a", "own"),
        "orchestrate/test.yaml": `params: { on: { type: target, required: true } }
stages:
  - { id: image, run: x.image }
  - { id: os, on: "{{params.on}}", apply: ["os/{{stages.image.image}}"] }
`,
      };
      expect(await problemsOf({ files: late, request: { on: "*" }, actions: [image] })).to.deep.equal([
        "orchestrate/test.yaml:4:44  this must be known before the run starts, it cannot rest on “stages.image”  [STAGE_INVALID]  use params, node, nodes or vars; “when” may rest on what stages gave",
      ]);
    });
  });

  it("keeps step ids apart when a state is applied twice to a node", async () => {
    const { nodes } = await execute({
      files: {
        "orchestrate/test.yaml": `stages:
  - { id: a, on: w1, apply: [web], with: { port: 1 } }
  - { id: b, on: w1, apply: [web], with: { port: 2 } }
`,
        "states/web.yaml": WEB,
      },
      lessons: { "web/config": {}, "web#2/config": {} },
    });
    expect(nodes.log.filter((line) => line.includes(" step "))).to.deep.equal([
      "w1 step web/config",
      "w1 step web#2/config",
    ]);
  });

  it("F-16: refuses one machine under two names", async () => {
    const problems = await problemsOf({
      files: {
        "orchestrate/test.yaml": `stages:\n  - { id: a, on: "*", apply: [web] }\n`,
        "states/web.yaml": WEB,
        "roster/r.yaml": `nodes:\n  a: { address: 192.0.2.1 }\n  b: { address: 192.0.2.1 }\n`,
      },
    });
    expect(problems.join("\n")).to.match(/ROSTER_DUPLICATE|NODE_DUPLICATE/);
  });

  it("finds an orchestration of the project, and suggests when there is none", async () => {
    const problems = await problemsOf({
      files: { "orchestrate/deploy_node.yaml": `stages:\n  - { id: a, on: "*", apply: [web] }\n` },
      request: { what: { kind: "orchestration", name: "deploy_nod" } },
    });
    expect(problems).to.deep.equal([
      "no orchestration “deploy_nod”  [ORCHESTRATION_NOT_FOUND]  did you mean “deploy_node”?",
    ]);
    expect(await problemsOf({ files: {}, request: { what: { kind: "orchestration", name: "update" } } })).to.deep.equal(
      [
        "no orchestration “update”  [ORCHESTRATION_NOT_FOUND]  a cluster update is named by its manifest: -f FILE; there is none yet",
      ],
    );
  });

  describe("ad hoc", () => {
    it("applies states with parameters that one of them takes", async () => {
      const given: Given = { files: { "states/web.yaml": WEB }, lessons: { "web/config": {} } };
      const what = { kind: "state", names: ["web"] } as const;
      const ran = await execute({ ...given, request: { what, on: "w1", params: { port: "8080" } } });
      expect(ran.nodes.log).to.include("w1 step web/config");
      expect(await problemsOf({ ...given, request: { what, on: "w1", params: { prot: "1" } } })).to.deep.equal([
        "no parameter “prot” in “web”  [PARAM_UNKNOWN]  did you mean “port”?",
      ]);
    });

    it("gives each node the grants of all nodes and its own (F-18)", async () => {
      const nodes = fakeNodes({});
      const given: Record<string, readonly string[]> = {};
      await execute({
        files: { "states/web.yaml": WEB },
        request: {
          what: { kind: "state", names: ["web"] },
          on: "*",
          grants: ["S1:0123456789abcdef", "S2:0123456789abcdef@w1"],
        },
        deps: {
          openSession: (options) => {
            given[options.node.name] = options.grants;
            return nodes.open(options);
          },
        },
      });
      const all = ["S1:0123456789abcdef"];
      expect(given).to.deep.equal({ w1: [...all, "S2:0123456789abcdef"], w2: all, c1: all, c2: all });
    });

    it("S-4: runs a command exactly as typed, expressions and all", async () => {
      let [text, title] = ["", ""];
      const argv = ["echo", "{{node.name}}", "$(id)", "a b"];
      const nodes = fakeNodes({});
      await execute({
        files: {},
        request: { what: { kind: "exec", argv, shell: false }, on: "w1" },
        deps: {
          openSession: (options) => ({
            ...Object.fromEntries(Object.entries(nodes.open(options))),
            exchanges: 0,
            perform: ([work]) => {
              const rendered = work?.drafts[0]?.render({ steps: new Map() });
              if (rendered?.kind === "step")
                [text, title] = [rendered.plan.step.apply?.masked ?? "", rendered.plan.title];
              return Promise.resolve({ outcome: "done", registered: new Map(), finishedStages: new Set(["exec"]) });
            },
            host: () => undefined,
            rest: () => Promise.resolve(),
            stop: () => undefined,
            abort: () => undefined,
            finish: () => Promise.resolve(),
          }),
        },
      });
      expect(text).to.equal("exec echo '{{node.name}}' '$(id)' 'a b'");
      expect(title).to.equal("echo '{{node.name}}' '$(id)' 'a b'");
    });

    it("pings, and lets sessions gather facts by themselves", async () => {
      for (const kind of ["ping", "facts"] as const)
        expect((await execute({ files: {}, request: { what: { kind }, on: "w1" } })).exitCode).to.equal(0);
    });

    it("S-25: wants to know on which nodes", async () => {
      const [problem] = await problemsOf({ files: {}, request: { what: { kind: "ping" } } });
      expect(problem).to.contain("kcore ping needs to know which nodes  [TARGET_MISSING]");
    });
  });
});
