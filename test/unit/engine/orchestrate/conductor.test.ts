import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { Conductor } from "#engine/orchestrate/conductor.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/execute.ts";
import type { PlannedStage } from "#engine/orchestrate/plan.ts";
import type { Unknown } from "#engine/expressions/unknown.ts";
import { KcoreError } from "#errors/problem.ts";
import { testAction } from "#support/actions.ts";
import { fakeNodes, type FakeNodes, type Lesson } from "#support/fake-session.ts";
import { actionStage, applyStage, draft, rosterOf, runDependencies, runRequest } from "#support/runs.ts";

type Given = {
  readonly lessons?: Readonly<Record<string, Lesson>>;
  readonly unreachable?: readonly string[];
  readonly request?: Partial<RunRequest>;
  readonly deps?: Partial<RunDependencies>;
  readonly onFailure?: readonly PlannedStage[];
};

interface Ran {
  readonly exitCode: number;
  readonly events: RunEventBody[];
  readonly nodes: FakeNodes;
  readonly said: (type: RunEventBody["type"]) => RunEventBody[];
}

async function conduct(names: readonly string[], stages: readonly PlannedStage[], given: Given = {}): Promise<Ran> {
  const events: RunEventBody[] = [];
  const nodes = fakeNodes(given.lessons ?? {}, given);
  const { onFailure = [] } = given;
  const plan = { title: "test", roster: rosterOf(...names), nodes: names, stages, onFailure, warnings: [] };
  const run = new Conductor(plan, runRequest(given.request), runDependencies(nodes, events, given.deps));
  const { exitCode } = await run.conduct();
  return { exitCode, events, nodes, said: (type) => events.filter((event) => event.type === type) };
}

/** `stage outcome` of all stages, in the order in which they ended. */
function stagesOf(events: readonly RunEventBody[]): string[] {
  return events.flatMap((event) => (event.type === "stage.finished" ? [`${event.stage} ${event.outcome}`] : []));
}

function nodesOf(events: readonly RunEventBody[]): string[] {
  return events.flatMap((event) => (event.type === "node.finished" ? [`${event.node} ${event.outcome}`] : []));
}

const both = { "s/a": {}, "s/b": {} };

describe("conducting a run", () => {
  it("sends adjacent stages over a node in one piece", async () => {
    const { nodes, exitCode, events } = await conduct(
      ["n1"],
      [applyStage("one", ["n1"], ["s/a"]), applyStage("two", ["n1"], ["s/b"])],
      { lessons: both },
    );
    expect(nodes.log).to.deep.equal([
      "n1 connect",
      "n1 perform [one+two]",
      "n1 step s/a",
      "n1 step s/b",
      "n1 finish done",
    ]);
    expect(exitCode).to.equal(0);
    expect(stagesOf(events)).to.deep.equal(["one ok", "two ok"]);
    expect(events[0]?.type).to.equal("run.started");
    expect(events.at(-1)).to.deep.equal({ type: "run.finished", outcome: "done", exitCode: 0 });
  });

  it("F-30: with few files to open it lets nodes rest that wait for others, and says so once", async () => {
    const names = Array.from({ length: 6 }, (_, index) => `n${index + 1}`);
    const stages = [
      applyStage("one", names, ["s/a"]),
      actionStage(
        "between",
        testAction("x.wait", () => ({ changed: false, outputs: {} })),
      ),
      applyStage("two", names, ["s/b"]),
    ];
    const { nodes, exitCode, said } = await conduct(names, stages, { lessons: both, deps: { openFiles: 64 + 2 * 5 } });
    expect(exitCode).to.equal(0);
    expect(nodes.log.filter((line) => line.endsWith(" rest"))).to.have.length(6);
    expect(said("warning").map((event) => "text" in event && event.text)).to.deep.equal([
      "this machine lets kcore open too few files (74): no more than 5 nodes are connected at a time; to raise it: ulimit -n",
    ]);
    // A pair at a time, but each keeps its connection from the first stage to the last.
    const pairs = await conduct(names, stages, {
      lessons: both,
      request: { concurrency: 2 },
      deps: { openFiles: 64 + 2 * 5 },
    });
    expect(pairs.nodes.log.filter((line) => line.endsWith(" rest"))).to.have.length(6);
    expect(pairs.said("warning")).to.have.length(1);
    const enough = await conduct(names, stages, { lessons: both, deps: { openFiles: 1024 } });
    expect(enough.nodes.log.filter((line) => line.endsWith(" rest"))).to.deep.equal([]);
    expect(enough.said("warning")).to.deep.equal([]);
  });

  it("shows that the first stage is over before the second begins", async () => {
    const { events } = await conduct(["n1"], [applyStage("one", ["n1"], ["s/a"]), applyStage("two", ["n1"], ["s/b"])], {
      lessons: both,
    });
    const order = events.flatMap((event) => ("stage" in event ? [`${event.type} ${event.stage}`] : []));
    expect(order.indexOf("stage.finished one")).to.be.lessThan(order.indexOf("stage.started two"));
  });

  it("ends a stage after its last node's last step, and not when a step of the next one begins", async () => {
    const stages = [applyStage("one", ["n1"], ["s/a"]), applyStage("two", ["n1"], ["s/b"])];
    const { nodes } = await conduct([], []);
    const deps: Partial<RunDependencies> = {
      openSession: (options) => ({
        ...nodes.open(options),
        // The batch lane begins files of both stages before the first of them has ended.
        perform: () => {
          const [one, two] = [
            { node: "n1", stage: "one", step: "s/a", title: "a", module: "file.managed" },
            { node: "n1", stage: "two", step: "s/b", title: "b", module: "file.managed" },
          ] as const;
          for (const step of [one, two]) options.emit({ type: "step.started", ...step });
          for (const step of [one, two]) options.emit({ type: "step.finished", ...step, outcome: "changed" });
          const [registered, finishedStages] = [new Map(), new Set(["one", "two"])];
          return Promise.resolve({ outcome: "done", registered, finishedStages });
        },
        finish: () => Promise.resolve(),
      }),
    };
    const { events } = await conduct(["n1"], stages, { deps });
    const order = events.flatMap((event) => {
      if (event.type === "step.finished") return [`${event.type} ${event.step}`];
      return "stage" in event && event.type.startsWith("stage.") ? [`${event.type} ${event.stage}`] : [];
    });
    expect(order.filter((line) => /finished/.test(line))).to.deep.equal([
      "step.finished s/a",
      "stage.finished one",
      "step.finished s/b",
      "stage.finished two",
    ]);
  });

  it("cuts a node's stages at an action that concerns it, and gives its outputs to what follows", async () => {
    const seen: unknown[] = [];
    const issue = testAction("pki.issue", ({ node }) => ({ changed: true, outputs: { cert: `for ${node?.name}` } }));
    const { nodes, events } = await conduct(
      ["n1", "n2"],
      [
        applyStage("key", ["n1", "n2"], ["s/a"]),
        actionStage("issue", issue, { nodes: ["n1", "n2"] }),
        applyStage("certs", ["n1", "n2"], [], {
          rests: new Set(["issue"]),
          task: {
            kind: "apply",
            draft: ({ stages }) => {
              seen.push(stages["issue"]);
              return Promise.resolve([draft("s/b")]);
            },
          },
        }),
      ],
      { lessons: both },
    );
    expect(seen).to.deep.equal([{ cert: "for n1" }, { cert: "for n2" }]);
    expect(nodes.log.filter((line) => line.startsWith("n1 perform"))).to.deep.equal([
      "n1 perform [key]",
      "n1 perform [certs]",
    ]);
    expect(stagesOf(events)).to.deep.equal(["key ok", "issue ok", "certs ok"]);
  });

  it("cuts before a stage that rests on what an earlier one registers", async () => {
    const seen: unknown[] = [];
    const { nodes } = await conduct(
      ["n1"],
      [
        applyStage("key", ["n1"], [draft("s/a", { register: "spki" })]),
        applyStage("use", ["n1"], [], {
          rests: new Set(["key"]),
          task: {
            kind: "apply",
            draft: ({ stages }) => {
              seen.push(stages["key"]);
              return Promise.resolve([draft("s/b")]);
            },
          },
        }),
      ],
      { lessons: { ...both, "s/a": { registered: { stdout: "AAAA" } } } },
    );
    expect(nodes.log.filter((line) => line.includes("perform"))).to.deep.equal([
      "n1 perform [key]",
      "n1 perform [use]",
    ]);
    expect(JSON.parse(JSON.stringify(seen))).to.deep.equal([
      { spki: { changed: false, rc: 0, stdout: "AAAA", facts: {} } },
    ]);
  });

  it("F-13: a slow node holds up no other inside a block, not even at an action for each node", async () => {
    const slow = Promise.withResolvers<void>();
    const order: string[] = [];
    const wait = testAction("wait.each", ({ node }) => {
      order.push(node?.name ?? "");
      if (node?.name === "n2") slow.resolve();
      return { changed: false, outputs: {} };
    });
    const { exitCode } = await conduct(
      ["n1", "n2"],
      [applyStage("a", ["n1", "n2"], ["s/a"]), actionStage("join", wait, { nodes: ["n1", "n2"] })],
      { lessons: { "n1 s/a": { after: slow.promise }, "n2 s/a": {} } },
    );
    expect(order).to.deep.equal(["n2", "n1"]);
    expect(exitCode).to.equal(0);
  });

  it("stops a failed node only, and skips its later stages", async () => {
    const { exitCode, events, nodes } = await conduct(
      ["n1", "n2"],
      [applyStage("a", ["n1", "n2"], ["s/a"]), applyStage("b", ["n1", "n2"], ["s/b"], { pace: { batch: 1 } })],
      { lessons: { "n1 s/a": { outcome: "failed" }, ...both } },
    );
    expect(exitCode).to.equal(1);
    expect(nodesOf(events)).to.deep.equal(["n1 failed", "n2 done"]);
    expect(stagesOf(events)).to.deep.equal(["a failed", "b ok"]);
    expect(nodes.log).to.include("n2 step s/b").and.not.include("n1 step s/b");
    const [started, finished] = [events[0], events.at(-1)];
    expect(started).to.include({ type: "run.started" });
    expect(started).to.deep.include({ roles: {}, dcs: { DC1: [0, 1] } });
    expect(finished).to.deep.include({ type: "run.finished", outcome: "failed", exitCode: 1 });
    expect(finished).to.have.nested.property("problem.message", "a failed");
  });

  it("F-14: unreachable nodes alone end with 3, and hold up nobody", async () => {
    const stages = [applyStage("a", ["n1", "n2"], ["s/a"])];
    const alone = await conduct(["n1", "n2"], stages, { lessons: both, unreachable: ["n1"] });
    expect([alone.exitCode, nodesOf(alone.events)]).to.deep.equal([3, ["n1 unreachable", "n2 done"]]);
    const mixed = await conduct(["n1", "n2"], stages, {
      lessons: { "s/a": { outcome: "failed" } },
      unreachable: ["n1"],
    });
    expect(mixed.exitCode).to.equal(1);
  });

  it("goes batch by batch, each batch through all stages of its block", async () => {
    const pace = { batch: 1 };
    const { nodes } = await conduct(
      ["n1", "n2"],
      [applyStage("a", ["n1", "n2"], ["s/a"], { pace }), applyStage("b", ["n1", "n2"], ["s/b"], { pace })],
      { lessons: both },
    );
    const steps = nodes.log.filter((line) => line.includes("step"));
    expect(steps).to.deep.equal(["n1 step s/a", "n1 step s/b", "n2 step s/a", "n2 step s/b"]);
  });

  it("never has more nodes at work than `concurrency` allows", async () => {
    let now = 0;
    let most = 0;
    const lesson = (): Lesson => {
      const done = Promise.withResolvers<void>();
      return {
        after: done.promise,
        begins: () => {
          most = Math.max(most, ++now);
          setImmediate(() => {
            now--;
            done.resolve();
          });
        },
      };
    };
    const names = ["n1", "n2", "n3", "n4", "n5"];
    const lessons = Object.fromEntries(names.map((name) => [`${name} s/a`, lesson()]));
    await conduct(names, [applyStage("a", names, ["s/a"], { pace: { concurrency: 2 } })], { lessons });
    expect(most).to.equal(2);
  });

  it("starts nothing further once more than `maxFailures` nodes failed", async () => {
    const names = ["n1", "n2", "n3"];
    const { exitCode, events, nodes } = await conduct(
      names,
      [applyStage("a", names, ["s/a"], { pace: { batch: 1, maxFailures: 0 } })],
      { lessons: { "n1 s/a": { outcome: "failed" }, ...both } },
    );
    expect(nodesOf(events)).to.deep.equal(["n1 failed", "n2 not-started", "n3 not-started"]);
    expect(exitCode).to.equal(1);
    expect(nodes.options.has("n2")).to.equal(false);
  });

  it("goes on while as many nodes failed as `maxFailures` allows, and halts at the next one", async () => {
    const names = ["n1", "n2", "n3", "n4"];
    const stages = [applyStage("a", names, ["s/a"], { pace: { batch: 1, maxFailures: 1 } })];
    const failed: Lesson = { outcome: "failed" };
    const allowed = await conduct(names, stages, { lessons: { "n1 s/a": failed, ...both } });
    expect(nodesOf(allowed.events)).to.deep.equal(["n1 failed", "n2 done", "n3 done", "n4 done"]);
    expect(allowed.said("warning")).to.deep.equal([]);
    const halted = await conduct(names, stages, { lessons: { "n1 s/a": failed, "n3 s/a": failed, ...both } });
    expect(nodesOf(halted.events)).to.deep.equal(["n1 failed", "n2 done", "n3 failed", "n4 not-started"]);
    expect(halted.said("warning")).to.deep.equal([
      { type: "warning", text: "2 nodes failed, 1 may fail: nothing further starts" },
    ]);
  });

  it("a run that too many unreachable nodes halted still ends with 3", async () => {
    const names = ["n1", "n2"];
    const pace = { batch: 1, maxFailures: 0 };
    const { exitCode } = await conduct(names, [applyStage("a", names, ["s/a"], { pace })], { unreachable: ["n1"] });
    expect(exitCode).to.equal(3);
  });

  it("runs a failed stage's onFailure stages on that node, then ends it", async () => {
    const undone: unknown[] = [];
    const uncordon = testAction("uncordon", ({ node }) => {
      undone.push(node?.name);
      return { changed: true, outputs: {} };
    });
    const names = ["n1", "n2"];
    const { nodes, events, exitCode } = await conduct(
      names,
      [
        applyStage("a", names, ["s/a"], {
          onFailure: [applyStage("clean", names, ["s/b"]), actionStage("uncordon", uncordon, { nodes: names })],
        }),
      ],
      { lessons: { "n1 s/a": { outcome: "failed" }, ...both } },
    );
    expect(undone).to.deep.equal(["n1"]);
    expect(nodes.log).to.include("n1 step s/b").and.not.include("n2 step s/b");
    expect(nodes.log.filter((line) => line.startsWith("n1")).at(-1)).to.equal("n1 finish failed");
    expect(stagesOf(events)).to.include.members(["clean:n1 ok", "uncordon:n1 ok"]);
    expect(exitCode).to.equal(1);
  });

  it("an action that fails for one node fails that node", async () => {
    const issue = testAction("issue", ({ node }) => {
      if (node?.name === "n1") throw new KcoreError({ code: "NODE_REJECTED", message: "not this one" });
      return { changed: false, outputs: {} };
    });
    const names = ["n1", "n2"];
    const { events, exitCode } = await conduct(
      names,
      [actionStage("issue", issue, { nodes: names }), applyStage("a", names, ["s/a"])],
      { lessons: both },
    );
    expect(nodesOf(events)).to.deep.equal(["n1 failed", "n2 done"]);
    expect(exitCode).to.equal(1);
  });

  it("an action that concerns no single node ends the run when it fails", async () => {
    const bad = testAction("health", () => {
      throw new KcoreError({ code: "CLUSTER_UNHEALTHY", message: "c1 is down" });
    });
    const { events, exitCode, nodes } = await conduct(
      ["n1"],
      [actionStage("health", bad), applyStage("a", ["n1"], ["s/a"])],
    );
    expect(nodes.log).to.deep.equal([]);
    expect(stagesOf(events)).to.deep.equal(["health failed", "a skipped"]);
    expect(nodesOf(events)).to.deep.equal(["n1 not-started"]);
    expect(exitCode).to.equal(1);
    expect(events.at(-1)).to.have.nested.property("problem.code", "CLUSTER_UNHEALTHY");
  });

  it("leaves actions between stages, and those that take what nodes give, out once no node is left", async () => {
    const never = testAction("health", () => {
      throw new Error("called");
    });
    const stages = [
      applyStage("a", ["n1"], ["s/a"]),
      actionStage("health", never),
      applyStage("b", ["n1"], ["s/b"]),
      actionStage("last", never, { rests: new Set(["b"]) }),
    ];
    const { events } = await conduct(["n1"], stages, { lessons: { "s/a": { outcome: "failed" } } });
    expect(stagesOf(events)).to.deep.equal(["a failed", "b skipped", "health skipped", "last skipped"]);
  });

  for (const how of ["failed", "unreachable"] as const)
    it(`O10: what closes a run comes when every node is ${how}, and what it does wrong is not the cause`, async () => {
      const told: string[] = [];
      const notice = testAction("notice", ({ ended }) => {
        told.push([...ended].map(([name, { outcome }]) => `${name} ${outcome}`).join(", "));
        return { changed: false, outputs: {} };
      });
      const bad = testAction("bad", () => {
        throw new KcoreError({ code: "CLUSTER_UNHEALTHY", message: "nobody answers" });
      });
      const names = ["n1", "n2"];
      const { events, exitCode, said } = await conduct(
        names,
        [applyStage("a", names, ["s/a"]), actionStage("bad", bad), actionStage("close", notice)],
        {
          ...(how === "failed" ? { lessons: { "s/a": { outcome: "failed" } } } : { unreachable: names }),
          onFailure: [actionStage("bad-too", bad), actionStage("tell", notice)],
        },
      );
      const all = `n1 ${how}, n2 ${how}`;
      expect(told).to.deep.equal([all, all]);
      expect(stagesOf(events).slice(-4)).to.deep.equal(["bad failed", "close ok", "bad-too failed", "tell ok"]);
      expect(exitCode).to.equal(how === "failed" ? 1 : 3);
      expect(JSON.stringify(events.at(-1))).not.to.include("CLUSTER_UNHEALTHY");
      expect(JSON.stringify(said("warning"))).to.include("nobody answers");
    });

  it("O10: one node that cannot be reached is no failure of the run that others came through", async () => {
    const names = ["n1", "n2"];
    const never = testAction("never", () => {
      throw new Error("called");
    });
    const { exitCode } = await conduct(names, [applyStage("a", names, ["s/a"])], {
      lessons: { "s/a": {} },
      unreachable: ["n1"],
      onFailure: [actionStage("tell", never)],
    });
    expect(exitCode).to.equal(3);
  });

  it("a bug in an action ends the run with 70, every node and stage ended", async () => {
    const bug = testAction("bug", () => {
      throw new TypeError("undefined is not a function");
    });
    const { events, exitCode } = await conduct(
      ["n1"],
      [actionStage("bug", bug, { nodes: ["n1"] }), applyStage("a", ["n1"], ["s/a"])],
    );
    expect(exitCode).to.equal(70);
    expect(nodesOf(events)).to.deep.equal(["n1 failed"]);
    expect(stagesOf(events)).to.deep.equal(["bug failed", "a skipped"]);
  });

  it("gives an action that takes too long a clear end", async () => {
    const forever = testAction("forever", ({ note }) => {
      note("192.0.2.7 port 9090 does not answer yet: silent for 3 s");
      return new Promise(() => undefined);
    });
    const { events } = await conduct(["n1"], [actionStage("join", forever, { nodes: ["n1"], timeout: 0.005 })]);
    expect(events.find(({ type }) => type === "node.finished"))
      .to.have.property("problem")
      .that.deep.includes({
        code: "STAGE_TIMEOUT",
        message: "stage “join” took longer than 0.005 s for “n1”",
        detail:
          "at work on the bastion: forever\nits last answer: 192.0.2.7 port 9090 does not answer yet: silent for 3 s",
      });
  });

  it("ends a stage of steps that passes its timeout by force", async () => {
    const { nodes, events } = await conduct(
      ["n1"],
      [applyStage("a", ["n1"], ["s/a"], { timeout: 0.005 }), applyStage("b", ["n1"], ["s/b"])],
      { lessons: { ...both, "s/a": { after: new Promise(() => undefined) } } },
    );
    expect(nodes.log).to.include("n1 abort").and.not.include("n1 step s/b");
    expect(events.find(({ type }) => type === "node.finished"))
      .to.have.property("problem")
      .that.deep.includes({ code: "STAGE_TIMEOUT", detail: "at work on n1: “a” (command.run)\nit gave no answer" });
  });

  it("F-17: a stop lets the running step end, starts no other, and ends with 130", async () => {
    const stop = new AbortController();
    const { nodes, events, exitCode } = await conduct(
      ["n1", "n2"],
      [applyStage("a", ["n1", "n2"], ["s/a", "s/b"], { pace: { batch: 1 } })],
      { lessons: { "s/a": { begins: () => stop.abort() }, "s/b": {} }, deps: { stop: stop.signal } },
    );
    expect(nodes.log).to.deep.equal([
      "n1 connect",
      "n1 perform [a]",
      "n1 step s/a",
      "n1 stop",
      "n1 finish interrupted",
    ]);
    expect(nodesOf(events)).to.have.members(["n1 interrupted", "n2 not-started"]);
    expect([exitCode, stagesOf(events)]).to.deep.equal([130, ["a interrupted"]]);
  });

  it("F-17: a run that was stopped in its very last step, which came to its end, is done", async () => {
    const stop = new AbortController();
    const { events, exitCode } = await conduct(["n1"], [applyStage("a", ["n1"], ["s/a"])], {
      lessons: { "s/a": { begins: () => stop.abort() } },
      deps: { stop: stop.signal },
    });
    expect([exitCode, stagesOf(events), nodesOf(events)]).to.deep.equal([0, ["a ok"], ["n1 done"]]);
  });

  it("calls a node that a gate kept out not started when it was only looked at, and interrupted when it was changed", async () => {
    const names = ["n1", "n2"];
    const gate = testAction("gate", () => Promise.reject(new KcoreError({ code: "INTERRUPTED", message: "no" })));
    const stages = [applyStage("a", names, ["s/a"]), actionStage("gate", gate), applyStage("b", names, ["s/b"])];
    const { events, exitCode } = await conduct(names, stages, {
      lessons: { "n1 s/a": { outcome: "ok" }, "n2 s/a": { outcome: "changed" }, ...both },
    });
    expect([exitCode, nodesOf(events)]).to.deep.equal([1, ["n1 not-started", "n2 interrupted"]]);
  });

  it("F-17: an abort ends running steps and actions", async () => {
    const abort = new AbortController();
    const forever = new Promise<never>(() => undefined);
    const { exitCode, nodes } = await conduct(["n1"], [applyStage("a", ["n1"], ["s/a"])], {
      lessons: { "s/a": { after: forever, begins: () => queueMicrotask(() => abort.abort()) } },
      deps: { abort: abort.signal },
    });
    expect([exitCode, nodes.log.at(-1)]).to.deep.equal([130, "n1 finish interrupted"]);
    const other = new AbortController();
    const action = testAction("forever", () => {
      queueMicrotask(() => other.abort());
      return forever;
    });
    const acted = await conduct(["n1"], [actionStage("x", action, { nodes: ["n1"] })], {
      deps: { abort: other.signal },
    });
    expect([acted.exitCode, nodesOf(acted.events)]).to.deep.equal([130, ["n1 interrupted"]]);
  });

  it("V11: no to a question interrupts the run, and what follows a failure is done all the same", async () => {
    const ask = testAction("confirm", () => {
      throw new KcoreError({ code: "CONFIRM_DENIED", message: "answered no" });
    });
    const back = testAction("back", () => ({ changed: true, outputs: {} }));
    const alone = await conduct(
      ["n1"],
      [actionStage("ask", ask, { onFailure: [actionStage("back", back)] }), applyStage("a", ["n1"], ["s/a"])],
    );
    expect(alone.exitCode).to.equal(130);
    expect(alone.said("run.finished")).to.deep.include.members([
      {
        type: "run.finished",
        outcome: "interrupted",
        exitCode: 130,
        problem: { code: "CONFIRM_DENIED", message: "answered no" },
      },
    ]);
    expect(stagesOf(alone.events)).to.include.members(["ask interrupted", "back ok"]);
    expect(alone.said("action.finished")[0]).to.include({ outcome: "interrupted" });
    const each = await conduct(
      ["n1", "n2"],
      [actionStage("ask", ask, { nodes: ["n1"] }), applyStage("a", ["n2"], ["s/a"])],
      {
        lessons: both,
      },
    );
    expect([each.exitCode, nodesOf(each.events)]).to.deep.equal([130, ["n1 interrupted", "n2 done"]]);
  });

  it("G7: a stage that is left out tells the condition that was false", async () => {
    const stage = applyStage("a", ["n1"], ["s/a"], { when: () => false, condition: "{{params.wipe}}" });
    const { said } = await conduct(["n1"], [stage]);
    expect(said("stage.finished")[0]).to.include({ reason: "not needed: {{params.wipe}} is false" });
  });

  it("M3: a stop ends an action at once that says so, and waits for others", async () => {
    const forever = new Promise<never>(() => undefined);
    const act = async (endsAtStop?: true) => {
      const stop = new AbortController();
      const action = testAction("long", () => {
        queueMicrotask(() => stop.abort());
        return endsAtStop ? forever : Promise.resolve({ changed: false, outputs: {} });
      });
      const stage = actionStage("x", { ...action, ...(endsAtStop && { endsAtStop }) }, { nodes: ["n1"] });
      const { events } = await conduct(["n1"], [stage], { deps: { stop: stop.signal } });
      return events.flatMap((event) => (event.type === "action.finished" ? [event.outcome] : []));
    };
    expect([await act(true), await act()]).to.deep.equal([["interrupted"], ["ok"]]);
  });

  it("leaves a stage out whose `when` is false, and never connects for that alone", async () => {
    const { nodes, events, exitCode } = await conduct(
      ["n1"],
      [applyStage("a", ["n1"], ["s/a"], { when: ({ node }) => node?.name === "n9" })],
    );
    expect([nodes.log, exitCode]).to.deep.equal([[], 0]);
    expect(events).to.deep.include({
      type: "stage.finished",
      stage: "a",
      outcome: "skipped",
      reason: "its “when” is false",
    });
  });

  it("a stage that rests on a skipped stage's output says so instead of running", async () => {
    const issue = testAction("issue", () => ({ changed: true, outputs: {} }));
    const { events } = await conduct(
      ["n1"],
      [
        actionStage("issue", issue, { nodes: ["n1"], when: () => false }),
        applyStage("a", ["n1"], ["s/a"], { rests: new Set(["issue"]) }),
      ],
    );
    expect(events.find(({ type }) => type === "node.finished")).to.have.nested.property(
      "problem.code",
      "STAGE_OUTPUT_UNKNOWN",
    );
  });

  it("a dry run plans actions and calls what rests on an unknown value unknown", async () => {
    const issue = testAction("issue", () => {
      throw new Error("run in a dry run");
    });
    const { nodes, events, exitCode, said } = await conduct(
      ["n1"],
      [
        applyStage("key", ["n1"], ["s/a"]),
        actionStage("issue", issue, { nodes: ["n1"] }),
        applyStage("certs", ["n1"], [], {
          rests: new Set(["issue"]),
          task: {
            kind: "apply",
            draft: ({ stages }) => {
              const { after } = stages["issue"] as Unknown;
              return Promise.resolve([
                draft("s/b", { render: () => ({ kind: "unknown", id: "s/b", title: "b", after }) }),
              ]);
            },
          },
        }),
      ],
      { lessons: { "s/a": { outcome: "changed" } }, request: { dryRun: true } },
    );
    expect(exitCode).to.equal(0);
    expect(said("action.finished")).to.deep.include({
      type: "action.finished",
      stage: "issue",
      action: "issue",
      item: "n1",
      outcome: "unknown",
      duration: 0,
    });
    expect(nodes.log).to.include("n1 unknown s/b");
    expect(events.find((event) => event.type === "step.finished" && event.step === "s/b")).to.include({
      outcome: "unknown",
      reason: "after stage issue",
    });
  });

  it("a dry run hands on what an action's plan knows", async () => {
    const action = testAction(
      "issue",
      () => ({ changed: true, outputs: {} }),
      () => ({ changed: true, outputs: { cert: "kept" } }),
    );
    const seen: unknown[] = [];
    const { said } = await conduct(
      ["n1"],
      [
        actionStage("issue", action),
        actionStage(
          "use",
          testAction("use", noRun, ({ note }) => (note("x"), { changed: false, outputs: {} })),
          {
            task: {
              kind: "action",
              action: testAction("use", noRun, () => ({ changed: false, outputs: {} })),
              args: ({ stages }) => void seen.push(stages["issue"]),
            },
          },
        ),
      ],
      { request: { dryRun: true } },
    );
    expect(seen).to.deep.equal([{ cert: "kept" }]);
    expect(said("action.finished").map((event) => event.type === "action.finished" && event.outcome)).to.deep.equal([
      "would-change",
      "ok",
    ]);
  });

  it("shows each node's outputs by name to an action that concerns no single node", async () => {
    const seen: unknown[] = [];
    const names = ["n1", "n2"];
    const issue = testAction("issue", ({ node }) => ({ changed: false, outputs: { for: node?.name } }));
    await conduct(names, [
      actionStage("issue", issue, { nodes: names }),
      actionStage("sum", issue, {
        task: { kind: "action", action: issue, args: ({ stages }) => void seen.push(stages["issue"]) },
      }),
    ]);
    expect(JSON.parse(JSON.stringify(seen))).to.deep.equal([{ n1: { for: "n1" }, n2: { for: "n2" } }]);
  });

  it("asks for the CA's passphrase once, and for no confirmation with --yes", async () => {
    const asked: string[] = [];
    const got: unknown[] = [];
    const action = testAction("issue", async ({ passphrase, ask }) => {
      got.push(await passphrase(), await ask({ kind: "confirm", text: "Go on?", secret: false }));
      return { changed: false, outputs: {} };
    });
    const names = ["n1", "n2"];
    await conduct(names, [actionStage("issue", action, { nodes: names })], {
      request: { yes: true },
      deps: { ask: ({ text }) => (asked.push(text), Promise.resolve("open sesame")) },
    });
    expect(asked).to.deep.equal(["Passphrase of the cluster CA’s keys"]);
    expect(got).to.have.members(["open sesame", "open sesame", "yes", "yes"]);
  });

  it("looks at nodes without a single step", async () => {
    const look = await conduct(["n1"], [applyStage("look", ["n1"], [], { task: { kind: "look" } })]);
    expect([look.nodes.log, look.exitCode]).to.deep.equal([["n1 connect", "n1 perform []", "n1 finish done"], 0]);
  });

  it("F-3: a resumed run tells each session which ends of steps are recorded", async () => {
    const at = { seq: 1, at: 0, node: "n1", stage: "a", title: "", module: "" } as const;
    const { nodes, said } = await conduct(["n1"], [applyStage("a", ["n1"], ["s/a"])], {
      lessons: both,
      deps: {
        earlier: [
          { ...at, type: "step.finished", step: "s/a", outcome: "changed" },
          { ...at, type: "step.finished", step: "s/b", outcome: "failed" },
        ],
      },
    });
    expect([...(nodes.options.get("n1")?.recorded ?? [])]).to.deep.equal([
      ["s/a", ["changed"]],
      ["s/b", ["failed"]],
    ]);
    expect(said("run.started")[0]).to.include({ resumed: true });
  });
});

const noRun = (): never => {
  throw new Error("run in a dry run");
};

describe("what follows when a run failed", () => {
  const failing = {
    "s/a": { outcome: "changed" },
    "n2 s/a": { outcome: "failed" },
    "s/undo": { outcome: "changed" },
  } as const;
  const first = applyStage("first", ["n1"], ["s/a"]);
  const second = { ...applyStage("second", ["n2"], ["s/a"]), pace: { maxFailures: 0 } };
  const third = applyStage("third", ["n3"], ["s/a"]);
  const undo = ["n3", "n1"].map((name) => applyStage(`undo-${name}`, [name], ["s/undo"]));
  const run = (given: Given & { readonly onFailure?: readonly PlannedStage[] } = {}) =>
    conduct(["n1", "n2", "n3"], [first, second, third], { lessons: failing, onFailure: undo, ...given });

  it("is done once, in its order, on nodes that are left, though they were through", async () => {
    const { nodes, exitCode, events } = await run();
    expect(nodes.log.filter((line) => / step | rest| finish/.test(line))).to.deep.equal([
      "n1 step s/a",
      "n1 rest",
      "n2 step s/a",
      "n2 finish failed",
      "n3 step s/undo",
      "n3 rest",
      "n1 step s/undo",
      "n1 rest",
      "n1 finish interrupted",
      "n3 finish interrupted",
    ]);
    expect(exitCode).to.equal(1);
    expect(stagesOf(events)).to.deep.equal(["first ok", "second failed", "undo-n3 ok", "undo-n1 ok", "third skipped"]);
  });

  it("is left alone in a dry run, in a run that is stopped, and when nothing failed", async () => {
    for (const given of [
      { request: { dryRun: true } },
      { deps: { stop: AbortSignal.abort("stop") } },
      { lessons: { "s/a": {} } },
    ] satisfies readonly Given[]) {
      const { nodes } = await run(given);
      expect(nodes.log.filter((line) => line.includes("undo"))).to.deep.equal([]);
    }
  });

  it("is all that a resumed run goes on with once it was begun", async () => {
    const began = { seq: 9, at: 1, type: "stage.started", stage: "undo-n3" } as const;
    const { nodes, exitCode, said } = await run({
      deps: { earlier: [began] },
      request: { command: "kcore orchestrate x" },
    });
    expect(nodes.log.filter((line) => line.includes(" step "))).to.deep.equal(["n3 step s/undo", "n1 step s/undo"]);
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
      // A third one would begin before the next turn of the loop.
      if (under === 2) setImmediate(gate.resolve);
    };
    const names = ["n1", "n2", "n3", "n4"];
    const look = applyStage("look", names, ["s/a"]);
    const work = { ...applyStage("work", names, ["s/b"]), pace: { maxUnavailable: 3 } };
    const ended = gate.promise.then(() => void (under = 0));
    const { exitCode } = await conduct(
      names,
      [
        look,
        actionStage(
          "all",
          testAction("x.all", () => ({ changed: false, outputs: {} })),
        ),
        work,
      ],
      {
        lessons: { "s/a": {}, "s/b": { begins, after: ended } },
        unreachable: ["n4"],
      },
    );
    expect([exitCode, most]).to.deep.equal([3, 2]);
  });

  it("connects anew before a stage that asks for it, but not in a dry run", async () => {
    const stages = [
      applyStage("one", ["n1"], ["s/a"]),
      { ...applyStage("two", ["n1"], ["s/b"]), reconnect: true as const },
    ];
    const { nodes } = await conduct(["n1"], stages, { lessons: both });
    expect(nodes.log.slice(0, 6)).to.deep.equal([
      "n1 connect",
      "n1 perform [one]",
      "n1 step s/a",
      "n1 rest",
      "n1 connect",
      "n1 perform [two]",
    ]);
    const dry = await conduct(["n1"], stages, { lessons: both, request: { dryRun: true } });
    expect(dry.nodes.log).to.not.include("n1 rest");
  });
});
