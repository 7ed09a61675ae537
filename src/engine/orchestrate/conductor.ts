import type { Problem } from "#errors/problem.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { NodeEnd } from "./action.ts";
import { reasonNotToRun } from "./condition.ts";
import { mostAtOnce } from "./connection-limit.ts";
import type { RunDependencies, RunRequest, RunResult } from "./run-types.ts";
import { runNodeStages, type PipelineEnd } from "./node-pipeline.ts";
import { LiveRun } from "./live-run.ts";
import { compareManaged } from "./managed.ts";
import {
  lastSections,
  runSections,
  type Pace,
  type PlannedStage,
  type RunPlan,
  type RunSection,
  type StageBlock,
} from "./plan.ts";
import { isDenied, runAction } from "./run-action.ts";
import { hasBegunOnFailure, runEnd } from "./run-end.ts";
import type { RunNode } from "./run-node.ts";
import { forEachLimited } from "./semaphore.ts";
import { runStartedEvent } from "./started-event.ts";

/** Carries out one plan: its sections in order, and the stages that follow failures. */
export class Conductor {
  readonly #run: LiveRun;
  /** Set when no further stage may start, with the problem that is the cause. */
  #halt: { readonly problem?: Problem } | undefined;
  /** The first failed check among the actions: no stage starts that is no check. */
  #held: { readonly problem?: Problem } | undefined;
  /** Whether a stop or abort left stages undone. */
  #isIncomplete = false;

  constructor(plan: RunPlan, request: RunRequest, deps: RunDependencies) {
    this.#run = new LiveRun(plan, request, deps);
  }

  get #nodes(): readonly RunNode[] {
    return [...this.#run.nodes.values()];
  }

  /** Runs all sections; every node and stage gets its last event, even if the run fails. */
  async conduct(): Promise<RunResult> {
    const { deps, plan } = this.#run;
    for (const { id, nodes } of plan.stages) this.#run.tracker.expect(id, nodes);
    deps.emit(runStartedEvent(this.#run));
    for (const text of plan.warnings) deps.emit({ type: "warning", text });
    const sections = runSections(plan.stages);
    if (mostAtOnce(sections, this.#run.concurrency) > this.#run.mostConnected)
      this.#run.warnOfFiles(`no more than ${this.#run.mostConnected} nodes are connected at a time`);
    const onStop = (): void => this.#run.nodes.forEach((node) => node.stop());
    const onAbort = (): void => this.#run.nodes.forEach((node) => node.abort());
    deps.stop.addEventListener("abort", onStop);
    deps.abort.addEventListener("abort", onAbort);
    try {
      const later = new Set(plan.onFailure?.flatMap(({ nodes = [] }) => nodes));
      if (hasBegunOnFailure(plan, deps.earlier)) this.#refuseForward();
      else await this.#runSections(sections, later);
      this.#halt ??= this.#held;
      this.#held = undefined;
      await this.#runOnFailure(later);
    } finally {
      deps.stop.removeEventListener("abort", onStop);
      deps.abort.removeEventListener("abort", onAbort);
      await this.#endNodes();
      await this.#run.peerTransfer?.close();
      this.#run.tracker.close(this.#run.isStopping ? "the run was stopped" : "the run ended before it");
    }
    return this.#finish();
  }

  /** `later`: nodes that may be needed after these sections. `areClosing`: the sections follow the run's own stages. */
  async #runSections(
    sections: readonly RunSection[],
    later: ReadonlySet<string> = new Set(),
    { areClosing = false }: { readonly areClosing?: boolean } = {},
  ): Promise<void> {
    const last = lastSections(sections);
    const lastBlock = areClosing ? -1 : sections.findLastIndex(({ kind }) => kind === "block");
    for (const [index, section] of sections.entries()) {
      this.#isIncomplete ||= this.#run.isStopping;
      if (section.kind === "block" || !section.stage.check) this.#halt ??= this.#held;
      if (!this.#mayGoOn()) return;
      if (section.kind === "barrier") await this.#runBarrier(section.stage, { isClosing: index > lastBlock });
      else await this.#runBlock(section, (node) => last.get(node) === index && (later.has(node) ? "rests" : "ends"));
    }
  }

  /** Refuses to go forward again: that would skip steps that `onFailure` took back, since the nodes' journals call them done. */
  #refuseForward(): void {
    const { deps, request } = this.#run;
    const message = "this run failed, and what follows a failure was begun: only that is brought to its end";
    deps.emit({ type: "warning", text: `${message}; to begin anew: ${request.command}` });
    this.#halt = { problem: { code: "RUN_FAILED_BEFORE", message, hint: `begin anew: ${request.command}` } };
  }

  /** If the run failed, runs the plan's `onFailure` stages on the nodes that are left. */
  async #runOnFailure(nodes: ReadonlySet<string>): Promise<void> {
    const { plan, request } = this.#run;
    const hasFailed =
      this.#halt !== undefined ||
      !this.#hasNodeLeft() ||
      this.#nodes.some(({ outcome, problem }) => outcome === "failed" || isDenied(problem));
    if (!plan.onFailure || !hasFailed || this.#run.isStopping || request.dryRun) return;
    const halt = this.#halt;
    this.#halt = undefined;
    this.#expect(plan.onFailure);
    await this.#runSections(runSections(plan.onFailure), nodes, { areClosing: true });
    this.#halt = halt ?? this.#halt;
  }

  /** Expects these stages on the nodes that are left: no other node can leave them. */
  #expect(stages: readonly PlannedStage[]): void {
    const isLeft = (name: string): boolean => this.#run.nodes.get(name)?.isAlive === true;
    for (const { id, nodes } of stages) this.#run.tracker.expect(id, nodes?.filter(isLeft));
  }

  #mayGoOn(): boolean {
    return !this.#run.isStopping && this.#halt === undefined;
  }

  /** `afterBlock`: whether a node ends after this block, or rests because the run may need it again; false: more blocks follow. */
  async #runBlock(
    { stages, batches, pace }: StageBlock,
    afterBlock: (node: string) => "ends" | "rests" | false,
  ): Promise<void> {
    let failures = 0;
    const visit = async (name: string): Promise<void> => {
      const node = this.#run.nodes.get(name) as RunNode;
      if (!node.isAlive || !this.#mayGoOn()) return;
      const end = await runNodeStages(this.#run, node, stages, {
        mayGoOn: () => this.#mayGoOn(),
        isLast: afterBlock(name) === "ends",
      });
      if (end.outcome === "failed" || end.outcome === "unreachable") {
        await this.#failNode(node, end);
        this.#countFailure(++failures, pace, node);
      } else if (end.outcome === "ok" && afterBlock(name) === "ends") await this.#endNode(node, { outcome: "done" });
      else if (afterBlock(name) === "rests" || this.#run.restsBetweenBlocks)
        await this.#orWarn(node, "letting it rest", () => node.rest());
    };
    const { concurrency = this.#run.concurrency, maxUnavailable = Infinity } = pace;
    const room = Math.max(1, maxUnavailable - this.#countUnavailable());
    const limit = Math.min(concurrency, this.#run.mostConnected, room);
    for (const batch of batches) await forEachLimited(batch, limit, visit);
  }

  /** The number of failed and unreachable nodes, which may be down. */
  #countUnavailable(): number {
    const ends = this.#nodes.map(({ outcome }) => outcome);
    return ends.filter((outcome) => outcome === "failed" || outcome === "unreachable").length;
  }

  /** Does some work for a node. A failure of this work is a bug, which is warned of and ends no run. */
  async #orWarn({ name: node }: RunNode, what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#run.noteBug();
      this.#run.deps.emit({ type: "warning", node, text: `${what} failed: ${String(error)}` });
    }
  }

  #countFailure(failures: number, { maxFailures }: Pace, node: RunNode): void {
    if (maxFailures === undefined || failures <= maxFailures || this.#halt !== undefined) return;
    const many = `${failures} ${failures === 1 ? "node" : "nodes"} failed, ${maxFailures} may fail`;
    this.#run.deps.emit({ type: "warning", text: `${many}: nothing further starts` });
    this.#halt = node.problem ? { problem: node.problem } : {};
  }

  async #failNode(node: RunNode, { outcome, problem, stage, alsoFailed = [] }: PipelineEnd): Promise<void> {
    const { stages, onFailure = [] } = this.#run.plan;
    for (const one of [...stages, ...onFailure]) {
      if (one.nodes?.includes(node.name) && one.id !== stage?.id)
        this.#run.tracker.leave(
          one.id,
          node.name,
          "skipped",
          outcome === "unreachable" ? `${node.name} is unreachable` : `${node.name} failed`,
        );
    }
    for (const one of [stage, ...alsoFailed]) await this.#cleanUpNode(node, one, outcome === "unreachable");
    const end: NodeEnd = {
      outcome: outcome === "unreachable" ? "unreachable" : isDenied(problem) ? "interrupted" : "failed",
      ...omitUndefined({ problem, stage: stage?.id }),
    };
    await this.#endNode(node, end);
  }

  /** Runs the failed stage's `onFailure` stages for the node; for an unreachable node the actions alone. */
  async #cleanUpNode(node: RunNode, stage: PlannedStage | undefined, isGone: boolean): Promise<void> {
    const stages = (stage?.onFailure ?? [])
      .filter(({ task }) => !isGone || task.kind === "action")
      .map((one) => ({ ...one, id: `${one.id}:${node.name}` }));
    if (stages.length === 0 || this.#run.deps.abort.aborted) return;
    for (const { id } of stages) this.#run.tracker.expect(id, [node.name]);
    const mayGoOn = () => !this.#run.deps.abort.aborted;
    const end = await runNodeStages(this.#run, node, stages, { mayGoOn, isLast: false });
    if (end.outcome !== "ok") this.#warnOfCleanUp(end.problem, node.name);
  }

  #warnOfCleanUp(problem: Problem | undefined, node?: string): void {
    const text = `cleaning up failed as well: ${problem?.message ?? "it was interrupted"}`;
    this.#run.deps.emit({ type: "warning", ...omitUndefined({ node }), text });
  }

  /**
   * `isClosing`: no stage with nodes follows, or the run's own stages are over. A closing stage may report the nodes' ends, so it runs even
   * with no node left.
   */
  async #runBarrier(stage: PlannedStage, { isClosing }: { readonly isClosing: boolean }): Promise<void> {
    const isLost = !this.#hasNodeLeft();
    const { outputs } = this.#run;
    // A closing stage cannot run if it needs values of lost nodes.
    const isPointless =
      isLost && (!isClosing || [...stage.dependencies].some((name) => outputs.scope()[name] instanceof Unknown));
    const reason = stage.skip ?? (isPointless ? "no node is left" : reasonNotToRun(this.#run, stage));
    if (typeof reason === "string") {
      const leftOut = stage.skip !== undefined && stage.task.kind === "action" ? stage.task.action.leftOut : undefined;
      outputs.set(stage.register, undefined, leftOut ?? new Unknown(`stage ${stage.id} (skipped)`));
      return this.#run.tracker.leave(stage.id, "", "skipped", reason);
    }
    this.#run.tracker.enter(stage.id);
    const { outcome, problem } = reason
      ? ({ outcome: "failed", problem: reason } as const)
      : await runAction(this.#run, stage);
    if (outcome === "failed") {
      this.#run.tracker.leave(stage.id, "", isDenied(problem) ? "interrupted" : "failed", problem?.message);
      await this.#cleanUp(stage);
      if (stage.check) return void (this.#held ??= problem ? { problem } : {});
      // The first failure stays the run's problem, and the other closing stages still run.
      if (isLost) return this.#warnOfCleanUp(problem);
      this.#halt = problem ? { problem } : {};
      return;
    }
    this.#isIncomplete ||= outcome === "interrupted";
    this.#run.tracker.leave(stage.id, "", outcome === "interrupted" ? "interrupted" : "ok");
  }

  #hasNodeLeft(): boolean {
    return this.#nodes.length === 0 || this.#nodes.some(({ isAlive, outcome }) => isAlive || outcome === "done");
  }

  async #cleanUp(stage: PlannedStage): Promise<void> {
    if (stage.onFailure.length === 0 || this.#run.isStopping) return;
    this.#expect(stage.onFailure);
    // An earlier failed check holds back further stages of the run, but not these.
    const held = this.#held;
    this.#held = undefined;
    await this.#runSections(runSections(stage.onFailure));
    this.#held = held ?? this.#held;
  }

  async #endNodes(): Promise<void> {
    const isDone = this.#mayGoOn();
    await Promise.all(
      this.#nodes.map((node) => {
        if (isDone) return this.#endNode(node, { outcome: "done" });
        // A node that a halted run has only probed counts as not started: a gate may have kept it out.
        const wasBegun = node.wasTouched || (this.#run.isStopping && node.wasStarted);
        return this.#endNode(node, { outcome: wasBegun ? "interrupted" : "not-started" });
      }),
    );
  }

  /** Warns of things that earlier runs managed on the node and this run does not, and records the things of this run. */
  #compareManaged({ name, entry, applied }: RunNode, isWhole: boolean): void {
    const { deps, request, plan } = this.#run;
    if (!deps.managed || applied.length === 0) return;
    const done = { applied, run: deps.runId, isWhole: isWhole && plan.leftOut === undefined };
    const { lost, after } = compareManaged(deps.managed.read(entry), done);
    if (lost !== undefined) deps.emit({ type: "warning", node: name, text: lost });
    if (!request.dryRun) deps.managed.keep(entry, after);
  }

  async #endNode(node: RunNode, end: NodeEnd): Promise<void> {
    if (node.isAlive) this.#compareManaged(node, end.outcome === "done");
    if (node.isAlive) this.#run.keepRevision(node, end.outcome);
    await this.#orWarn(node, "closing it", () => node.end(end));
  }

  #finish(): RunResult {
    const { outcome, exitCode } = runEnd({
      nodes: this.#nodes,
      halt: this.#halt,
      isIncomplete: this.#isIncomplete,
      isStopping: this.#run.isStopping,
      hasBug: this.#run.hasBug,
    });
    const failed = this.#nodes.find((node) => node.problem !== undefined);
    const problem = failed?.problem ?? this.#halt?.problem;
    this.#run.deps.emit({ type: "run.finished", outcome, exitCode, ...(problem && outcome !== "done" && { problem }) });
    return { exitCode };
  }
}
