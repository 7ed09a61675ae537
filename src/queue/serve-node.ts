import { KcoreError, type Problem } from "#errors/problem.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { createRedactor } from "#engine/events/redact.ts";
import { LiveRun } from "#engine/orchestrate/live-run.ts";
import type { PlannedStage, RunPlan } from "#engine/orchestrate/plan.ts";
import { renderNode } from "#engine/orchestrate/prepare.ts";
import { problemOf } from "#engine/orchestrate/problem-of.ts";
import type { StageOutput } from "#engine/orchestrate/outputs.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/run-types.ts";
import { fromJson, toJson } from "#engine/orchestrate/values-json.ts";
import type { SecretReader } from "#engine/params/bind-params.ts";
import type { StageWork } from "#engine/session/session.ts";
import { knownSecrets } from "#engine/step/secret.ts";
import type { Command, NodeCall } from "./messages.ts";
import { stepsHash } from "./queued-session.ts";
import type { WorkerLine } from "./worker-line.ts";

/** A run as one of its workers has it. */
export interface ServedRun {
  readonly plan: RunPlan;
  readonly request: RunRequest;
  readonly deps: RunDependencies;
  readonly readSecret: SecretReader;
}

/** Does a node's work as the coordinator commands. Never rejects: failures are reported. */
export async function serveNode(name: string, load: () => Promise<ServedRun>, line: WorkerLine): Promise<void> {
  const open = await line.command();
  if (open.do !== "open") return;
  let node: ServedNode;
  try {
    const run = await load();
    node = new ServedNode(name, run, open, line);
    await renderNode(run.plan, name, run.readSecret);
    for (const call of open.done) await node.remember(call);
  } catch (error) {
    return line.report({ tell: "refused", problem: problemOf(error) });
  }
  for (;;) {
    const command = await line.command();
    if (command.do === "perform") await node.perform(command);
    else if (command.do === "drop") return node.rest();
    else if (command.do === "rest") {
      await node.rest();
      return line.report({ tell: "ended" });
    } else if (command.do === "finish") {
      await node.finish(command);
      return line.report({ tell: "ended" });
    }
  }
}

class ServedNode {
  readonly #run: LiveRun;
  readonly #name: string;
  readonly #line: WorkerLine;
  /** The calls that earlier workers ended, to be joined before the next one. */
  readonly #done: NodeCall[] = [];

  constructor(
    name: string,
    { plan, request, deps }: ServedRun,
    open: Extract<Command, { do: "open" }>,
    line: WorkerLine,
  ) {
    const [stop, abort] = [new AbortController(), new AbortController()];
    const redactor = createRedactor([], knownSecrets);
    this.#name = name;
    this.#line = line;
    const known = new Set(open.looks);
    const looks = {
      has: (hash: string) => known.has(hash),
      all: () => [...known],
      add: (hashes: readonly string[]) => line.report({ tell: "looks", hashes }),
    };
    // A look is sent where the coordinator sends one: it has the memory.
    const { looks: _, ...others } = deps;
    this.#run = new LiveRun({ ...plan, nodes: [name] }, request, {
      ...others,
      attempt: open.attempt,
      emit: (event) => {
        for (const passed of redactor.pass(event)) line.emit(passed);
      },
      stop: stop.signal,
      abort: abort.signal,
      ask: async (question) => String(await line.request("ask", question)),
      tables: line.tables,
      earlier: open.resumed ? earlierEvents(name, open) : [],
      ...(open.looks && { looks: () => looks }),
    });
    line.onStop = (how) => (how === "abort" ? this.#node.abort() : this.#node.stop());
  }

  get #node() {
    const node = this.#run.nodes.get(this.#name);
    if (!node) throw new KcoreError({ code: "NODE_UNKNOWN", message: `no node “${this.#name}” in the run's roster` });
    return node;
  }

  async remember(call: NodeCall): Promise<void> {
    await this.#workOf(call);
    this.#done.push(call);
  }

  async perform(call: NodeCall): Promise<void> {
    try {
      const work = await this.#workOf(call);
      for (const done of this.#done.splice(0)) await this.#node.session().perform(await this.#workOf(done));
      const result = await this.#node.session().perform(work, { isLast: call.isLast });
      this.#line.report({ tell: "result", call: call.call, result: toJson(result) });
    } catch (error) {
      const problem = problemOf(error);
      const result = { outcome: "failed", problem, registered: new Map(), finishedStages: new Set() };
      this.#line.report({ tell: "result", call: call.call, result: toJson(result) });
    }
  }

  async rest(): Promise<void> {
    await this.#node.rest();
  }

  async finish({ outcome, problem }: Extract<Command, { do: "finish" }>): Promise<void> {
    await this.#node.end({ outcome, ...(problem && { problem }) });
  }

  /** The steps of a call's stages. @throws KcoreError WORKER_DIFFERS if these are not the coordinator's */
  async #workOf({ stages, outputs }: NodeCall): Promise<readonly StageWork[]> {
    for (const [name, node, value] of fromJson(outputs) as readonly StageOutput[])
      this.#run.outputs.set(name, node, value);
    const work: StageWork[] = [];
    for (const { id, steps } of stages) {
      const stage = stageOf(this.#run.plan, id, this.#name);
      const drafts = stage?.task.kind === "apply" ? await stage.task.expand(this.#run.scopeOf(this.#node)) : undefined;
      if (!drafts || stepsHash(drafts) !== steps) throw new KcoreError(differs(id, this.#name));
      work.push({ stage: id, drafts });
    }
    return work;
  }
}

/** The events of a node's record that a session needs, as if this process had read the record. */
function earlierEvents(node: string, { recorded }: Extract<Command, { do: "open" }>): readonly RunEvent[] {
  const names = { node, stage: "", title: "", module: "" };
  const steps = recorded.flatMap(([step, outcomes]) =>
    outcomes.map((outcome): RunEventBody => ({ type: "step.finished", ...names, step, outcome })),
  );
  const first: RunEventBody = { type: "node.connecting", node, attempt: 1 };
  return [first, ...steps].map((event) => ({ seq: 0, at: 0, ...event }));
}

/** The stage with an id, on a node: one of the run, one that follows a failure, or a clean-up for the node (`ID:NODE`). */
function stageOf({ stages, onFailure = [] }: RunPlan, id: string, node: string): PlannedStage | undefined {
  const all = [...stages, ...onFailure];
  return (
    all.find((stage) => stage.id === id) ??
    all.flatMap((stage) => stage.onFailure).find((stage) => `${stage.id}:${node}` === id)
  );
}

function differs(stage: string, node: string): Problem {
  return {
    code: "WORKER_DIFFERS",
    message: `the worker renders other steps of stage “${stage}” for ${node} than the coordinator`,
    hint: "a value of the states differs there: a secret, a fact, or a file outside of the project",
  };
}
