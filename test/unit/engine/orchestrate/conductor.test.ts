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
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
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

type ConductOptions = {
  readonly roster?: Roster;
  readonly prepared?: Readonly<Record<string, PreparedStep>>;
  readonly unreachable?: readonly string[];
  readonly request?: Partial<RunRequest>;
  readonly deps?: Partial<RunDependencies>;
  readonly onFailure?: readonly PlannedStage[];
};

/** Conducts a run in which the steps s/a and s/b are in order, unless `prepared` has other outcomes. */
async function conduct(names: readonly string[], stages: readonly PlannedStage[], given: ConductOptions = {}) {
  const events: RunEventBody[] = [];
  const nodes = fakeNodes({ "s/a": {}, "s/b": {}, ...given.prepared }, given);
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
    eventsOf: (type: RunEventBody["type"]) => events.filter((event) => event.type === type),
    /** `stage outcome` and `node outcome`, in the order in which they ended. */
    stages: events.flatMap((event) => (event.type === "stage.finished" ? [`${event.stage} ${event.outcome}`] : [])),
    ended: events.flatMap((event) => (event.type === "node.finished" ? [`${event.node} ${event.outcome}`] : [])),
    /** The problem of the first node that ended with one. */
    problem: events.flatMap((event) => (event.type === "node.finished" && event.problem) || [])[0],
  };
}

const [single, both] = [["n1"], ["n1", "n2"]];
const stageA = (names: readonly string[], fields: Partial<PlannedStage> = {}) =>
  applyStage("a", names, ["s/a"], fields);
const stageB = (names: readonly string[], fields: Partial<PlannedStage> = {}) =>
  applyStage("b", names, ["s/b"], fields);
const failed: PreparedStep = { outcome: "failed" };
const noChange: ActionResult = { changed: false, outputs: {} };
/** A stage with an action of the same name. */
const actionStageOf = (
  id: string,
  run: (context: ActionContext) => unknown = () => undefined,
  fields: Partial<PlannedStage> = {},
) => actionStage(id, actionOf(id, run), fields);
/** An action that changes nothing and has no outputs, unless `run` returns its result. */
function actionOf(name: string, run: (context: ActionContext) => unknown): Action {
  return testAction(name, async (context) => ((await run(context)) as ActionResult | undefined) ?? noChange);
}
const refusing = (code: ErrorCode, message: string) => () => {
  throw new KcoreError({ code, message });
};
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
const forever = new Promise<never>(() => undefined);

describe("Conductor", () => {
  it("performs adjacent stages of a node in one piece, and finishes the first stage before the second starts", async () => {
    const { log, exitCode, events } = await conduct(single, [stageA(single), stageB(single)]);
    expect(log).to.deep.equal("n1 connect, n1 perform [a+b], n1 step s/a, n1 step s/b, n1 finish done".split(", "));
    const order = events.flatMap((event) =>
      event.type.startsWith("stage.") && "stage" in event ? `${event.type} ${event.stage}` : [],
    );
    expect(order).to.deep.equal("stage.started a, stage.finished a, stage.started b, stage.finished b".split(", "));
    expect([exitCode, events[0]?.type]).to.deep.equal([0, "run.started"]);
    expect(events.at(-1)).to.deep.equal({ type: "run.finished", outcome: "done", exitCode: 0 });
  });

  it("disconnects waiting nodes where the limit of open files is low, and warns once (F-30)", async () => {
    const names = Array.from({ length: 6 }, (_, index) => `n${index + 1}`);
    const stages = [stageA(names), actionStageOf("between"), stageB(names)];
    const text =
      "this machine lets kcore open too few files (74): no more than 5 nodes are connected at a time; to raise it: ulimit -n";
    for (const [given, rests, warnings] of [
      [{ deps: { openFiles: 64 + 2 * 5 } }, 6, [text]],
      // A pair at a time, but each keeps its connection from the first stage to the last.
      [{ request: { concurrency: 2 }, deps: { openFiles: 64 + 2 * 5 } }, 6, [text]],
      [{ deps: { openFiles: 1024 } }, 0, []],
    ] as const) {
      const { log, exitCode, eventsOf } = await conduct(names, stages, given);
      expect([exitCode, log.filter((line) => line.endsWith(" rest")).length]).to.deep.equal([0, rests]);
      expect(eventsOf("warning").map((event) => "text" in event && event.text)).to.deep.equal(warnings);
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
    const count = actionStageOf("count", async () => {
      // A WeakRef holds its session until the turn in which it was made is over.
      await new Promise((resolve) => setImmediate(resolve));
      collectGarbage();
      kept.push(sessions.filter((session) => session.deref() !== undefined).length);
    });
    const { ended } = await conduct(names, [stageA(names), count], { deps: { openSession } });
    expect([sessions.length, ended.length, kept]).to.deep.equal([5, 5, [0]]);
  });

  it("gives OpenSSH's client a minute to log in, since an operator may have to touch a security key", async () => {
    const roster = rosterOf("n1", nodeEntry("n2", { transport: "openssh" }));
    const { nodes } = await conduct(both, [stageA(both)], { roster });
    const limits = [...nodes.options].map(([name, { connectTimeout }]) => [name, connectTimeout]);
    expect(Object.fromEntries(limits)).to.deep.equal({ n1: 10_000, n2: 60_000 });
  });

  it("finishes a stage after its last step, though a step of the next stage has begun", async () => {
    const { nodes } = await conduct([], []);
    const deps: Partial<RunDependencies> = {
      openSession: (options) => ({
        ...nodes.open(options),
        // A batch begins files of both stages before the first stage ends.
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
    const { events } = await conduct(single, [stageA(single), stageB(single)], { deps });
    const order = events.flatMap((event) => {
      if (event.type === "step.finished") return [event.step];
      return event.type === "stage.finished" ? [event.stage] : [];
    });
    expect(order).to.deep.equal(["s/a", "a", "s/b", "b"]);
  });

  it("begins a new piece before a stage that uses a value registered by an earlier one", async () => {
    const seen: unknown[] = [];
    const { log } = await conduct(
      single,
      [applyStage("key", single, [unresolvedStep("s/a", { register: "spki" })]), seeing("use", "key", seen, single)],
      { prepared: { "s/a": { registered: { stdout: "AAAA" } } } },
    );
    expect(log.filter((line) => line.includes("perform"))).to.deep.equal(["n1 perform [key]", "n1 perform [use]"]);
    const spki = { changed: false, rc: 0, stdout: "AAAA", facts: {} };
    expect(JSON.parse(JSON.stringify(seen))).to.deep.equal([{ spki }]);
  });

  it("lets no node wait for a slow one, also at an action for each node (F-13)", async () => {
    const slow = Promise.withResolvers<void>();
    const order: string[] = [];
    const join = actionStageOf(
      "join",
      ({ node }) => {
        order.push(node?.name ?? "");
        if (node?.name === "n2") slow.resolve();
      },
      { nodes: both },
    );
    const { exitCode } = await conduct(both, [stageA(both), join], { prepared: { "n1 s/a": { after: slow.promise } } });
    expect([order, exitCode]).to.deep.equal([["n2", "n1"], 0]);
  });

  it("ends only the failed node, and skips its later stages", async () => {
    const { exitCode, events, ended, stages, log } = await conduct(
      both,
      [stageA(both), stageB(both, { pace: { batch: 1 } })],
      {
        prepared: { "n1 s/a": failed },
      },
    );
    expect([exitCode, ended, stages]).to.deep.equal([1, ["n1 failed", "n2 done"], ["a failed", "b ok"]]);
    expect(log).to.include("n2 step s/b").and.not.include("n1 step s/b");
    expect(events[0]).to.deep.include({ type: "run.started", roles: {}, dcs: { DC1: [0, 1] } });
    expect(events.at(-1)).to.deep.include({ type: "run.finished", outcome: "failed", exitCode: 1 });
    expect(events.at(-1)).to.have.nested.property("problem.message", "a failed");
  });

  it("exits with 3 where nodes are unreachable and none failed, also beyond maxFailures (F-14)", async () => {
    const alone = await conduct(both, [stageA(both)], { unreachable: single });
    expect([alone.exitCode, alone.ended]).to.deep.equal([3, ["n1 unreachable", "n2 done"]]);
    const mixed = await conduct(both, [stageA(both)], { prepared: { "s/a": failed }, unreachable: single });
    const halted = await conduct(both, [stageA(both, { pace: { batch: 1, maxFailures: 0 } })], { unreachable: single });
    expect([mixed.exitCode, halted.exitCode, halted.ended[1]]).to.deep.equal([1, 3, "n2 not-started"]);
  });

  it("takes each batch through all stages of its block before the next batch", async () => {
    const pace = { batch: 1 };
    const { log } = await conduct(both, [stageA(both, { pace }), stageB(both, { pace })]);
    expect(log.filter((line) => line.includes("step"))).to.deep.equal(
      "n1 step s/a, n1 step s/b, n2 step s/a, n2 step s/b".split(", "),
    );
  });

  it("has at most `concurrency` nodes at work", async () => {
    let [now, most] = [0, 0];
    const preparedStep = (): PreparedStep => {
      const done = Promise.withResolvers<void>();
      const end = (): void => {
        now--;
        done.resolve();
      };
      return { after: done.promise, begins: () => void ((most = Math.max(most, ++now)), setImmediate(end)) };
    };
    const names = ["n1", "n2", "n3", "n4", "n5"];
    const prepared = Object.fromEntries(names.map((name) => [`${name} s/a`, preparedStep()]));
    await conduct(names, [stageA(names, { pace: { concurrency: 2 } })], { prepared });
    expect(most).to.equal(2);
  });

  it("starts no further node once more than `maxFailures` nodes failed", async () => {
    const names = ["n1", "n2", "n3", "n4"];
    for (const [maxFailures, bad, ended, warned] of [
      [0, ["n1"], "n1 failed, n2 not-started, n3 not-started, n4 not-started", "1 node failed, 0 may fail"],
      [1, ["n1"], "n1 failed, n2 done, n3 done, n4 done", undefined],
      [1, ["n1", "n3"], "n1 failed, n2 done, n3 failed, n4 not-started", "2 nodes failed, 1 may fail"],
    ] as const) {
      const prepared = Object.fromEntries(bad.map((name) => [`${name} s/a`, failed]));
      const ran = await conduct(names, [stageA(names, { pace: { batch: 1, maxFailures } })], { prepared });
      const warnings = warned === undefined ? [] : [{ type: "warning", text: `${warned}: nothing further starts` }];
      expect([ran.exitCode, ran.ended, ran.eventsOf("warning")]).to.deep.equal([1, ended.split(", "), warnings]);
      expect([...ran.nodes.options.keys()]).to.deep.equal(names.filter((name) => !ended.includes(`${name} not-`)));
    }
  });

  it("runs a failed stage's onFailure stages on that node, then ends it", async () => {
    const undone: unknown[] = [];
    const uncordon = actionStageOf("uncordon", ({ node }) => void undone.push(node?.name), { nodes: both });
    const onFailure = [applyStage("clean", both, ["s/b"]), uncordon];
    const { log, stages, exitCode } = await conduct(both, [stageA(both, { onFailure })], {
      prepared: { "n1 s/a": failed },
    });
    expect([undone, exitCode]).to.deep.equal([["n1"], 1]);
    expect(log).to.include("n1 step s/b").and.not.include("n2 step s/b");
    expect(log.filter((line) => line.startsWith("n1")).at(-1)).to.equal("n1 finish failed");
    expect(stages).to.include.members(["clean:n1 ok", "uncordon:n1 ok"]);
  });

  it("fails the node for which an action fails", async () => {
    const issue = ({ node }: ActionContext) => node?.name === "n1" && refusing("NODE_REJECTED", "not this one")();
    const { ended, exitCode } = await conduct(both, [
      actionStageOf("issue", (given) => issue(given) || noChange, { nodes: both }),
      stageA(both),
    ]);
    expect([ended, exitCode]).to.deep.equal([["n1 failed", "n2 done"], 1]);
  });

  it("ends the run when an action without a node fails", async () => {
    const health = actionStageOf("health", refusing("CLUSTER_UNHEALTHY", "c1 is down"));
    const { events, exitCode, log, stages, ended } = await conduct(single, [health, stageA(single)]);
    expect([log, stages, ended, exitCode]).to.deep.equal([[], ["health failed", "a skipped"], ["n1 not-started"], 1]);
    expect(events.at(-1)).to.have.nested.property("problem.code", "CLUSTER_UNHEALTHY");
  });

  it("skips actions between stages, and actions that depend on a stage, once no node is left", async () => {
    const never = (id: string, fields = {}) => actionStageOf(id, () => expect.fail("called"), fields);
    const all = [stageA(single), never("health"), stageB(single), never("last", { dependencies: new Set(["b"]) })];
    const { stages } = await conduct(single, all, { prepared: { "s/a": failed } });
    expect(stages).to.deep.equal(["a failed", "b skipped", "health skipped", "last skipped"]);
  });

  for (const how of ["failed", "unreachable"] as const)
    it(`runs the closing actions after all nodes are ${how}; their own failures are warnings`, async () => {
      const endings: string[] = [];
      const notice = ({ ended }: ActionContext) =>
        void endings.push([...ended].map(([name, { outcome }]) => `${name} ${outcome}`).join(", "));
      const bad = refusing("CLUSTER_UNHEALTHY", "nobody answers");
      const { events, exitCode, eventsOf, stages } = await conduct(
        both,
        [stageA(both), actionStageOf("bad", bad), actionStageOf("close", notice)],
        {
          ...(how === "failed" ? { prepared: { "s/a": failed } } : { unreachable: both }),
          onFailure: [actionStageOf("bad-too", bad), actionStageOf("tell", notice)],
        },
      );
      const all = `n1 ${how}, n2 ${how}`;
      expect([endings, exitCode]).to.deep.equal([[all, all], how === "failed" ? 1 : 3]);
      expect(stages.slice(-4)).to.deep.equal(["bad failed", "close ok", "bad-too failed", "tell ok"]);
      expect(JSON.stringify(events.at(-1))).not.to.include("CLUSTER_UNHEALTHY");
      expect(JSON.stringify(eventsOf("warning"))).to.include("nobody answers");
    });

  it("runs no onFailure stage where nodes are unreachable but others came through", async () => {
    const onFailure = [actionStageOf("tell", () => expect.fail("called"))];
    const { exitCode, eventsOf } = await conduct(both, [stageA(both)], { unreachable: single, onFailure });
    expect([exitCode, eventsOf("action.finished")]).to.deep.equal([3, []]);
  });

  it("exits with 70 after a bug in an action, with every node and stage finished", async () => {
    const bug = (): never => {
      throw new TypeError("undefined is not a function");
    };
    const { exitCode, ended, stages } = await conduct(single, [
      actionStageOf("bug", bug, { nodes: single }),
      stageA(single),
    ]);
    expect([exitCode, ended, stages]).to.deep.equal([70, ["n1 failed"], ["bug failed", "a skipped"]]);
  });

  it("ends an action at its timeout with the action's last note", async () => {
    const answer = "192.0.2.7 port 9090 does not answer yet: silent for 3 s";
    const join = actionOf("forever", ({ note }) => (note(answer), forever));
    const { problem } = await conduct(single, [actionStage("join", join, { nodes: single, timeout: 0.005 })]);
    expect(problem).to.deep.include({
      code: "STAGE_TIMEOUT",
      message: "stage “join” took longer than 0.005 s for “n1”",
      detail: `at work on the bastion: forever\nits last answer: ${answer}`,
    });
  });

  it("aborts the steps of a stage at its timeout", async () => {
    const prepared = { "s/a": { after: forever } };
    const { log, problem } = await conduct(single, [stageA(single, { timeout: 0.005 }), stageB(single)], { prepared });
    expect(log).to.include("n1 abort").and.not.include("n1 step s/b");
    const detail = "at work on n1: “a” (command.run)\nit gave no answer";
    expect(problem).to.deep.include({ code: "STAGE_TIMEOUT", detail });
  });

  it("lets the running step end after a stop, starts no other, and exits with 130 (F-17)", async () => {
    const stop = new AbortController();
    const { log, ended, exitCode, stages } = await conduct(
      both,
      [applyStage("a", both, ["s/a", "s/b"], { pace: { batch: 1 } })],
      { prepared: { "s/a": { begins: () => stop.abort() } }, deps: { stop: stop.signal } },
    );
    expect(log).to.deep.equal("n1 connect, n1 perform [a], n1 step s/a, n1 stop, n1 finish interrupted".split(", "));
    expect(ended).to.have.members(["n1 interrupted", "n2 not-started"]);
    expect([exitCode, stages]).to.deep.equal([130, ["a interrupted"]]);
  });

  it("is done when a stop comes in the last step and that step succeeds (F-17)", async () => {
    const stop = new AbortController();
    const prepared = { "s/a": { begins: () => stop.abort() } };
    const { ended, exitCode, stages } = await conduct(single, [stageA(single)], {
      prepared,
      deps: { stop: stop.signal },
    });
    expect([exitCode, stages, ended]).to.deep.equal([0, ["a ok"], ["n1 done"]]);
  });

  it("reports a node behind a failed action as not started, or as interrupted if a step changed it", async () => {
    const gate = actionStageOf("gate", refusing("INTERRUPTED", "no"));
    const { ended, exitCode } = await conduct(both, [stageA(both), gate, stageB(both)], {
      prepared: { "n1 s/a": { outcome: "ok" }, "n2 s/a": { outcome: "changed" } },
    });
    expect([exitCode, ended]).to.deep.equal([1, ["n1 not-started", "n2 interrupted"]]);
  });

  it("ends running steps and actions at an abort (F-17)", async () => {
    const abort = new AbortController();
    const begins = () => queueMicrotask(() => abort.abort());
    const stepped = await conduct(single, [stageA(single)], {
      prepared: { "s/a": { after: forever, begins } },
      deps: { abort: abort.signal },
    });
    expect([stepped.exitCode, stepped.log.at(-1)]).to.deep.equal([130, "n1 finish interrupted"]);
    const other = new AbortController();
    const action = () => (queueMicrotask(() => other.abort()), forever);
    const acted = await conduct(single, [actionStageOf("x", action, { nodes: single })], {
      deps: { abort: other.signal },
    });
    expect([acted.exitCode, acted.ended]).to.deep.equal([130, ["n1 interrupted"]]);
  });

  it("is interrupted by the answer no, and runs the onFailure stages", async () => {
    const problem = { code: "CONFIRM_DENIED", message: "answered no" } as const;
    const ask = (fields: Partial<PlannedStage>) =>
      actionStageOf("ask", refusing(problem.code, problem.message), fields);
    const alone = await conduct(single, [ask({ onFailure: [actionStageOf("back")] }), stageA(single)]);
    expect([alone.exitCode, alone.log]).to.deep.equal([130, []]);
    const finished = { type: "run.finished", outcome: "interrupted", exitCode: 130, problem };
    expect(alone.eventsOf("run.finished")).to.deep.equal([finished]);
    expect(alone.stages).to.include.members(["ask interrupted", "back ok"]);
    expect(alone.eventsOf("action.finished")[0]).to.include({ outcome: "interrupted" });
    const each = await conduct(both, [ask({ nodes: single }), stageA(["n2"])]);
    expect([each.exitCode, each.ended]).to.deep.equal([130, ["n1 interrupted", "n2 done"]]);
  });

  it("ends an action with endsAtStop at a stop, and waits for other actions", async () => {
    const act = async (endsAtStop?: true) => {
      const stop = new AbortController();
      const action = actionOf("long", () => (queueMicrotask(() => stop.abort()), endsAtStop && forever));
      const stage = actionStage("x", { ...action, ...(endsAtStop && { endsAtStop }) }, { nodes: single });
      const { eventsOf } = await conduct(single, [stage], { deps: { stop: stop.signal } });
      return eventsOf("action.finished").map((event) => "outcome" in event && event.outcome);
    };
    expect([await act(true), await act()]).to.deep.equal([["interrupted"], ["ok"]]);
  });

  it("skips a stage whose `when` is false, with the condition, and does not connect for it", async () => {
    for (const [fields, reason] of [
      [{ when: ({ node }) => node?.name === "n9" }, "its “when” is false"],
      [{ when: () => false, condition: "{{params.wipe}}" }, "not needed: {{params.wipe}} is false"],
    ] satisfies readonly [Partial<PlannedStage>, string][]) {
      const { log, eventsOf, exitCode } = await conduct(single, [stageA(single, fields)]);
      expect([log, exitCode]).to.deep.equal([[], 0]);
      expect(eventsOf("stage.finished")).to.deep.equal([
        { type: "stage.finished", stage: "a", outcome: "skipped", reason },
      ]);
    }
  });

  it("fails a stage that depends on a skipped stage's output", async () => {
    const issue = actionStageOf("issue", () => noChange, { nodes: single, when: () => false });
    const { problem, log } = await conduct(single, [issue, stageA(single, { dependencies: new Set(["issue"]) })]);
    expect([problem?.code, log]).to.deep.equal(["STAGE_OUTPUT_UNKNOWN", []]);
  });

  it("plans actions in a dry run, and reports steps that depend on an unknown value as unknown", async () => {
    const certs = applyStage("certs", single, [], {
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
    const issue = actionStageOf("issue", () => expect.fail("run in a dry run"), { nodes: single });
    const { log, exitCode, eventsOf } = await conduct(single, [applyStage("key", single, ["s/a"]), issue, certs], {
      prepared: { "s/a": { outcome: "changed" } },
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
    expect(eventsOf("action.finished")).to.deep.include(acted);
    expect(log).to.include("n1 unknown s/b");
    expect(eventsOf("step.finished").at(-1)).to.include({
      step: "s/b",
      outcome: "unknown",
      reason: "after stage issue",
    });
  });

  it("passes the outputs of an action's plan to later stages of a dry run", async () => {
    const received: unknown[] = [];
    const noRun = (): never => expect.fail("run in a dry run");
    const issue = testAction("issue", noRun, () => ({ changed: true, outputs: { cert: "kept" } }));
    const use = testAction("use", noRun, () => noChange);
    const args: Extract<PlannedStage["task"], { kind: "action" }>["args"] = ({ stages }) =>
      void received.push(stages["issue"]);
    const task = { kind: "action", action: use, args } as const;
    const { eventsOf } = await conduct(single, [actionStage("issue", issue), actionStage("use", use, { task })], {
      request: { dryRun: true },
    });
    expect(received).to.deep.equal([{ cert: "kept" }]);
    const outcomes = eventsOf("action.finished").map((event) => "outcome" in event && event.outcome);
    expect(outcomes).to.deep.equal(["would-change", "ok"]);
  });

  it("asks for the CA's passphrase once, and for no confirmation with --yes", async () => {
    const asked: string[] = [];
    const got: unknown[] = [];
    const issue = actionStageOf(
      "issue",
      async ({ passphrase, ask }) =>
        void got.push(await passphrase(), await ask({ kind: "confirm", text: "Go on?", secret: false })),
      { nodes: both },
    );
    await conduct(both, [issue], {
      request: { yes: true },
      deps: { ask: ({ text }) => (asked.push(text), Promise.resolve("open sesame")) },
    });
    expect(asked).to.deep.equal(["Passphrase of the cluster CA’s keys"]);
    expect(got).to.have.members(["open sesame", "open sesame", "yes", "yes"]);
  });

  it("connects to a node without a step for a stage that only looks", async () => {
    const { log, exitCode } = await conduct(single, [applyStage("look", single, [], { task: { kind: "look" } })]);
    expect([log, exitCode]).to.deep.equal([["n1 connect", "n1 perform []", "n1 finish done"], 0]);
  });

  it("gives each session of a resumed run the recorded outcomes of its steps (F-3)", async () => {
    const at = { seq: 1, at: 0, node: "n1", stage: "a", title: "", module: "", type: "step.finished" } as const;
    const earlier = [
      { ...at, step: "s/a", outcome: "changed" },
      { ...at, step: "s/b", outcome: "failed" },
    ] as const;
    const { nodes, eventsOf } = await conduct(single, [stageA(single)], { deps: { earlier } });
    expect(Object.fromEntries(nodes.options.get("n1")?.recorded ?? [])).to.deep.equal({
      "s/a": ["changed"],
      "s/b": ["failed"],
    });
    expect(eventsOf("run.started")[0]).to.include({ resumed: true });
  });
});

/** A stage with the step s/b that depends on the stage `on`, and records in `seen` that stage's outputs. */
function seeing(id: string, on: string, seen: unknown[], nodes: readonly string[]): PlannedStage {
  return applyStage(id, nodes, [], {
    dependencies: new Set([on]),
    task: { kind: "apply", expand: ({ stages }) => (seen.push(stages[on]), Promise.resolve([unresolvedStep("s/b")])) },
  });
}

describe("onFailure of an orchestration", () => {
  const prepared: ConductOptions["prepared"] = {
    "s/a": { outcome: "changed" },
    "n2 s/a": failed,
    "s/undo": { outcome: "changed" },
  };
  const stages = [
    applyStage("first", single, ["s/a"]),
    applyStage("second", ["n2"], ["s/a"], { pace: { maxFailures: 0 } }),
    applyStage("third", ["n3"], ["s/a"]),
  ];
  const onFailure = ["n3", "n1"].map((name) => applyStage(`undo-${name}`, [name], ["s/undo"]));
  const run = (given: ConductOptions = {}) => conduct(["n1", "n2", "n3"], stages, { prepared, onFailure, ...given });

  it("runs once, in its order, on the nodes that have not failed", async () => {
    const { log, exitCode, stages: ended } = await run();
    expect(log.filter((line) => / step | rest| finish/.test(line)).join(", ")).to.equal(
      "n1 step s/a, n1 rest, n2 step s/a, n2 finish failed, n3 step s/undo, n3 rest, n1 step s/undo, n1 rest, " +
        "n1 finish interrupted, n3 finish interrupted",
    );
    const all = ["first ok", "second failed", "undo-n3 ok", "undo-n1 ok", "third skipped"];
    expect([exitCode, ended]).to.deep.equal([1, all]);
  });

  it("finishes each stage after its last remaining node", async () => {
    const names = ["n3", "n2", "n1"];
    const { events } = await run({
      onFailure: [applyStage("undo", names, ["s/undo"]), applyStage("look", names, ["s/b"])],
      prepared: { ...prepared, "n3 s/undo": failed },
    });
    const ended = events.filter((event) => event.type === "stage.finished" && /undo|look/.test(event.stage));
    expect(ended).to.deep.equal([
      { type: "stage.finished", stage: "undo", outcome: "failed", reason: "1 of 2 nodes: n3" },
      { type: "stage.finished", stage: "look", outcome: "ok" },
    ]);
  });

  it("is skipped in a dry run, in a stopped run, and when no node failed", async () => {
    for (const given of [
      { request: { dryRun: true } },
      { deps: { stop: AbortSignal.abort("stop") } },
      { prepared: { "s/a": {} } },
    ] satisfies readonly ConductOptions[])
      expect((await run(given)).log.filter((line) => line.includes("undo"))).to.deep.equal([]);
  });

  it("is all that a resumed run carries out once it had begun", async () => {
    const began = { seq: 9, at: 1, type: "stage.started", stage: "undo-n3" } as const;
    const request = { command: "kcore orchestrate x" };
    const { log, exitCode, eventsOf } = await run({ deps: { earlier: [began] }, request });
    expect(log.filter((line) => line.includes(" step "))).to.deep.equal(["n3 step s/undo", "n1 step s/undo"]);
    expect(exitCode).to.equal(1);
    expect(JSON.stringify(eventsOf("warning"))).to.contain("to begin anew: kcore orchestrate x");
  });
});

describe("the pace of a stage", () => {
  it("counts failed nodes towards maxUnavailable", async () => {
    let [under, most] = [0, 0];
    const gate = Promise.withResolvers<void>();
    const begins = (): void => {
      most = Math.max(most, ++under);
      // A third step would begin before the next turn of the event loop.
      if (under === 2) setImmediate(gate.resolve);
    };
    const names = ["n1", "n2", "n3", "n4"];
    const after = gate.promise.then(() => void (under = 0));
    const { exitCode } = await conduct(
      names,
      [stageA(names), actionStageOf("all"), stageB(names, { pace: { maxUnavailable: 3 } })],
      {
        prepared: { "s/b": { begins, after } },
        unreachable: ["n4"],
      },
    );
    expect([exitCode, most]).to.deep.equal([3, 2]);
  });

  it("reconnects before a stage with `reconnect`, but not in a dry run", async () => {
    const stages = [stageA(single), stageB(single, { reconnect: true })];
    const { log } = await conduct(single, stages);
    expect(log.slice(0, 6)).to.deep.equal(
      "n1 connect, n1 perform [a], n1 step s/a, n1 rest, n1 connect, n1 perform [b]".split(", "),
    );
    expect((await conduct(single, stages, { request: { dryRun: true } })).log).to.not.include("n1 rest");
  });
});

describe("the revision of a node", () => {
  it("is kept if the node had steps that are no checks", async () => {
    const kept = async (steps: readonly (string | UnresolvedStep)[]): Promise<readonly string[]> => {
      const names: string[] = [];
      await conduct(single, [applyStage("a", single, steps)], {
        request: { what: { kind: "state", names: ["s"] } },
        deps: { keepRevision: (node) => void names.push(node) },
      });
      return names;
    };
    const check = unresolvedStep("s/a", { isCheck: true });
    expect(await kept([check])).to.deep.equal([]);
    expect(await kept([check, "s/b"])).to.deep.equal(single);
  });
});

describe("an action that is a check", () => {
  const planned = (id: string, plan: () => ActionResult, severity: "error" | "warning") => {
    const never = (): ActionResult => {
      throw new Error("a check only looks");
    };
    return actionStage(id, testAction(id, never, plan), { check: { severity, remedy: `mend ${id}` } });
  };
  const refused = refusing("CLUSTER_UNHEALTHY", "no answer") as () => ActionResult;
  const would = (): ActionResult => ({ changed: true, outputs: {} });

  it("only looks; further checks follow its failure, and no other stage does", async () => {
    const { stages, exitCode, eventsOf, log } = await conduct(single, [
      stageA(single),
      planned("first", refused, "error"),
      planned("second", would, "error"),
      planned("third", () => noChange, "error"),
      stageB(single),
    ]);
    expect(stages).to.deep.equal(["a ok", "first failed", "second failed", "third ok", "b skipped"]);
    expect([exitCode, log.includes("n1 step s/b")]).to.deep.equal([1, false]);
    const [problem] = eventsOf("action.finished").flatMap((event) => ("problem" in event ? (event.problem ?? []) : []));
    expect(problem).to.include({ code: "CLUSTER_UNHEALTHY", hint: "mend first" });
  });

  it("is followed by the run's onFailure stages when it fails", async () => {
    let isTold = false;
    const tell = actionStage(
      "tell",
      testAction("tell", () => {
        isTold = true;
        return noChange;
      }),
    );
    const { exitCode } = await conduct(single, [planned("first", refused, "error")], { onFailure: [tell] });
    expect([isTold, exitCode]).to.deep.equal([true, 1]);
  });

  it("has its own onFailure stages, also behind another failed check", async () => {
    const told: string[] = [];
    const check = (id: string) =>
      actionStage(id, testAction(id, refused, refused), {
        check: { severity: "error" },
        onFailure: [actionStageOf(`tell-${id}`, () => void told.push(id))],
      });
    await conduct(single, [check("first"), check("second")]);
    expect(told).to.deep.equal(["first", "second"]);
  });

  it("fails where it cannot tell, except in a dry run", async () => {
    const untold = () => "unknown" as never;
    const stages = [planned("first", untold, "error"), stageB(single)];
    expect((await conduct(single, stages)).exitCode).to.equal(1);
    expect((await conduct(single, stages, { request: { dryRun: true } })).exitCode).to.equal(0);
  });

  it("counts as in order where it only warns", async () => {
    const { stages, exitCode, eventsOf } = await conduct(single, [planned("first", would, "warning"), stageB(single)]);
    expect([stages, exitCode]).to.deep.equal([["first ok", "b ok"], 0]);
    expect(eventsOf("warning")).to.have.length(1);
  });
});
