import { exitCodes, type ExitCode, type Problem } from "#errors/problem.ts";
import type { NodeOutcome, Outcome, RunEventBody, StageOutline } from "#engine/events/event.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { endpointOf } from "#engine/session/node-endpoint.ts";
import type { ConnectOptions, Endpoint, Host } from "#engine/transport/host.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { conditionAgainst } from "./condition.ts";
import { recordedSteps } from "./recorded-steps.ts";
import type { RunDependencies, RunRequest, RunResult } from "./execute.ts";
import type { KeptDrafts } from "./kept-drafts.ts";
import { runAction } from "./run-action.ts";
import { walkLane, type LaneEnd } from "./lane.ts";
import { StageOutputs } from "./outputs.ts";
import { arrange, lastParts, registeredNames } from "./plan.ts";
import type { Pace, Part, PlannedStage, StageScope } from "./plan.ts";
import { isOutOfFiles, connectionsFor, widthOf } from "./connection-limit.ts";
import { RunNode } from "./run-node.ts";
import { RunSecrets } from "./secrets.ts";
import { forEachLimited, Slots } from "./slots.ts";
import { StageTracker } from "./tracker.ts";

/** Nodes at once, and connections being opened at once, when nobody says otherwise. */
export const CONCURRENCY = 50;
const CONNECTING = 32;
/** Milliseconds (F-14). */
const CONNECT_TIMEOUT = 10_000;

/** A run with everything checked, before anything was touched. */
export interface RunPlan {
  readonly title: string;
  readonly roster: Roster;
  /** Names of all nodes that it concerns, in the roster's order. */
  readonly nodes: readonly string[];
  readonly stages: readonly PlannedStage[];
  /** Said in the record before the first stage. */
  readonly warnings: readonly string[];
  /** What was drafted already when the plan was checked. */
  readonly drafts?: KeptDrafts;
}

type RunOutcome = Extract<RunEventBody, { type: "run.finished" }>["outcome"];

/** Carries out one plan; holds what its parts share. */
export class Conductor {
  readonly plan: RunPlan;
  readonly request: RunRequest;
  readonly deps: RunDependencies;
  readonly nodes: ReadonlyMap<string, RunNode>;
  readonly outputs: StageOutputs;
  readonly tracker: StageTracker;
  readonly secrets: RunSecrets;
  readonly #connecting: Slots;
  /** How many nodes may be connected at a time. */
  readonly #mostConnected: number;
  readonly #concurrency: number;
  #wasShort = false;
  #halt: { readonly problem?: Problem } | undefined;
  #hasBug = false;
  /** A stop or abort left something undone. */
  #wasCut = false;

  constructor(plan: RunPlan, request: RunRequest, deps: RunDependencies) {
    this.plan = plan;
    this.request = request;
    this.deps = deps;
    this.secrets = new RunSecrets(deps);
    this.tracker = new StageTracker(deps.emit);
    this.#mostConnected = connectionsFor(deps.openFiles);
    this.#concurrency = request.concurrency ?? CONCURRENCY;
    this.#connecting = new Slots(Math.min(CONNECTING, this.#concurrency, this.#mostConnected));
    this.outputs = new StageOutputs(registeredNames(plan.stages));
    const recorded = recordedSteps(deps.earlier);
    this.nodes = new Map(plan.nodes.map((name) => [name, this.#nodeOf(name, recorded.get(name) ?? new Map())]));
  }

  /** Whether somebody asked the run to stop or abort. */
  get isStopping(): boolean {
    return this.deps.stop.aborted || this.deps.abort.aborted;
  }

  noteBug(): void {
    this.#hasBug = true;
  }

  scopeOf(node?: RunNode): StageScope {
    return { ...(node && { node: node.entry }), stages: this.outputs.scope(node?.name) };
  }

  /** Runs all parts; every node and stage gets its last event, whatever happens. */
  async conduct(): Promise<RunResult> {
    const { deps, plan } = this;
    for (const { id, nodes } of plan.stages) this.tracker.expect(id, nodes);
    deps.emit(this.#started());
    for (const text of plan.warnings) deps.emit({ type: "warning", text });
    const parts = arrange(plan.stages);
    if (widthOf(parts, this.#concurrency) > this.#mostConnected)
      this.#warnOfFiles(`no more than ${this.#mostConnected} nodes are connected at a time`);
    const onStop = (): void => this.nodes.forEach((node) => node.stop());
    const onAbort = (): void => this.nodes.forEach((node) => node.abort());
    deps.stop.addEventListener("abort", onStop);
    deps.abort.addEventListener("abort", onAbort);
    try {
      await this.#runParts(parts);
    } finally {
      deps.stop.removeEventListener("abort", onStop);
      deps.abort.removeEventListener("abort", onAbort);
      await this.#endNodes();
      this.tracker.close(this.isStopping ? "the run was stopped" : "the run ended before it");
    }
    return this.#finish();
  }

  async #runParts(parts: readonly Part[]): Promise<void> {
    const last = lastParts(parts);
    for (const [index, part] of parts.entries()) {
      this.#wasCut ||= this.isStopping;
      if (!this.#mayGoOn()) return;
      if (part.kind === "barrier") await this.#runBarrier(part.stage);
      else await this.#runBlock(part, (node) => last.get(node) === index);
    }
  }

  #mayGoOn(): boolean {
    return !this.isStopping && this.#halt === undefined;
  }

  async #runBlock(part: Extract<Part, { kind: "block" }>, isLast: (node: string) => boolean): Promise<void> {
    let failures = 0;
    const visit = async (name: string): Promise<void> => {
      const node = this.nodes.get(name) as RunNode;
      if (!node.isAlive || !this.#mayGoOn()) return;
      const end = await walkLane(this, node, part.stages, {
        mayGoOn: () => this.#mayGoOn(),
        isLast: isLast(name),
      });
      if (end.outcome === "failed" || end.outcome === "unreachable") {
        await this.#failNode(node, end);
        this.#countFailure(++failures, part.pace, node);
      } else if (end.outcome === "ok" && isLast(name)) await this.#endNode(node, "done");
      else if (this.nodes.size > this.#mostConnected) await this.#restNode(node);
    };
    const limit = Math.min(part.pace.concurrency ?? this.#concurrency, this.#mostConnected);
    for (const batch of part.batches) await forEachLimited(batch, limit, visit);
  }

  async #restNode(node: RunNode): Promise<void> {
    try {
      await node.rest();
    } catch (error) {
      this.noteBug();
      this.deps.emit({ type: "warning", node: node.name, text: `letting it rest failed: ${String(error)}` });
    }
  }

  /** Connects; says once that this machine has no file left to open. */
  async #connect(endpoint: Endpoint, options?: ConnectOptions): Promise<Host> {
    try {
      return await this.deps.connect(endpoint, options);
    } catch (error) {
      if (isOutOfFiles(error)) this.#warnOfFiles("a node is connected when another one's connection has ended");
      throw error;
    }
  }

  #warnOfFiles(consequence: string): void {
    if (this.#wasShort) return;
    this.#wasShort = true;
    const { openFiles = 0 } = this.deps;
    const limit = Number.isFinite(openFiles) && openFiles > 0 ? ` (${openFiles})` : "";
    const text = `this machine lets kcore open too few files${limit}: ${consequence}; to raise it: ulimit -n`;
    this.deps.emit({ type: "warning", text });
  }

  #countFailure(failures: number, { maxFailures }: Pace, node: RunNode): void {
    if (maxFailures === undefined || failures <= maxFailures || this.#halt !== undefined) return;
    const many = `${failures} ${failures === 1 ? "node" : "nodes"} failed, ${maxFailures} may fail`;
    this.deps.emit({ type: "warning", text: `${many}: nothing further starts` });
    this.#halt = node.problem ? { problem: node.problem } : {};
  }

  async #failNode(node: RunNode, { outcome, problem, stage }: LaneEnd): Promise<void> {
    for (const one of this.plan.stages) {
      if (one.nodes?.includes(node.name) && one.id !== stage?.id)
        this.tracker.leave(
          one.id,
          node.name,
          "skipped",
          outcome === "unreachable" ? `${node.name} is unreachable` : `${node.name} failed`,
        );
    }
    await this.#cleanUpNode(node, stage, outcome === "unreachable");
    await this.#endNode(node, outcome === "unreachable" ? "unreachable" : "failed", problem);
  }

  /** The failed stage's `onFailure` stages on the node; of an unreachable one only what the bastion does. */
  async #cleanUpNode(node: RunNode, stage: PlannedStage | undefined, isGone: boolean): Promise<void> {
    const stages = (stage?.onFailure ?? [])
      .filter(({ task }) => !isGone || task.kind === "action")
      .map((one) => ({ ...one, id: `${one.id}:${node.name}` }));
    if (stages.length === 0 || this.deps.abort.aborted) return;
    for (const { id } of stages) this.tracker.expect(id, [node.name]);
    const end = await walkLane(this, node, stages, { mayGoOn: () => !this.deps.abort.aborted, isLast: false });
    if (end.outcome !== "ok") this.#warnOfCleanUp(end.problem, node.name);
  }

  #warnOfCleanUp(problem: Problem | undefined, node?: string): void {
    const text = `cleaning up failed as well: ${problem?.message ?? "it was interrupted"}`;
    this.deps.emit({ type: "warning", ...(node !== undefined && { node }), text });
  }

  async #runBarrier(stage: PlannedStage): Promise<void> {
    const against = stage.skip ?? (this.#hasNodeLeft() ? conditionAgainst(this, stage) : "no node is left");
    if (typeof against === "string") {
      const leftOut = stage.skip !== undefined && stage.task.kind === "action" ? stage.task.action.leftOut : undefined;
      this.outputs.set(stage.register, undefined, leftOut ?? new Unknown(`stage ${stage.id} (skipped)`));
      return this.tracker.leave(stage.id, "", "skipped", against);
    }
    this.tracker.enter(stage.id);
    const { outcome, problem } = against
      ? ({ outcome: "failed", problem: against } as const)
      : await runAction(this, stage);
    if (outcome === "failed") {
      this.tracker.leave(stage.id, "", "failed", problem?.message);
      await this.#cleanUp(stage);
      this.#halt = problem ? { problem } : {};
      return;
    }
    this.#wasCut ||= outcome === "interrupted";
    this.tracker.leave(stage.id, "", outcome === "interrupted" ? "interrupted" : "ok");
  }

  #hasNodeLeft(): boolean {
    const nodes = [...this.nodes.values()];
    return nodes.length === 0 || nodes.some(({ isAlive, outcome }) => isAlive || outcome === "done");
  }

  async #cleanUp(stage: PlannedStage): Promise<void> {
    if (stage.onFailure.length === 0 || this.isStopping) return;
    for (const { id, nodes } of stage.onFailure) this.tracker.expect(id, nodes);
    await this.#runParts(arrange(stage.onFailure));
  }

  async #endNodes(): Promise<void> {
    const wasCut = !this.#mayGoOn();
    await Promise.all(
      [...this.nodes.values()].map((node) => {
        if (!wasCut) return this.#endNode(node, "done");
        return this.#endNode(node, node.wasStarted ? "interrupted" : "not-started");
      }),
    );
  }

  async #endNode(node: RunNode, outcome: NodeOutcome, problem?: Problem): Promise<void> {
    try {
      await node.end(outcome, problem);
    } catch (error) {
      this.noteBug();
      this.deps.emit({ type: "warning", node: node.name, text: `closing it failed: ${String(error)}` });
    }
  }

  #started(): RunEventBody {
    const { deps, plan, request } = this;
    return {
      type: "run.started",
      runId: deps.runId,
      title: plan.title,
      command: request.command,
      nodes: plan.nodes,
      stages: plan.stages.map(outlineOf),
      dryRun: request.dryRun,
      ...(deps.revision !== undefined && { revision: deps.revision }),
      ...(deps.dirty !== undefined && { dirty: deps.dirty }),
      who: deps.who,
      ...(deps.earlier.length > 0 && { resumed: true }),
    };
  }

  #finish(): RunResult {
    const { outcome, exitCode } = this.#verdict();
    const failed = [...this.nodes.values()].find((node) => node.problem !== undefined);
    const problem = failed?.problem ?? this.#halt?.problem;
    this.deps.emit({ type: "run.finished", outcome, exitCode, ...(problem && outcome !== "done" && { problem }) });
    return { exitCode };
  }

  #verdict(): { readonly outcome: RunOutcome; readonly exitCode: ExitCode } {
    const ends = new Set([...this.nodes.values()].map((node) => node.outcome));
    const wasCut = this.#wasCut || ends.has("interrupted") || ends.has("not-started");
    if (this.#hasBug) return { outcome: "failed", exitCode: exitCodes.bug };
    if (this.isStopping && wasCut) return { outcome: "interrupted", exitCode: exitCodes.interrupted };
    if (ends.has("failed") || this.#haltIsFailure(ends)) return { outcome: "failed", exitCode: exitCodes.failed };
    if (ends.has("unreachable")) return { outcome: "unreachable", exitCode: exitCodes.unreachable };
    if (ends.has("interrupted")) return { outcome: "failed", exitCode: exitCodes.failed };
    return { outcome: "done", exitCode: exitCodes.done };
  }

  /** A run that halted only because too many nodes were unreachable is “unreachable”, not “failed”. */
  #haltIsFailure(ends: ReadonlySet<NodeOutcome | undefined>): boolean {
    return this.#halt !== undefined && !(ends.has("unreachable") && this.#isUnreachableHalt());
  }

  #isUnreachableHalt(): boolean {
    const problem = this.#halt?.problem;
    return [...this.nodes.values()].some((node) => node.outcome === "unreachable" && node.problem === problem);
  }

  #nodeOf(name: string, recorded: ReadonlyMap<string, readonly Outcome[]>): RunNode {
    const { deps, plan, request } = this;
    const entry = plan.roster.nodes.get(name) as NodeEntry;
    return new RunNode(entry, deps.emit, (emit) =>
      deps.openSession({
        node: entry,
        endpoint: endpointOf(entry, plan.roster, (file, reference) => this.secrets.keyPassphrase(file, reference)),
        connect: (to, options) => this.#connect(to, options),
        runId: deps.runId,
        nonce: deps.nonce,
        who: deps.who,
        dryRun: request.dryRun,
        grants: request.grants,
        emit,
        sudoPassword: () => this.secrets.sudoPassword(entry),
        recorded,
        resumed: deps.earlier.length > 0,
        waitForLock: request.waitForLock,
        connectTimeout: CONNECT_TIMEOUT,
        connectSlot: () => this.#connecting.take(),
      }),
    );
  }
}

function outlineOf({ id, title, nodes, task }: PlannedStage): StageOutline {
  return { id, title, nodes: nodes ?? [], ...(task.kind === "action" && { action: task.action.name }) };
}
