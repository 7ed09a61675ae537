import { expect } from "chai";
import { z } from "zod";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Action, ActionContext, ActionResult } from "#engine/orchestrate/action.ts";
import { actionNames, findAction } from "#actions/registry.ts";
import { executeRun } from "#engine/orchestrate/execute-run.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/run-types.ts";
import { testAction } from "#support/actions.ts";
import { fakeNodes, type PreparedStep } from "#support/fake-session.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { rejectionOf } from "#support/rejection.ts";
import { runDependencies, runRequest } from "#support/runs.ts";
import { inProject } from "#support/in-project.ts";

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
const CERTS = `params: { cert: { type: string, required: true } }
steps:
  - { id: cert, file.managed: { path: /cert, content: "{{params.cert}}" } }
  - { id: folder, directory.managed: { path: /certs } }
`;
const shared = {
  "roster/r.yaml": ROSTER,
  "states/web.yaml": WEB,
  "states/key.yaml": "steps:\n  - { id: make, command.run: { cmd: make-key }, creates: /key, register: spki }\n",
  "states/certs.yaml": CERTS,
};

interface ExecuteOptions {
  /** Files besides the roster and the states web, key and certs. */
  readonly files?: Readonly<Record<string, string>>;
  readonly request?: Partial<RunRequest>;
  readonly actions?: readonly Action[];
  readonly prepared?: Readonly<Record<string, PreparedStep>>;
  readonly deps?: Partial<RunDependencies>;
}

/** Executes a run in which the steps of web and certs are in order, unless `prepared` has other outcomes. */
async function execute({ files, request, actions = [], prepared, deps }: ExecuteOptions) {
  return inProject({ ...shared, ...files }, async (project) => {
    const events: RunEventBody[] = [];
    const nodes = fakeNodes({ "web/config": {}, "certs/cert": {}, "certs/folder": {}, ...prepared });
    const { exitCode } = await executeRun(
      runRequest(request),
      runDependencies(nodes, events, {
        project,
        actions: (name) => Promise.resolve(actions.find((action) => action.name === name)),
        actionNames: actions.map(({ name }) => name),
        ...deps,
      }),
    );
    const logOf = (word: string): string[] => nodes.log.filter((line) => line.includes(word));
    return { exitCode, events, nodes, logOf };
  });
}
const problemsOf = (given: ExecuteOptions): Promise<string[]> => problemsOfRejection(execute(given));
const orchestration = (text: string, name = "test") => ({ [`orchestrate/${name}.yaml`]: text });

function outline(events: readonly RunEventBody[]): string[] {
  const [started] = events;
  if (started?.type !== "run.started") throw new Error("the run did not start");
  return started.stages.map(({ id, title, nodes }) => `${id} | ${title} | ${nodes.join(" ")}`);
}

const noChange: ActionResult = { changed: false, outputs: {} };
const actionNamed = (name: string, run: (context: ActionContext, args: unknown) => unknown = () => undefined): Action =>
  testAction(name, (context, args) => (run(context, args) as ActionResult | undefined) ?? noChange);
const uncalled = (name: string): Action => testAction(name, () => expect.fail("called"));
const healthy = testAction(
  "cluster.health",
  () => noChange,
  () => noChange,
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
const deploying: ExecuteOptions = { files: orchestration(DEPLOY), actions: [healthy] };
/** The waves of {@link DEPLOY} over all nodes. */
const WAVES = [
  "health | health | ",
  "web | web (1 of 3: c1) | c1",
  "health@2 | health (again, 1 of 3: c1) | ",
  "web@2 | web (2 of 3: c2) | c2",
  "health@3 | health (again, 2 of 3: c2) | ",
  "web@3 | web (3 of 3: w1, w2) | w1 w2",
  "health@4 | health (again, 3 of 3: w1, w2) | ",
];

describe("executeRun", () => {
  it("announces each stage's steps by node, and marks numbers that are not known yet", async () => {
    const { events } = await execute({
      files: {
        "states/many.yaml": `params: { names: { type: list, required: true } }
steps:
  - { id: first, command.run: { cmd: "true" } }
  - { id: each, each: "{{params.names}}", command.run: { cmd: "echo {{item}}" } }
`,
        "states/mine.yaml": `steps:
  - { id: mine, each: "{{node.roles}}", command.run: { cmd: "true" } }
  - { id: left, when: "{{eq node.name 'w1'}}", command.run: { cmd: "true" } }
`,
        ...orchestration(`params: { on: { type: target, required: true } }
stages:
  - { id: list, run: x.list }
  - { id: mine, on: "{{params.on}}", apply: [mine] }
  - { id: certs, on: "{{params.on}}", apply: [certs], with: { cert: "{{stages.list.is}}" } }
  - { id: many, on: "{{params.on}}", apply: [many], with: { names: "{{stages.list.names}}" } }
  - { id: maybe, on: "{{params.on}}", apply: [certs], when: "{{stages.list.is}}", with: { cert: x } }
  - { id: never, on: "{{params.on}}", apply: [certs], when: "{{eq 1 2}}", with: { cert: x } }
  - { id: issue, run: x.list, each: "{{params.on}}" }
`),
        "roster/r.yaml": ROSTER.replace("192.0.2.3, roles: [worker", "192.0.2.3, roles: [worker, web"),
      },
      request: { on: "w1,w2", dryRun: true },
      actions: [actionNamed("x.list", () => ({ changed: false, outputs: { names: ["a", "b"], is: true } }))],
      prepared: { "mine/mine[worker]": {}, "mine/mine[web]": {}, "mine/left": {} },
    });
    const [begun] = events;
    if (begun?.type !== "run.started") throw new Error("the run did not start");
    const planned = begun.stages.map(({ id, planned: count, open }) => `${id} ${count?.toString()}${open ? "…" : ""}`);
    expect(planned).to.deep.equal(["list 1", "mine 2,3", "certs 2", "many 1…", "maybe 0…", "never 0", "issue 1"]);
  });

  it("takes a target from --on or a parameter, in the roster's order", async () => {
    const byOn = await execute({ ...deploying, request: { on: "w2,w1" } });
    expect(byOn.exitCode).to.equal(0);
    expect(outline(byOn.events)).to.deep.equal([WAVES[0], "web | web | w1 w2", "health@2 | health (again) | "]);
    for (const request of [{ params: { node_name: "w2,w1" } }, { on: "role:worker" }])
      expect((await execute({ ...deploying, request })).events).to.deep.equal(byOn.events);
  });

  it("derives one challenge from the run's nonce for states and actions, also when it is resumed (S-14)", async () => {
    const received: unknown[] = [];
    const signs = actionNamed("pki.signs", ({ challenge }, args) => void received.push([challenge, args]));
    const files = orchestration('stages:\n  - { id: a, run: pki.signs, text: "{{run.challenge}}" }\n');
    for (const nonce of ["a", "a", "b"]) await execute({ files, actions: [signs], deps: { nonce: nonce.repeat(32) } });
    const [first, again, other] = received as [string, { text: string }][];
    expect(first?.[0]).to.match(/^[\w-]{43}$/);
    expect([first?.[1].text, again]).to.deep.equal([first?.[0], first]);
    expect(other?.[0]).not.to.equal(first?.[0]);
  });

  it("runs waves: controllers one at a time, then workers together, with health checks between", async () => {
    const { events, nodes, logOf } = await execute({ ...deploying, request: { on: "*" } });
    expect(outline(events)).to.deep.equal(WAVES);
    expect(logOf("finish")[0]).to.equal("c1 finish done");
    expect(nodes.log.indexOf("c1 finish done")).to.be.lessThan(nodes.log.indexOf("c2 connect"));
  });

  it("runs included stages with the arguments and waves of the include", async () => {
    const files = {
      ...orchestration(`params: { all: { type: target, default: "*" }, web: { type: boolean, default: true } }
stages:
  - { id: first, run: first, once: true }
  - { include: inner, with: { node_name: "{{params.all}}", port: "{{add 80 1}}" }, when: "{{params.web}}" }
`),
      ...orchestration(
        DEPLOY.replace("required: true }", "required: true }\n  port: { type: integer }").replace(
          "apply: [web]",
          'apply: [web], with: { port: "{{params.port}}" }',
        ),
        "inner",
      ),
    };
    const given = { files, actions: [healthy, actionNamed("first")] };
    const { events, exitCode, logOf } = await execute(given);
    expect([exitCode, logOf(" step ").length]).to.deep.equal([0, 4]);
    expect(outline(events)).to.deep.equal(["first | first | ", ...WAVES]);
    const without = await execute({ ...given, request: { params: { web: false } } });
    expect([without.exitCode, without.logOf(" step ")]).to.deep.equal([0, []]);
  });

  const INNER = `params: { nodes: { type: target, required: true }, n: { type: integer } }
stages: [{ id: web, on: "{{params.nodes}}", apply: [web] }]
`;

  it("reports wrong arguments of an include, and a target that matches no node, at their places", async () => {
    const problems = (given: string): Promise<string[]> => {
      const outer = orchestration(`stages: [{ include: inner, with: ${given} }]\n`);
      return problemsOf({ files: { ...outer, ...orchestration(INNER, "inner") } });
    };
    expect(await problems("{ nods: w1, n: x }")).to.deep.equal([
      "orchestrate/test.yaml:1:34+18 the orchestration “inner” needs the parameter “nodes” [PARAM_MISSING] | give it, nodes, target",
      "orchestrate/test.yaml:1:42+2 the orchestration “inner” has no parameter “nods” [PARAM_UNKNOWN] | did you mean “nodes”?",
      "orchestrate/test.yaml:1:49+1 the parameter “n” must be a whole number, not a text [PARAM_INVALID]",
    ]);
    expect(await problems("{ nodes: 'role:storage' }")).to.deep.equal([
      "orchestrate/test.yaml:1:43+14 no node matches “role:storage” [TARGET_EMPTY] | the roster holds w1 (worker), c1 (controller), w2 (worker), c2 (controller)",
    ]);
  });

  it("omits included stages whose target has no node in the wave", async () => {
    const outer = orchestration(`params: { all: { type: target, default: "*" } }
waves: [{ on: "role:controller" }, { on: "*" }]
stages: [{ include: inner, with: { nodes: "({{params.all}}) and role:worker" } }]
`);
    const { events } = await execute({ files: { ...outer, ...orchestration(INNER, "inner") } });
    expect(outline(events)).to.deep.equal(["web | web (2 of 2: w1, w2) | w1 w2"]);
  });

  it("warns of skipped health checks, and passes their default outputs to later stages", async () => {
    const request = { on: "w1", skipHealth: true };
    const { events } = await execute({ ...deploying, actions: [uncalled("cluster.health")], request });
    expect(events).to.deep.include({ type: "warning", text: "health checks are left out (--skip-health)" });
    const left = events.filter((event) => event.type === "stage.finished" && event.reason === "--skip-health");
    expect(left).to.have.length(2);
    const files = orchestration(`params: { nodes: { type: target } }
stages:
  - { id: health, run: cluster.health }
  - { id: web, on: "{{params.nodes}}", apply: [web], when: "{{eq (length stages.health.controllers) 0}}" }
`);
    const exitWith = async (leftOut?: { controllers: string[] }) => {
      const actions = [{ ...uncalled("cluster.health"), ...(leftOut && { leftOut }) }];
      return (await execute({ files, actions, request })).exitCode;
    };
    expect([await exitWith({ controllers: [] }), await exitWith()]).to.deep.equal([0, 1]);
  });

  it("refuses a missing target with the roster's nodes, and a target given twice (S-25)", async () => {
    const { problems } = await rejectionOf(execute(deploying));
    const detail = "the roster's nodes: w1 (worker), c1 (controller), w2 (worker), c2 (controller)";
    expect(problems[0]).to.include({ code: "TARGET_MISSING", detail });
    expect(await problemsOf({ ...deploying, request: { on: "role:storage" } })).to.have.length(1);
    const [twice] = await problemsOf({ ...deploying, request: { on: "w1", params: { node_name: "w2" } } });
    expect(twice).to.contain("the nodes are named twice");
    const [ping] = await problemsOf({ request: { what: { kind: "ping" } } });
    expect(ping).to.contain("kcore ping needs to know which nodes [TARGET_MISSING]");
    const [state] = await problemsOf({ request: { what: { kind: "state", names: ["web"] } } });
    expect(state).to.contain("kcore state apply needs to know which nodes [TARGET_MISSING]");
  });

  it("hints at `update -f` for the shipped orchestration alone", async () => {
    const hintOf = async (name: string) => {
      const request = { what: { kind: "orchestration", name } as const };
      return (await rejectionOf(execute({ files: orchestration(DEPLOY, name), request }))).problems[0]?.hint;
    };
    expect(await hintOf("update")).to.contain("update -f rollout.yaml");
    expect(await hintOf("update_web")).to.contain("kcore orchestrate update_web w1");
  });

  it("reports all problems of stages, states and parameters, and connects to no node", async () => {
    const nodes = fakeNodes({});
    const noAnswer = (): never => expect.fail("called");
    const problems = await problemsOf({
      files: {
        ...orchestration(`stages:
  - { id: a, on: "role:worker", apply: [web], with: { prt: 1 } }
  - { id: b, on: "role:worker", apply: [wbe] }
  - { id: c, run: wiat, for: 1s }
  - { id: d, run: wait, fro: 1s }
  - { id: e, on: "w9", apply: [web] }
  - { id: f, on: "*", apply: [bad] }
`),
        "states/bad.yaml": `steps:\n  - { id: x, file.managed: { path: /x, content: "{{node.nme}}" } }\n`,
      },
      actions: [testAction("wait", noAnswer, () => "unknown", z.strictObject({ for: z.string() }))],
      deps: { openSession: nodes.open },
    });
    expect(problems.map((line) => line.replace(/\+\d+ .*(?= \[)/, ""))).to.deep.equal([
      "orchestrate/test.yaml:2:55 [PARAM_UNKNOWN] | did you mean “port”?",
      "orchestrate/test.yaml:3:41 [STATE_NOT_FOUND] | did you mean “web”?",
      "orchestrate/test.yaml:4:19 [ACTION_UNKNOWN] | did you mean “wait”?",
      "orchestrate/test.yaml:5:5 [YAML_KEY_MISSING]",
      "orchestrate/test.yaml:5:25 [YAML_KEY_UNKNOWN] | did you mean “for”?",
      "orchestrate/test.yaml:6:19 [TARGET_UNKNOWN] | did you mean “w1”?",
      "states/bad.yaml:2:52 [EXPRESSION_UNDEFINED] | did you mean “name”?",
    ]);
    expect(nodes.log).to.deep.equal([]);
  });

  it("renders the steps of every node before the first connection", async () => {
    const [problem, ...others] = await problemsOf({
      files: {
        ...orchestration('stages:\n  - { id: a, on: "*", apply: [bad] }\n'),
        "states/bad.yaml": `steps:\n  - { id: x, file.managed: { path: "/{{node.labels.rack}}", content: a } }\n`,
        "roster/r.yaml": ROSTER.replace(/(?<!2.4, )roles: /g, "labels: { rack: r1 }, roles: "),
      },
    });
    expect(others).to.deep.equal([]);
    expect(problem).to.contain("states/bad.yaml:2:").and.contain("[EXPRESSION_UNDEFINED]");
  });

  const issuing = orchestration(`stages:
  - { id: identity, on: "role:worker", apply: [key] }
  - { id: issue, run: issue, each: "role:worker", spki: "{{stages.identity.spki.stdout}}" }
  - { id: certs, on: "role:worker", apply: [certs], with: { cert: "{{stages.issue.cert}}" } }
`);
  const keys = { "w1 key/make": { registered: { stdout: "AAA" } }, "w2 key/make": { registered: { stdout: "BBB" } } };

  it("passes a registered value to an action, and its output to the next stage, by node", async () => {
    const got: string[] = [];
    const issue = actionNamed("issue", ({ node }, args) => {
      got.push(`${node?.name} ${(args as { spki: string }).spki}`);
      return { changed: true, outputs: { cert: `cert of ${node?.name}` } };
    });
    const { exitCode, logOf } = await execute({ files: issuing, actions: [issue], prepared: keys });
    expect([exitCode, got.toSorted()]).to.deep.equal([0, ["w1 AAA", "w2 BBB"]]);
    expect(logOf("w1 perform")).to.deep.equal(["w1 perform [identity]", "w1 perform [certs]"]);
  });

  it("performs states around a stage in one piece where the stage's condition is already false", async () => {
    const asked: unknown[] = [];
    const { exitCode, logOf } = await execute({
      files: orchestration(`stages:
  - { id: identity, on: "w1,w2", apply: [key] }
  - { id: taken, run: check, each: "w1,w2", when: "{{and (eq node.name 'w1') (eq stages.identity.spki.stdout 'AAA')}}" }
  - { id: late, on: "w1,w2", when: "{{and (eq node.name 'w1') (eq stages.identity.spki.stdout 'AAA')}}", apply: [web] }
  - { id: certs, on: "w1,w2", apply: [certs], with: { cert: one } }
`),
      actions: [actionNamed("check", ({ node }) => void asked.push(node?.name))],
      prepared: { "key/make": { registered: { stdout: "AAA" } } },
    });
    expect([exitCode, asked]).to.deep.equal([0, ["w1"]]);
    expect(logOf(" perform ")).to.have.members(
      "w1 perform [identity], w1 perform [late+certs], w2 perform [identity+certs]".split(", "),
    );
  });

  it("lists the results of a stage in the roster's order, whichever node ended first", async () => {
    for (const first of ["w1", "w2", "c2"]) {
      const begun = Promise.withResolvers<void>();
      const order: unknown[] = [];
      const preparedStep = (name: string) => ({
        registered: { stdout: name },
        ...(name === first ? { begins: begun.resolve } : { after: begun.promise }),
      });
      const names = ["w1", "c1", "w2", "c2"];
      const { exitCode } = await execute({
        files: orchestration(`stages:
  - { id: identity, on: "*", apply: [key] }
  - { id: look, run: look, all: "{{json stages.identity}}" }
`),
        actions: [actionNamed("look", (_, args) => void order.push((args as { all: object }).all))],
        prepared: Object.fromEntries(names.map((name) => [`${name} key/make`, preparedStep(name)])),
      });
      const found = Object.keys(JSON.parse(String(order[0])) as object);
      expect([exitCode, found], `${first} first`).to.deep.equal([0, names]);
    }
  });

  it("passes one node's result to a stage of another node, once the first node has it", async () => {
    const slow = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    const ran = await execute({
      files: orchestration(`stages:
  - { id: first, on: "role:worker", apply: [key] }
  - { id: second, on: "role:worker", apply: [certs], with: { cert: "{{stages.first.w1.spki.stdout}}" } }
  - { id: third, on: "role:controller", apply: [certs], when: "{{eq stages.first.w2.spki.stdout 'BBB'}}", with: { cert: "{{stages.first.w1.spki.stdout}}" } }
  - { id: see, run: see, each: "*", theirs: "{{stages.first.w2.spki.stdout}}" }
  - { id: mixed, run: see, each: "role:worker", theirs: "{{stages.first.w2.spki.stdout}}", own: "{{stages.first.spki.stdout}}" }
`),
      actions: [actionNamed("see", ({ node }, args) => void seen.push([node?.name, args]))],
      prepared: {
        "w1 key/make": { ...keys["w1 key/make"], after: slow.promise },
        "w2 key/make": { ...keys["w2 key/make"], begins: () => setImmediate(slow.resolve) },
      },
    });
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

  it("names the node whose result is missing", async () => {
    const { exitCode, events } = await execute({
      files: orchestration(`stages:
  - { id: first, on: w1, apply: [key] }
  - { id: second, on: w2, apply: [certs], with: { cert: "{{stages.first.c1.spki.stdout}}" } }
`),
      prepared: keys,
    });
    const [problem] = events.flatMap((event) => (event.type === "node.finished" && event.problem) || []);
    const hint = "“c1” has no such stage, or did not come through it";
    expect({ ...problem, exitCode }).to.include({ exitCode: 1, code: "STAGE_OUTPUT_UNKNOWN", hint });
  });

  it("refuses a node's answer as name of a file, program or host of the bastion", async () => {
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
      ] as const) {
        const use = arg.replace("VALUE", value);
        const stages = `  - { id: identity, on: "role:worker", apply: [key] }\n  - { id: use, ${each}run: ${action}, ${use} }\n`;
        const files = orchestration(`stages:\n${stages}`);
        expect((await problemsOf({ files, deps: { actions: findAction, actionNames } }))[0], use).to.match(
          /^orchestrate\/test\.yaml:3:\d+\+\d+ “[\w.]+” names a file, a program or a host for the bastion: it cannot rest on what a node told/,
        );
      }
  });

  it("refuses a node's answer as a file name through a state's parameter", async () => {
    const given = orchestration(`stages:
  - { id: first, on: w1, apply: [key] }
  - { id: second, on: w2, apply: [copy], with: { file: "{{stages.first.w1.spki.stdout}}", plain: "files/{{stages.first.w1.spki.stdout}}", all: ["{{stages.first.w1.spki.stdout}}"] } }
`);
    for (const [source, each, wanted] of [
      ["params.file", "", 1],
      ["item", ', each: "{{params.all}}"', 1],
      ["params.plain", "", 0],
    ] as const) {
      const { exitCode, events } = await execute({
        files: {
          ...given,
          "states/copy.yaml": `params: { file: { type: string }, plain: { type: string }, all: { type: list } }
steps:
  - { id: copy${each}, file.managed: { path: /x, source: "{{${source}}}" } }
`,
          "files/AAA": "of the project",
        },
        prepared: { ...keys, "copy/copy": {} },
      });
      const isRefused = JSON.stringify(events).includes("a node's answer must not name a file of the bastion");
      expect([exitCode, isRefused], source).to.deep.equal([wanted, wanted === 1]);
    }
  });

  it("reports in a dry run which steps are unknown, and after which step", async () => {
    const { exitCode, events } = await execute({
      files: issuing,
      actions: [testAction("issue", () => expect.fail("run in a dry run"))],
      prepared: { "key/make": { outcome: "changed" }, "certs/folder": { outcome: "changed" } },
      request: { dryRun: true },
    });
    const ends = events.flatMap((event) => {
      const end = "outcome" in event ? `${event.outcome} ${"reason" in event ? event.reason : ""}`.trim() : "";
      if (event.type === "step.finished" && event.node === "w1") return [`${event.step} ${end}`];
      return event.type === "action.finished" && event.item === "w1" ? [`${event.action} ${end}`] : [];
    });
    expect([exitCode, ...ends]).to.deep.equal([
      0,
      "key/make would-change",
      "issue unknown after identity/make",
      "certs/cert unknown after identity/make",
      "certs/folder would-change",
    ]);
  });

  describe("with a state named by a variable of each node", () => {
    const given = (c1: string, w1: string, os = '["os/{{vars.os}}"]'): ExecuteOptions => ({
      files: {
        "roster/r.yaml": `nodes:\n  c1: { address: 192.0.2.2, vars: { os: ${c1} } }\n  w1: { address: 192.0.2.1, vars: { os: ${w1} } }\n`,
        "states/os/a.yaml": CERTS,
        "states/os/own.yaml": `steps: [{ id: own, command.run: { cmd: "install {{node.name}}" } }]\n`,
        ...orchestration(`params: { on: { type: target, required: true } }
stages:
  - { id: image, run: x.image, each: "{{params.on}}", when: "{{eq vars.os 'a'}}" }
  - { id: os, on: "{{params.on}}", when: "{{ne vars.os ''}}", apply: ${os}, with: { cert: "{{stages.image.image}}" } }
`),
      },
      request: { on: "*" },
      actions: [actionNamed("x.image", () => ({ changed: false, outputs: { image: "made" } }))],
      prepared: { "os/a/cert": {}, "os/a/folder": {}, "os/own/own": {} },
    });

    it("applies it, and waits for a stage only where the state takes its output", async () => {
      const { exitCode, events } = await execute(given("a", "own"));
      const steps = events.flatMap((event) => (event.type === "step.finished" ? [`${event.node} ${event.step}`] : []));
      expect([exitCode, ...steps.sort()]).to.deep.equal([0, "c1 os/a/cert", "c1 os/a/folder", "w1 os/own/own"]);
    });

    it("reports a missing state before the first connection, at the node's place in the roster", async () => {
      expect(await problemsOf(given("a", "owm"))).to.deep.equal([
        "roster/r.yaml:3:3+2 there is no state “os/owm”, which w1 asks for [STATE_NOT_FOUND] | did you mean “os/own”?",
      ]);
    });

    it("refuses a state's name that depends on a stage", async () => {
      expect(await problemsOf(given("a", "own", '["os/{{stages.image.image}}"]'))).to.deep.equal([
        "orchestrate/test.yaml:4:71+27 this must be known before the run starts, it cannot rest on “stages.image” [STAGE_INVALID] | use params, node, nodes or vars; “when” may rest on what stages gave",
      ]);
    });
  });

  it("makes step ids unique where a node gets a state twice", async () => {
    const { logOf } = await execute({
      files: orchestration(`stages:
  - { id: a, on: w1, apply: [web], with: { port: 1 } }
  - { id: b, on: w1, apply: [web], with: { port: 2 } }
`),
      prepared: { "web#2/config": {} },
    });
    expect(logOf(" step ")).to.deep.equal(["w1 step web/config", "w1 step web#2/config"]);
  });

  it("suggests a similar name for an unknown orchestration", async () => {
    const problems = (name: string, files = {}): Promise<string[]> =>
      problemsOf({ files, request: { what: { kind: "orchestration", name } } });
    const near = await problems("deploy_nod", orchestration(DEPLOY, "deploy_node"));
    expect([...near, ...(await problems("web"))]).to.deep.equal([
      "no orchestration “deploy_nod” [ORCHESTRATION_NOT_FOUND] | did you mean “deploy_node”?",
      "no orchestration “web” [ORCHESTRATION_NOT_FOUND] | there is none yet",
    ]);
  });

  describe("ad hoc", () => {
    const what = { kind: "state", names: ["web"] } as const;

    it("applies states with parameters, and refuses a parameter that none of them has", async () => {
      const ran = await execute({ request: { what, on: "w1", params: { port: "8080" } } });
      expect(ran.nodes.log).to.include("w1 step web/config");
      expect(await problemsOf({ request: { what, on: "w1", params: { prot: "1" } } })).to.deep.equal([
        "no parameter “prot” in “web” [PARAM_UNKNOWN] | did you mean “port”?",
      ]);
    });

    it("gives each node the grants of all nodes and its own (F-18)", async () => {
      const [all, own] = ["S1:0123456789abcdef", "S2:0123456789abcdef"];
      const { nodes } = await execute({ request: { what, on: "*", grants: [all, `${own}@w1`] } });
      const given = Object.fromEntries([...nodes.options].map(([name, { grants }]) => [name, grants]));
      expect(given).to.deep.equal({ w1: [all, own], w2: [all], c1: [all], c2: [all] });
    });

    it("runs a command exactly as typed, without evaluating expressions (S-4)", async () => {
      let rendered: readonly string[] = [];
      const argv = ["echo", "{{node.name}}", "$(id)", "a b"];
      const nodes = fakeNodes({});
      await execute({
        request: { what: { kind: "exec", argv, shell: false }, on: "w1" },
        deps: {
          openSession: (options) =>
            Object.assign(nodes.open(options), {
              perform: ([work]: Parameters<ReturnType<typeof nodes.open>["perform"]>[0]) => {
                const step = work?.drafts[0]?.render({ steps: new Map() });
                if (step?.kind === "step") rendered = [step.plan.step.apply?.masked ?? "", step.plan.title];
                return Promise.resolve({ outcome: "done", registered: new Map(), finishedStages: new Set(["exec"]) });
              },
            }),
        },
      });
      const typed = "echo '{{node.name}}' '$(id)' 'a b'";
      expect(rendered).to.deep.equal([`exec ${typed}`, typed]);
    });

    it("runs ping and facts", async () => {
      for (const kind of ["ping", "facts"] as const)
        expect((await execute({ request: { what: { kind }, on: "w1" } })).exitCode).to.equal(0);
    });
  });
});
