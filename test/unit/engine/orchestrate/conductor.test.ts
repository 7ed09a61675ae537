import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Action, ActionContext, ActionResult } from "#engine/orchestrate/action.ts";
import { Conductor } from "#engine/orchestrate/conductor.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/run-types.ts";
import type { PlannedStage } from "#engine/orchestrate/plan.ts";
import type { Unknown } from "#engine/expressions/unknown.ts";
import type { NodeSession, OpenSession } from "#engine/session/session.ts";
import type { Roster } from "#engine/roster/roster.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError } from "#errors/problem.ts";
import { testAction } from "#support/actions.ts";
import { fakeNodes, type PreparedStep } from "#support/fake-session.ts";
import {
  actionStage,
  applyStage,
  nodeEntry,
  unresolvedStep,
  rosterOf,
  runDependencies,
  runRequest,
} from "#support/runs.ts";

type Given = {
  readonly roster?: Roster;
  readonly lessons?: Readonly<Record<string, PreparedStep>>;
  readonly unreachable?: readonly string[];
  readonly request?: Partial<RunRequest>;
  readonly deps?: Partial<RunDependencies>;
  readonly onFailure?: readonly PlannedStage[];
};

/** Conducts a run in which the steps s/a and s/b are in order, unless `lessons` say otherwise. */
async function conduct(names: readonly string[], stages: readonly PlannedStage[], given: Given = {}) {
  const events: RunEventBody[] = [];
  const nodes = fakeNodes({ "s/a": {}, "s/b": {}, ...given.lessons }, given);
  const { onFailure = [] } = given;
  const plan = {
    title: "test",
    roster: given.roster ?? rosterOf(...names),
    nodes: names,
    stages,
    onFailure,
    warnings: [],
  };
  const { exitCode } = await new Conductor(
    plan,
    runRequest(given.request),
    runDependencies(nodes, events, given.deps),
  ).conduct();
  return {
    exitCode,
    events,
    nodes,
    log: nodes.log,
    said: (type: RunEventBody["type"]) => events.filter((event) => event.type === type),
    /** `stage outcome` and `node outcome`, in the order in which they ended. */
    stages: events.flatMap((event) => (event.type === "stage.finished" ? [`${event.stage} ${event.outcome}`] : [])),
    ended: events.flatMap((event) => (event.type === "node.finished" ? [`${event.node} ${event.outcome}`] : [])),
    /** The problem of the first node that ended with one. */
    problem: events.flatMap((event) => (event.type === "node.finished" && event.problem) || [])[0],
  };
}

const [one, two] = [["n1"], ["n1", "n2"]];
const a = (names: readonly string[], fields: Partial<PlannedStage> = {}) => applyStage("a", names, ["s/a"], fields);
const b = (names: readonly string[], fields: Partial<PlannedStage> = {}) => applyStage("b", names, ["s/b"], fields);
const failed: PreparedStep = { outcome: "failed" };
const nothing: ActionResult = { changed: false, outputs: {} };
/** A stage with an action of its name, for each of these nodes. */
const acts = (
  id: string,
  run: (context: ActionContext) => unknown = () => undefined,
  fields: Partial<PlannedStage> = {},
) => actionStage(id, actionOf(id, run), fields);
/** An action with nothing to tell, unless `run` gives its result. */
function actionOf(name: string, run: (context: ActionContext) => unknown): Action {
  return testAction(name, async (context) => ((await run(context)) as ActionResult | undefined) ?? nothing);
}
const refuses = (code: ErrorCode, message: string) => () => {
  throw new KcoreError({ code, message });
};
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
const forever = new Promise<never>(() => undefined);

describe("conducting a run", () => {
  it("sends adjacent stages over a node in one piece, and shows the first as over before the second begins", async () => {
    const { log, exitCode, events } = await conduct(one, [a(one), b(one)]);
    expect(log).to.deep.equal("n1 connect, n1 perform [a+b], n1 step s/a, n1 step s/b, n1 finish done".split(", "));
    const order = events.flatMap((event) =>
      event.type.startsWith("stage.") && "stage" in event ? `${event.type} ${event.stage}` : [],
    );
    expect(order).to.deep.equal("stage.started a, stage.finished a, stage.started b, stage.finished b".split(", "));
    expect([exitCode, events[0]?.type]).to.deep.equal([0, "run.started"]);
    expect(events.at(-1)).to.deep.equal({ type: "run.finished", outcome: "done", exitCode: 0 });
  });

  it("F-30: with few files to open it lets nodes rest that wait for others, and says so once", async () => {
    const names = Array.from({ length: 6 }, (_, index) => `n${index + 1}`);
    const stages = [a(names), acts("between"), b(names)];
    const text =
      "this machine lets kcore open too few files (74): no more than 5 nodes are connected at a time; to raise it: ulimit -n";
    for (const [given, rests, warnings] of [
      [{ deps: { openFiles: 64 + 2 * 5 } }, 6, [text]],
      // A pair at a time, but each keeps its connection from the first stage to the last.
      [{ request: { concurrency: 2 }, deps: { openFiles: 64 + 2 * 5 } }, 6, [text]],
      [{ deps: { openFiles: 1024 } }, 0, []],
    ] as const) {
      const { log, exitCode, said } = await conduct(names, stages, given);
      expect([exitCode, log.filter((line) => line.endsWith(" rest")).length]).to.deep.equal([0, rests]);
      expect(said("warning").map((event) => "text" in event && event.text)).to.deep.equal(warnings);
    }
  });

  it("keeps nothing of the session of a node that has ended, so that the memory does not grow with their number", async () => {
    const names = Array.from({ length: 5 }, (_, index) => `n${index + 1}`);
    const sessions: WeakRef<NodeSession>[] = [];
    const prepared = fakeNodes({ "s/a": {}, "n2 s/a": failed });
    const openSession: OpenSession = (options) => {
      const session = prepared.open(options);
      sessions.push(new WeakRef(session));
      return session;
    };
    const kept: number[] = [];
    const count = acts("count", async () => {
      // A WeakRef holds its session until the turn in which it was made is over.
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
      kept.push(sessions.filter((session) => session.deref() !== undefined).length);
    });
    const { ended } = await conduct(names, [a(names), count], { deps: { openSession } });
    expect([sessions.length, ended.length, kept]).to.deep.equal([5, 5, [0]]);
  });

  it("gives OpenSSH's client a minute to log in, since an operator may have to touch a security key", async () => {
    const roster = rosterOf("n1", nodeEntry("n2", { transport: "openssh" }));
    const { nodes } = await conduct(two, [a(two)], { roster });
    const limits = [...nodes.options].map(([name, { connectTimeout }]) => [name, connectTimeout]);
    expect(Object.fromEntries(limits)).to.deep.equal({ n1: 10_000, n2: 60_000 });
  });

  it("ends a stage after its last node's last step, and not when a step of the next one begins", async () => {
    const { nodes } = await conduct([], []);
    const deps: Partial<RunDependencies> = {
      openSession: (options) => ({
        ...nodes.open(options),
        // The batch lane begins files of both stages before the first stage ends.
        perform: () => {
          const steps = ["a", "b"].map((stage) => ({
            node: "n1",
            stage,
            step: `s/${stage}`,
            title: stage,
            module: "x",
          }));
          for (const step of steps) options.emit({ type: "step.started", ...step });
          for (const step of steps) options.emit({ type: "step.finished", ...step, outcome: "changed" });
          return Promise.resolve({ outcome: "done", registered: new Map(), finishedStages: new Set(["a", "b"]) });
        },
        finish: () => Promise.resolve(),
      }),
    };
    const { events } = await conduct(one, [a(one), b(one)], { deps });
    const order = events.flatMap((event) => {
      if (event.type === "step.finished") return [event.step];
      return event.type === "stage.finished" ? [event.stage] : [];
    });
    expect(order).to.deep.equal(["s/a", "a", "s/b", "b"]);
  });

  it("cuts before a stage that rests on what an earlier one registers", async () => {
    const seen: unknown[] = [];
    const { log } = await conduct(
      one,
      [applyStage("key", one, [unresolvedStep("s/a", { register: "spki" })]), seeing("use", "key", seen, one)],
      { lessons: { "s/a": { registered: { stdout: "AAAA" } } } },
    );
    expect(log.filter((line) => line.includes("perform"))).to.deep.equal(["n1 perform [key]", "n1 perform [use]"]);
    const spki = { changed: false, rc: 0, stdout: "AAAA", facts: {} };
    expect(JSON.parse(JSON.stringify(seen))).to.deep.equal([{ spki }]);
  });

  it("F-13: a slow node holds up no other inside a block, not even at an action for each node", async () => {
    const slow = Promise.withResolvers<void>();
    const order: string[] = [];
    const join = acts(
      "join",
      ({ node }) => {
        order.push(node?.name ?? "");
        if (node?.name === "n2") slow.resolve();
      },
      { nodes: two },
    );
    const { exitCode } = await conduct(two, [a(two), join], { lessons: { "n1 s/a": { after: slow.promise } } });
    expect([order, exitCode]).to.deep.equal([["n2", "n1"], 0]);
  });

  it("stops a failed node only, and skips its later stages", async () => {
    const { exitCode, events, ended, stages, log } = await conduct(two, [a(two), b(two, { pace: { batch: 1 } })], {
      lessons: { "n1 s/a": failed },
    });
    expect([exitCode, ended, stages]).to.deep.equal([1, ["n1 failed", "n2 done"], ["a failed", "b ok"]]);
    expect(log).to.include("n2 step s/b").and.not.include("n1 step s/b");
    expect(events[0]).to.deep.include({ type: "run.started", roles: {}, dcs: { DC1: [0, 1] } });
    expect(events.at(-1)).to.deep.include({ type: "run.finished", outcome: "failed", exitCode: 1 });
    expect(events.at(-1)).to.have.nested.property("problem.message", "a failed");
  });

  it("F-14: unreachable nodes alone end with 3, and hold up nobody, also where too many of them halt the run", async () => {
    const alone = await conduct(two, [a(two)], { unreachable: one });
    expect([alone.exitCode, alone.ended]).to.deep.equal([3, ["n1 unreachable", "n2 done"]]);
    const mixed = await conduct(two, [a(two)], { lessons: { "s/a": failed }, unreachable: one });
    const halted = await conduct(two, [a(two, { pace: { batch: 1, maxFailures: 0 } })], { unreachable: one });
    expect([mixed.exitCode, halted.exitCode, halted.ended[1]]).to.deep.equal([1, 3, "n2 not-started"]);
  });

  it("goes batch by batch, each batch through all stages of its block", async () => {
    const pace = { batch: 1 };
    const { log } = await conduct(two, [a(two, { pace }), b(two, { pace })]);
    expect(log.filter((line) => line.includes("step"))).to.deep.equal(
      "n1 step s/a, n1 step s/b, n2 step s/a, n2 step s/b".split(", "),
    );
  });

  it("never has more nodes at work than `concurrency` allows", async () => {
    let [now, most] = [0, 0];
    const lesson = (): PreparedStep => {
      const done = Promise.withResolvers<void>();
      const end = (): void => {
        now--;
        done.resolve();
      };
      return { after: done.promise, begins: () => void ((most = Math.max(most, ++now)), setImmediate(end)) };
    };
    const names = ["n1", "n2", "n3", "n4", "n5"];
    const lessons = Object.fromEntries(names.map((name) => [`${name} s/a`, lesson()]));
    await conduct(names, [a(names, { pace: { concurrency: 2 } })], { lessons });
    expect(most).to.equal(2);
  });

  it("goes on while as many nodes failed as `maxFailures` allows, and starts nothing further after the next one", async () => {
    const names = ["n1", "n2", "n3", "n4"];
    for (const [maxFailures, bad, ended, warned] of [
      [0, ["n1"], "n1 failed, n2 not-started, n3 not-started, n4 not-started", "1 node failed, 0 may fail"],
      [1, ["n1"], "n1 failed, n2 done, n3 done, n4 done", undefined],
      [1, ["n1", "n3"], "n1 failed, n2 done, n3 failed, n4 not-started", "2 nodes failed, 1 may fail"],
    ] as const) {
      const lessons = Object.fromEntries(bad.map((name) => [`${name} s/a`, failed]));
      const ran = await conduct(names, [a(names, { pace: { batch: 1, maxFailures } })], { lessons });
      const warnings = warned === undefined ? [] : [{ type: "warning", text: `${warned}: nothing further starts` }];
      expect([ran.exitCode, ran.ended, ran.said("warning")]).to.deep.equal([1, ended.split(", "), warnings]);
      expect([...ran.nodes.options.keys()]).to.deep.equal(names.filter((name) => !ended.includes(`${name} not-`)));
    }
  });

  it("runs a failed stage's onFailure stages on that node, then ends it", async () => {
    const undone: unknown[] = [];
    const uncordon = acts("uncordon", ({ node }) => void undone.push(node?.name), { nodes: two });
    const onFailure = [applyStage("clean", two, ["s/b"]), uncordon];
    const { log, stages, exitCode } = await conduct(two, [a(two, { onFailure })], { lessons: { "n1 s/a": failed } });
    expect([undone, exitCode]).to.deep.equal([["n1"], 1]);
    expect(log).to.include("n1 step s/b").and.not.include("n2 step s/b");
    expect(log.filter((line) => line.startsWith("n1")).at(-1)).to.equal("n1 finish failed");
    expect(stages).to.include.members(["clean:n1 ok", "uncordon:n1 ok"]);
  });

  it("an action that fails for one node fails that node", async () => {
    const issue = ({ node }: ActionContext) => node?.name === "n1" && refuses("NODE_REJECTED", "not this one")();
    const { ended, exitCode } = await conduct(two, [
      acts("issue", (given) => issue(given) || nothing, { nodes: two }),
      a(two),
    ]);
    expect([ended, exitCode]).to.deep.equal([["n1 failed", "n2 done"], 1]);
  });

  it("an action that concerns no single node ends the run when it fails", async () => {
    const health = acts("health", refuses("CLUSTER_UNHEALTHY", "c1 is down"));
    const { events, exitCode, log, stages, ended } = await conduct(one, [health, a(one)]);
    expect([log, stages, ended, exitCode]).to.deep.equal([[], ["health failed", "a skipped"], ["n1 not-started"], 1]);
    expect(events.at(-1)).to.have.nested.property("problem.code", "CLUSTER_UNHEALTHY");
  });

  it("leaves actions between stages, and those that take what nodes give, out once no node is left", async () => {
    const never = (id: string, fields = {}) => acts(id, () => expect.fail("called"), fields);
    const all = [a(one), never("health"), b(one), never("last", { dependencies: new Set(["b"]) })];
    const { stages } = await conduct(one, all, { lessons: { "s/a": failed } });
    expect(stages).to.deep.equal(["a failed", "b skipped", "health skipped", "last skipped"]);
  });

  for (const how of ["failed", "unreachable"] as const)
    it(`O10: what closes a run comes when every node is ${how}, and what it does wrong is not the cause`, async () => {
      const told: string[] = [];
      const notice = ({ ended }: ActionContext) =>
        void told.push([...ended].map(([name, { outcome }]) => `${name} ${outcome}`).join(", "));
      const bad = refuses("CLUSTER_UNHEALTHY", "nobody answers");
      const { events, exitCode, said, stages } = await conduct(two, [a(two), acts("bad", bad), acts("close", notice)], {
        ...(how === "failed" ? { lessons: { "s/a": failed } } : { unreachable: two }),
        onFailure: [acts("bad-too", bad), acts("tell", notice)],
      });
      const all = `n1 ${how}, n2 ${how}`;
      expect([told, exitCode]).to.deep.equal([[all, all], how === "failed" ? 1 : 3]);
      expect(stages.slice(-4)).to.deep.equal(["bad failed", "close ok", "bad-too failed", "tell ok"]);
      expect(JSON.stringify(events.at(-1))).not.to.include("CLUSTER_UNHEALTHY");
      expect(JSON.stringify(said("warning"))).to.include("nobody answers");
    });

  it("O10: one node that cannot be reached is no failure of the run that others came through", async () => {
    const onFailure = [acts("tell", () => expect.fail("called"))];
    const { exitCode, said } = await conduct(two, [a(two)], { unreachable: one, onFailure });
    expect([exitCode, said("action.finished")]).to.deep.equal([3, []]);
  });

  it("a bug in an action ends the run with 70, every node and stage ended", async () => {
    const bug = (): never => {
      throw new TypeError("undefined is not a function");
    };
    const { exitCode, ended, stages } = await conduct(one, [acts("bug", bug, { nodes: one }), a(one)]);
    expect([exitCode, ended, stages]).to.deep.equal([70, ["n1 failed"], ["bug failed", "a skipped"]]);
  });

  it("gives an action that takes too long a clear end", async () => {
    const answer = "192.0.2.7 port 9090 does not answer yet: silent for 3 s";
    const join = actionOf("forever", ({ note }) => (note(answer), forever));
    const { problem } = await conduct(one, [actionStage("join", join, { nodes: one, timeout: 0.005 })]);
    expect(problem).to.deep.include({
      code: "STAGE_TIMEOUT",
      message: "stage “join” took longer than 0.005 s for “n1”",
      detail: `at work on the bastion: forever\nits last answer: ${answer}`,
    });
  });

  it("ends a stage of steps that passes its timeout by force", async () => {
    const lessons = { "s/a": { after: forever } };
    const { log, problem } = await conduct(one, [a(one, { timeout: 0.005 }), b(one)], { lessons });
    expect(log).to.include("n1 abort").and.not.include("n1 step s/b");
    const detail = "at work on n1: “a” (command.run)\nit gave no answer";
    expect(problem).to.deep.include({ code: "STAGE_TIMEOUT", detail });
  });

  it("F-17: a stop lets the running step end, starts no other, and ends with 130", async () => {
    const stop = new AbortController();
    const { log, ended, exitCode, stages } = await conduct(
      two,
      [applyStage("a", two, ["s/a", "s/b"], { pace: { batch: 1 } })],
      { lessons: { "s/a": { begins: () => stop.abort() } }, deps: { stop: stop.signal } },
    );
    expect(log).to.deep.equal("n1 connect, n1 perform [a], n1 step s/a, n1 stop, n1 finish interrupted".split(", "));
    expect(ended).to.have.members(["n1 interrupted", "n2 not-started"]);
    expect([exitCode, stages]).to.deep.equal([130, ["a interrupted"]]);
  });

  it("F-17: a run that was stopped in its very last step, which came to its end, is done", async () => {
    const stop = new AbortController();
    const lessons = { "s/a": { begins: () => stop.abort() } };
    const { ended, exitCode, stages } = await conduct(one, [a(one)], { lessons, deps: { stop: stop.signal } });
    expect([exitCode, stages, ended]).to.deep.equal([0, ["a ok"], ["n1 done"]]);
  });

  it("calls a node that a gate kept out not started when it was only looked at, and interrupted when it was changed", async () => {
    const gate = acts("gate", refuses("INTERRUPTED", "no"));
    const { ended, exitCode } = await conduct(two, [a(two), gate, b(two)], {
      lessons: { "n1 s/a": { outcome: "ok" }, "n2 s/a": { outcome: "changed" } },
    });
    expect([exitCode, ended]).to.deep.equal([1, ["n1 not-started", "n2 interrupted"]]);
  });

  it("F-17: an abort ends running steps and actions", async () => {
    const abort = new AbortController();
    const begins = () => queueMicrotask(() => abort.abort());
    const stepped = await conduct(one, [a(one)], {
      lessons: { "s/a": { after: forever, begins } },
      deps: { abort: abort.signal },
    });
    expect([stepped.exitCode, stepped.log.at(-1)]).to.deep.equal([130, "n1 finish interrupted"]);
    const other = new AbortController();
    const action = () => (queueMicrotask(() => other.abort()), forever);
    const acted = await conduct(one, [acts("x", action, { nodes: one })], { deps: { abort: other.signal } });
    expect([acted.exitCode, acted.ended]).to.deep.equal([130, ["n1 interrupted"]]);
  });

  it("V11: no to a question interrupts the run, and what follows a failure is done all the same", async () => {
    const problem = { code: "CONFIRM_DENIED", message: "answered no" } as const;
    const ask = (fields: Partial<PlannedStage>) => acts("ask", refuses(problem.code, problem.message), fields);
    const alone = await conduct(one, [ask({ onFailure: [acts("back")] }), a(one)]);
    expect([alone.exitCode, alone.log]).to.deep.equal([130, []]);
    const finished = { type: "run.finished", outcome: "interrupted", exitCode: 130, problem };
    expect(alone.said("run.finished")).to.deep.equal([finished]);
    expect(alone.stages).to.include.members(["ask interrupted", "back ok"]);
    expect(alone.said("action.finished")[0]).to.include({ outcome: "interrupted" });
    const each = await conduct(two, [ask({ nodes: one }), a(["n2"])]);
    expect([each.exitCode, each.ended]).to.deep.equal([130, ["n1 interrupted", "n2 done"]]);
  });

  it("M3: a stop ends an action at once that says so, and waits for others", async () => {
    const act = async (endsAtStop?: true) => {
      const stop = new AbortController();
      const action = actionOf("long", () => (queueMicrotask(() => stop.abort()), endsAtStop && forever));
      const stage = actionStage("x", { ...action, ...(endsAtStop && { endsAtStop }) }, { nodes: one });
      const { said } = await conduct(one, [stage], { deps: { stop: stop.signal } });
      return said("action.finished").map((event) => "outcome" in event && event.outcome);
    };
    expect([await act(true), await act()]).to.deep.equal([["interrupted"], ["ok"]]);
  });

  it("leaves a stage out whose `when` is false, telling the condition (G7), and never connects for that alone", async () => {
    for (const [fields, reason] of [
      [{ when: ({ node }) => node?.name === "n9" }, "its “when” is false"],
      [{ when: () => false, condition: "{{params.wipe}}" }, "not needed: {{params.wipe}} is false"],
    ] satisfies readonly [Partial<PlannedStage>, string][]) {
      const { log, said, exitCode } = await conduct(one, [a(one, fields)]);
      expect([log, exitCode]).to.deep.equal([[], 0]);
      expect(said("stage.finished")).to.deep.equal([
        { type: "stage.finished", stage: "a", outcome: "skipped", reason },
      ]);
    }
  });

  it("a stage that rests on a skipped stage's output says so instead of running", async () => {
    const issue = acts("issue", () => nothing, { nodes: one, when: () => false });
    const { problem, log } = await conduct(one, [issue, a(one, { dependencies: new Set(["issue"]) })]);
    expect([problem?.code, log]).to.deep.equal(["STAGE_OUTPUT_UNKNOWN", []]);
  });

  it("a dry run plans actions and calls what rests on an unknown value unknown", async () => {
    const certs = applyStage("certs", one, [], {
      dependencies: new Set(["issue"]),
      task: {
        kind: "apply",
        expand: ({ stages }) => {
          const { after } = stages["issue"] as Unknown;
          return Promise.resolve([
            unresolvedStep("s/b", { render: () => ({ kind: "unknown", id: "s/b", title: "b", after }) }),
          ]);
        },
      },
    });
    const issue = acts("issue", () => expect.fail("run in a dry run"), { nodes: one });
    const { log, exitCode, said } = await conduct(one, [applyStage("key", one, ["s/a"]), issue, certs], {
      lessons: { "s/a": { outcome: "changed" } },
      request: { dryRun: true },
    });
    expect(exitCode).to.equal(0);
    const acted = {
      type: "action.finished",
      stage: "issue",
      action: "issue",
      item: "n1",
      outcome: "unknown",
      duration: 0,
    };
    expect(said("action.finished")).to.deep.include(acted);
    expect(log).to.include("n1 unknown s/b");
    expect(said("step.finished").at(-1)).to.include({ step: "s/b", outcome: "unknown", reason: "after stage issue" });
  });

  it("a dry run hands on what an action's plan knows", async () => {
    const seen: unknown[] = [];
    const noRun = (): never => expect.fail("run in a dry run");
    const issue = testAction("issue", noRun, () => ({ changed: true, outputs: { cert: "kept" } }));
    const use = testAction("use", noRun, () => nothing);
    const args: Extract<PlannedStage["task"], { kind: "action" }>["args"] = ({ stages }) =>
      void seen.push(stages["issue"]);
    const task = { kind: "action", action: use, args } as const;
    const { said } = await conduct(one, [actionStage("issue", issue), actionStage("use", use, { task })], {
      request: { dryRun: true },
    });
    expect(seen).to.deep.equal([{ cert: "kept" }]);
    const outcomes = said("action.finished").map((event) => "outcome" in event && event.outcome);
    expect(outcomes).to.deep.equal(["would-change", "ok"]);
  });

  it("asks for the CA's passphrase once, and for no confirmation with --yes", async () => {
    const asked: string[] = [];
    const got: unknown[] = [];
    const issue = acts(
      "issue",
      async ({ passphrase, ask }) =>
        void got.push(await passphrase(), await ask({ kind: "confirm", text: "Go on?", secret: false })),
      { nodes: two },
    );
    await conduct(two, [issue], {
      request: { yes: true },
      deps: { ask: ({ text }) => (asked.push(text), Promise.resolve("open sesame")) },
    });
    expect(asked).to.deep.equal(["Passphrase of the cluster CA’s keys"]);
    expect(got).to.have.members(["open sesame", "open sesame", "yes", "yes"]);
  });

  it("looks at nodes without a single step", async () => {
    const { log, exitCode } = await conduct(one, [applyStage("look", one, [], { task: { kind: "look" } })]);
    expect([log, exitCode]).to.deep.equal([["n1 connect", "n1 perform []", "n1 finish done"], 0]);
  });

  it("F-3: a resumed run tells each session which ends of steps are recorded", async () => {
    const at = { seq: 1, at: 0, node: "n1", stage: "a", title: "", module: "", type: "step.finished" } as const;
    const earlier = [
      { ...at, step: "s/a", outcome: "changed" },
      { ...at, step: "s/b", outcome: "failed" },
    ] as const;
    const { nodes, said } = await conduct(one, [a(one)], { deps: { earlier } });
    expect(Object.fromEntries(nodes.options.get("n1")?.recorded ?? [])).to.deep.equal({
      "s/a": ["changed"],
      "s/b": ["failed"],
    });
    expect(said("run.started")[0]).to.include({ resumed: true });
  });
});

/** A stage with the step s/b that rests on the stage `on`, and records in `seen` the facts it got. */
function seeing(id: string, on: string, seen: unknown[], nodes: readonly string[]): PlannedStage {
  return applyStage(id, nodes, [], {
    dependencies: new Set([on]),
    task: { kind: "apply", expand: ({ stages }) => (seen.push(stages[on]), Promise.resolve([unresolvedStep("s/b")])) },
  });
}

describe("what follows when a run failed", () => {
  const lessons: Given["lessons"] = {
    "s/a": { outcome: "changed" },
    "n2 s/a": failed,
    "s/undo": { outcome: "changed" },
  };
  const stages = [
    applyStage("first", one, ["s/a"]),
    applyStage("second", ["n2"], ["s/a"], { pace: { maxFailures: 0 } }),
    applyStage("third", ["n3"], ["s/a"]),
  ];
  const onFailure = ["n3", "n1"].map((name) => applyStage(`undo-${name}`, [name], ["s/undo"]));
  const run = (given: Given = {}) => conduct(["n1", "n2", "n3"], stages, { lessons, onFailure, ...given });

  it("is done once, in its order, on nodes that are left, though they were through", async () => {
    const { log, exitCode, stages: ended } = await run();
    expect(log.filter((line) => / step | rest| finish/.test(line)).join(", ")).to.equal(
      "n1 step s/a, n1 rest, n2 step s/a, n2 finish failed, n3 step s/undo, n3 rest, n1 step s/undo, n1 rest, " +
        "n1 finish interrupted, n3 finish interrupted",
    );
    const all = ["first ok", "second failed", "undo-n3 ok", "undo-n1 ok", "third skipped"];
    expect([exitCode, ended]).to.deep.equal([1, all]);
  });

  it("ends each stage after its last node that is left", async () => {
    const names = ["n3", "n2", "n1"];
    const { events } = await run({
      onFailure: [applyStage("undo", names, ["s/undo"]), applyStage("look", names, ["s/b"])],
      lessons: { ...lessons, "n3 s/undo": failed },
    });
    const ended = events.filter((event) => event.type === "stage.finished" && /undo|look/.test(event.stage));
    expect(ended).to.deep.equal([
      { type: "stage.finished", stage: "undo", outcome: "failed", reason: "1 of 2 nodes: n3" },
      { type: "stage.finished", stage: "look", outcome: "ok" },
    ]);
  });

  it("is left alone in a dry run, in a run that is stopped, and when nothing failed", async () => {
    for (const given of [
      { request: { dryRun: true } },
      { deps: { stop: AbortSignal.abort("stop") } },
      { lessons: { "s/a": {} } },
    ] satisfies readonly Given[])
      expect((await run(given)).log.filter((line) => line.includes("undo"))).to.deep.equal([]);
  });

  it("is all that a resumed run goes on with once it was begun", async () => {
    const began = { seq: 9, at: 1, type: "stage.started", stage: "undo-n3" } as const;
    const request = { command: "kcore orchestrate x" };
    const { log, exitCode, said } = await run({ deps: { earlier: [began] }, request });
    expect(log.filter((line) => line.includes(" step "))).to.deep.equal(["n3 step s/undo", "n1 step s/undo"]);
    expect(exitCode).to.equal(1);
    expect(JSON.stringify(said("warning"))).to.contain("to begin anew: kcore orchestrate x");
  });
});

describe("the pace of a stage", () => {
  it("leaves room for nodes that failed: no more are under way than may be unavailable", async () => {
    let [under, most] = [0, 0];
    const gate = Promise.withResolvers<void>();
    const begins = (): void => {
      most = Math.max(most, ++under);
      // A third step would begin before the next turn of the event loop.
      if (under === 2) setImmediate(gate.resolve);
    };
    const names = ["n1", "n2", "n3", "n4"];
    const after = gate.promise.then(() => void (under = 0));
    const { exitCode } = await conduct(names, [a(names), acts("all"), b(names, { pace: { maxUnavailable: 3 } })], {
      lessons: { "s/b": { begins, after } },
      unreachable: ["n4"],
    });
    expect([exitCode, most]).to.deep.equal([3, 2]);
  });

  it("connects anew before a stage that asks for it, but not in a dry run", async () => {
    const stages = [a(one), b(one, { reconnect: true })];
    const { log } = await conduct(one, stages);
    expect(log.slice(0, 6)).to.deep.equal(
      "n1 connect, n1 perform [a], n1 step s/a, n1 rest, n1 connect, n1 perform [b]".split(", "),
    );
    expect((await conduct(one, stages, { request: { dryRun: true } })).log).to.not.include("n1 rest");
  });
});
