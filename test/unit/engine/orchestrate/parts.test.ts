import { expect } from "chai";
import type { LeftOut, RunEventBody } from "#engine/events/event.ts";
import { executeRun } from "#engine/orchestrate/execute-run.ts";
import type { RunDependencies, RunPart, RunRequest } from "#engine/orchestrate/run-types.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { testAction } from "#support/actions.ts";
import { fakeNodes, type PreparedStep } from "#support/fake-session.ts";
import { inProject } from "#support/in-project.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { runDependencies, runRequest } from "#support/runs.ts";

const step = (id: string, keys = "") => `  - { id: ${id}, file.managed: { path: /etc/${id}, content: x }${keys} }\n`;
const files = {
  "roster/r.yaml": `nodes:
  w1: { address: 192.0.2.1, roles: [web], vars: { port: 80, release: "1.0" } }
  w2: { address: 192.0.2.2, roles: [web], vars: { port: 80 } }
  l1: { address: 192.0.2.3, roles: [lb] }
`,
  "states/web.yaml": `steps:
${step("config", ", tags: config")}  - { id: service, service.running: { name: web }, restartOn: [config] }
${step("motd", ", tags: [motd, texts]")}`,
  "states/lb.yaml": `steps:\n${step("pool")}  - { include: texts, tags: texts }\n`,
  "states/texts.yaml": `steps:\n${step("issue")}`,
  "states/key.yaml": `steps:
  - { id: key, command.run: { cmd: make-key }, creates: /key, register: key }
  - { id: sum, file.managed: { path: /sum, content: "{{steps.key.stdout}}" } }
`,
  "states/agent.yaml": `params: { servers: { type: map, required: true } }
steps:
  - id: token
    file.managed: { path: /token, content: "{{#each params.servers}}{{@key}} {{key.stdout}}{{/each}}" }
`,
  "orchestrate/test.yaml": `params: { nodes: { type: target, default: "role:web" } }
stages:
  - { id: build, run: x.build, text: "{{params.nodes}}" }
  - { id: lb, on: "role:lb", apply: [lb] }
  - { id: web, on: "{{params.nodes}}", apply: [web], batch: 1 }
  - { id: tell, run: x.build, tags: [texts], text: told }
`,
};
/** All steps are in order. */
const anyStep: Readonly<Record<string, PreparedStep>> = new Proxy(
  {},
  { get: (_, name) => (String(name).includes(" ") ? undefined : { registered: { stdout: "s3" } }) },
);

interface Given {
  readonly part?: RunPart;
  readonly request?: Partial<RunRequest>;
  readonly files?: Readonly<Record<string, string>>;
  readonly deps?: Partial<RunDependencies>;
}

async function execute({ part, request, files: more, deps }: Given) {
  return inProject({ ...files, ...more }, async (project) => {
    const events: RunEventBody[] = [];
    const texts: string[] = [];
    const steps = new Map<string, UnresolvedStep>();
    const nodes = fakeNodes(anyStep);
    const build = testAction("x.build", (_, args) => {
      texts.push((args as { text: string }).text);
      return { changed: false, outputs: {} };
    });
    await executeRun(runRequest({ ...request, ...(part && { part }) }), {
      ...runDependencies(nodes, events, { project, actions: () => Promise.resolve(build), actionNames: ["x.build"] }),
      openSession: (options) => {
        const session = nodes.open(options);
        const perform: typeof session.perform = (work, how) => {
          for (const { drafts } of work)
            for (const draft of drafts) steps.set(`${options.node.name} ${draft.id}`, draft);
          return session.perform(work, how);
        };
        return new Proxy(session, {
          get: (own, name) => {
            const value: unknown = name === "perform" ? perform : Reflect.get(own, name);
            return typeof value === "function" ? (value.bind(own) as unknown) : value;
          },
        });
      },
      ...deps,
    });
    const [started] = events;
    if (started?.type !== "run.started") throw new Error("the run did not start");
    const { stages, leftOut, title } = started;
    return {
      work: [...steps.keys()],
      steps,
      stages: stages.map(({ id }) => id),
      leftOut,
      title,
      texts,
      started,
      nodes,
    };
  });
}
const problemsOf = (given: Given): Promise<string[]> => problemsOfRejection(execute(given));
const state = (name: string): Partial<RunRequest> => ({ what: { kind: "state", names: [name] }, on: "w1" });
/** A part without the flags that chose it. */
const rest = ({ stages, steps, nodes }: LeftOut = { by: "", stages: [], steps: [], nodes: [] }) => ({
  stages,
  steps,
  nodes,
});

describe("a part of a run", () => {
  it("is one stage or one step of it, on the nodes that have it", async () => {
    const one = await execute({ part: { only: ["lb"] } });
    expect(one.work).to.deep.equal(["l1 lb/pool", "l1 texts/issue"]);
    expect(one.title).to.equal("test (in part: --only lb)");
    expect(one.leftOut).to.deep.equal({
      by: "--only lb",
      stages: ["build", "web", "tell"],
      steps: [],
      nodes: ["w1", "w2"],
    });
    expect(one.started.nodes).to.deep.equal(["l1"]);
    for (const name of ["issue", "texts/issue"]) {
      const { work, leftOut } = await execute({ part: { only: [name] } });
      expect(work).to.deep.equal(["l1 texts/issue"]);
      expect(rest(leftOut)).to.deep.include({ steps: ["lb: pool"] });
    }
  });

  it("begins at a stage or step, and has all that is behind it", async () => {
    const stage = await execute({ part: { from: "web" } });
    expect(stage.stages).to.deep.equal(["web", "tell"]);
    const last = await execute({ part: { from: "motd" } });
    expect([last.work, last.stages]).to.deep.equal([
      ["w1 web/motd", "w2 web/motd"],
      ["web", "tell"],
    ]);
    const action = await execute({ part: { from: "tell" } });
    expect([action.work, action.texts]).to.deep.equal([[], ["told"]]);
  });

  it("begins at its stage in every wave", async () => {
    const waves = `waves: [{ on: w1 }, { on: "*" }]\nstages:\n`;
    const test = files["orchestrate/test.yaml"].replace("stages:\n", waves).replace('"role:lb"', '"{{params.nodes}}"');
    const { stages } = await execute({ files: { "orchestrate/test.yaml": test }, part: { from: "web" } });
    expect(stages).to.deep.equal(["web", "tell", "web@2", "tell@2"]);
  });

  it("has the steps and stages with one of its tags, also those of an include", async () => {
    const { work, texts, leftOut } = await execute({ part: { tags: ["texts"] } });
    expect(work).to.deep.equal(["l1 texts/issue", "w1 web/motd", "w2 web/motd"]);
    expect(texts).to.deep.equal(["told"]);
    expect(rest(leftOut)).to.deep.equal({
      stages: ["build"],
      steps: ["lb: pool", "web: config", "web: service"],
      nodes: [],
    });
    expect((await execute({ part: { tags: ["texts"], only: ["web"] } })).work).to.deep.equal([
      "w1 web/motd",
      "w2 web/motd",
    ]);
  });

  it("has fewer nodes of any stage, with the target parameter narrowed", async () => {
    const one = await execute({ part: { limit: "w2 or l1" } });
    expect([...new Set(one.work.map((name) => name.slice(0, 2)))]).to.deep.equal(["l1", "w2"]);
    expect([one.texts[0], rest(one.leftOut)]).to.deep.equal(["w2", { stages: [], steps: [], nodes: ["w1"] }]);
    const web = await execute({ part: { limit: "role:web" } });
    expect(rest(web.leftOut)).to.deep.equal({ stages: ["lb"], steps: [], nodes: ["l1"] });
    const applied = await execute({ request: { ...state("texts"), on: "*" }, part: { limit: "w*" } });
    expect([applied.work, rest(applied.leftOut).nodes]).to.deep.equal([["w1 texts/issue", "w2 texts/issue"], ["l1"]]);
    const all = await execute({ part: { limit: "*" } });
    expect([all.leftOut, all.title]).to.deep.equal([undefined, "test"]);
  });

  it("is refused with a name or tag that nothing has, and if it is empty", async () => {
    const [step] = await problemsOf({ part: { only: ["confg"] } });
    expect(step).to.equal("no step or stage of this run is called “confg” [PART_UNKNOWN] | did you mean “config”?");
    expect((await problemsOf({ part: { from: "nothing" } }))[0])
      .to.contain("[PART_UNKNOWN]")
      .and.contain("build");
    expect((await problemsOf({ part: { tags: ["text"] } }))[0]).to.contain("did you mean “texts”?");
    expect(await problemsOf({ part: { only: ["lb"], tags: ["config"] } })).to.have.length(1);
    expect((await problemsOf({ request: state("web"), part: { limit: "l1" } }))[0]).to.contain("[PART_EMPTY]");
  });

  it("is refused if a step or stage needs work that is left out, naming both", async () => {
    const [service] = await problemsOf({ part: { only: ["service"] } });
    expect(service).to.equal(
      "states/web.yaml:3:11+7 “service” needs “config”, which --only service leaves out [PART_INCOMPLETE] | add --only config",
    );
    const [sum] = await problemsOf({ request: state("key"), part: { only: ["sum"] } });
    expect(sum).to.contain("“sum” needs “key”, which --only sum leaves out");
    expect((await execute({ part: { only: ["service", "config"] } })).work).to.have.length(4);
    const taking = `stages:
  - { id: server, on: "w1,w2", apply: [key] }
  - { id: agent, on: l1, apply: [agent], with: { servers: "{{stages.server.nodes}}" } }
`;
    const [agent] = await problemsOf({ files: { "orchestrate/test.yaml": taking }, part: { limit: "l1" } });
    expect(agent).to.contain("stage “agent” needs the outputs of stage “server”, which --limit l1 leaves out");
    const named = taking.replace("server.nodes", "server.w2");
    const [missing] = await problemsOf({ files: { "orchestrate/test.yaml": named }, part: { limit: "w1,l1" } });
    expect(missing).to.contain("needs the outputs of stage “server” on w2");
  });

  it("owes the reactions of left-out steps, keeps no look, and calls nothing unmanaged", async () => {
    const managed = { stage: "state web", params: "", plain: "web", things: [] };
    const lost = { what: "file /old", places: ["/old"], by: "file.absent", step: "web/old", run: "r0" };
    const kept: unknown[] = [];
    const { steps, nodes } = await execute({
      request: state("web"),
      part: { only: ["config"] },
      deps: {
        looks: () => ({ has: () => true, all: () => [], add: () => expect.fail("called") }),
        managed: { read: () => [{ ...managed, things: [lost] }], keep: (_, now) => kept.push(...now) },
      },
    });
    expect(steps.get("w1 web/config")?.alsoOwes).to.deep.equal(["web/service"]);
    expect(nodes.options.get("w1")).to.not.have.property("looks");
    expect(JSON.stringify(kept)).to.contain("web/old");
  });

  it("takes the operator's batch in place of the stage's", async () => {
    const finished = async (batch?: string) => {
      const { nodes } = await execute({ request: { ...(batch !== undefined && { batch }) }, part: { only: ["web"] } });
      return nodes.log.filter((line) => / (finish|connect)/.test(line)).map((line) => line.replace(/ done$/, ""));
    };
    expect(await finished()).to.deep.equal(["w1 connect", "w1 finish", "w2 connect", "w2 finish"]);
    expect((await finished("100%")).slice(0, 2)).to.deep.equal(["w1 connect", "w2 connect"]);
  });
});

describe("the parameters of a run", () => {
  const shown = `params: { nodes: { type: target, default: w1 }, word: { type: string, prompt: Which word }, key: { type: secret, prompt: The key } }
stages: [{ id: show, run: x.build, text: "{{params.word}}" }, { id: web, on: "{{params.nodes}}", apply: [vars] }]
`;
  const own = {
    "orchestrate/test.yaml": shown,
    "states/vars.yaml": `steps: [{ id: a, file.managed: { path: /a, content: "{{add vars.port 1}} {{default vars.release 'none'}}" } }]\n`,
  };
  const answering = (questions: unknown[]): Partial<RunDependencies> => ({
    ask: (question) => {
      questions.push(question);
      return Promise.resolve("s3cret");
    },
  });

  it("are asked for where they have a prompt and no value; a secret is hidden", async () => {
    const questions: unknown[] = [];
    const { texts } = await execute({ files: own, deps: answering(questions) });
    expect(texts).to.deep.equal(["s3cret"]);
    expect(questions).to.deep.equal([
      { kind: "param", param: "word", text: "Which word", secret: false },
      { kind: "param", param: "key", text: "The key", secret: true },
    ]);
    questions.length = 0;
    const given = { params: { word: "given", key: "env:HOME" } };
    const deps = { ...answering(questions), readSecret: () => Promise.resolve("s") };
    expect((await execute({ files: own, request: given, deps })).texts).to.deep.equal(["given"]);
    expect(questions).to.deep.equal([]);
  });

  it("change variables of the roster on the nodes that have them, with their types", async () => {
    const contents = async (params: Readonly<Record<string, string>>) => {
      const { steps } = await execute({ files: own, request: { ...state("vars"), on: "role:web", params } });
      return ["w1", "w2"].map((node) => steps.get(`${node} vars/a`)?.args?.());
    };
    const content = (text: string) => ({ path: "/a", content: text });
    expect(await contents({})).to.deep.equal([content("81 1.0"), content("81 none")]);
    expect(await contents({ port: "90", release: "1.10" })).to.deep.equal([content("91 1.10"), content("91 none")]);
    const [unknown] = await problemsOf({ files: own, request: { ...state("vars"), params: { prt: "1" } } });
    expect(unknown).to.contain("[PARAM_UNKNOWN]");
  });
});

describe("stages.NAME.nodes", () => {
  it("has the outputs of all nodes of a stage, for a stage with other nodes", async () => {
    const { steps } = await execute({
      files: {
        "orchestrate/test.yaml": `stages:
  - { id: server, on: "w2,w1", apply: [key] }
  - { id: agent, on: l1, apply: [agent], with: { servers: "{{stages.server.nodes}}" } }
  - { id: told, run: x.build, text: "{{json stages.server.nodes}}" }
`,
      },
    });
    const token = steps.get("l1 agent/token");
    const made = token?.render({ steps: new Map() });
    expect(made?.kind).to.equal("step");
    expect(token?.args?.()).to.deep.equal({ path: "/token", content: "w1 s3w2 s3" });
  });
});
