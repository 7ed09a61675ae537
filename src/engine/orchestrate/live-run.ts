import type { NodeOutcome, Outcome, RunEvent } from "#engine/events/event.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { PeerTransfer } from "#engine/peer-transfer/peer-transfer.ts";
import { endpointOf } from "#engine/session/node-endpoint.ts";
import { grantsOf } from "#engine/session/own-grants.ts";
import {
  type Connect,
  type ConnectOptions,
  connectTimeouts,
  type Endpoint,
  type Host,
} from "#engine/transport/host.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { connectionsFor, isOutOfFiles } from "./connection-limit.ts";
import { isDesiredState, leavesOut } from "./node-revisions.ts";
import type { RunDependencies, RunRequest } from "./run-types.ts";
import { StageOutputs } from "./outputs.ts";
import { registeredNames, type RunPlan, type StageScope } from "./plan.ts";
import { RunNode } from "./run-node.ts";
import { RunSecrets } from "./run-secrets.ts";
import { Semaphore } from "./semaphore.ts";
import { StageTracker } from "./stage-tracker.ts";

/** The default number of nodes at a time. */
export const CONCURRENCY = 50;
/** The most connections that are being opened at a time. */
const MAX_CONNECTING = 32;

/** A run in progress: its plan, its nodes, the outputs of its stages. */
export class LiveRun {
  readonly plan: RunPlan;
  readonly request: RunRequest;
  readonly deps: RunDependencies;
  readonly nodes: ReadonlyMap<string, RunNode>;
  readonly outputs: StageOutputs;
  readonly tracker: StageTracker;
  readonly secrets: RunSecrets;
  /** The most nodes that may be connected at a time. */
  readonly mostConnected: number;
  readonly concurrency: number;
  /** Present if nodes send contents to each other. */
  readonly peerTransfer: PeerTransfer | undefined;
  readonly #connecting: Semaphore;
  #wasShort = false;
  #hasBug = false;

  constructor(plan: RunPlan, request: RunRequest, deps: RunDependencies) {
    this.plan = plan;
    this.request = request;
    this.deps = deps;
    this.secrets = new RunSecrets(deps);
    this.tracker = new StageTracker(deps.emit);
    this.mostConnected = deps.distribute ? Infinity : connectionsFor(deps.openFiles);
    this.concurrency = request.concurrency ?? CONCURRENCY;
    this.#connecting = new Semaphore(Math.min(MAX_CONNECTING, this.concurrency, this.mostConnected));
    this.outputs = new StageOutputs(registeredNames([...plan.stages, ...(plan.onFailure ?? [])]), [
      ...plan.roster.nodes.keys(),
    ]);
    this.peerTransfer = request.feed === "nodes" && !request.dryRun ? new PeerTransfer({ emit: deps.emit }) : undefined;
    const recorded = recordedSteps(deps.earlier);
    this.nodes = new Map(plan.nodes.map((name) => [name, this.#nodeOf(name, recorded.get(name) ?? new Map())]));
  }

  /** Whether a node gives connection and lock back after a block: not all nodes may be connected, and a worker is to take the next node. */
  get restsBetweenBlocks(): boolean {
    return this.deps.distribute !== undefined || this.nodes.size > this.mostConnected;
  }

  /** Whether an operator has stopped or aborted the run. */
  get isStopping(): boolean {
    return this.deps.stop.aborted || this.deps.abort.aborted;
  }

  get hasBug(): boolean {
    return this.#hasBug;
  }

  noteBug(): void {
    this.#hasBug = true;
  }

  scopeOf(node?: RunNode): StageScope {
    return this.outputs.stageScope(node?.entry);
  }

  /** Keeps the revision of a node that got the run's states, or a part of them. */
  keepRevision({ name, entry: { id }, hadWork, wasTouched }: RunNode, outcome: NodeOutcome): void {
    const { deps, request } = this;
    const { what, params, on, dryRun } = request;
    if (!isDesiredState(what) || dryRun || !hadWork || (outcome !== "done" && !wasTouched)) return;
    const { runId: run, revision, dirty } = deps;
    const isWhole = outcome === "done" && !leavesOut(request);
    const more = omitUndefined({ on, revision, dirty });
    deps.keepRevision?.(name, { id, run, at: deps.now(), what, params, isWhole, ...more });
  }

  /** Warns once that the bastion may open no further file. */
  warnOfFiles(consequence: string): void {
    if (this.#wasShort) return;
    this.#wasShort = true;
    const { openFiles = 0 } = this.deps;
    const limit = Number.isFinite(openFiles) && openFiles > 0 ? ` (${openFiles})` : "";
    const text = `this machine lets kcore open too few files${limit}: ${consequence}; to raise it: ulimit -n`;
    this.deps.emit({ type: "warning", text });
  }

  async #connect(endpoint: Endpoint, options?: ConnectOptions): Promise<Host> {
    try {
      return await this.deps.connect(endpoint, options);
    } catch (error) {
      if (isOutOfFiles(error)) this.warnOfFiles("a node is connected when another one's connection has ended");
      throw error;
    }
  }

  #nodeOf(name: string, recorded: ReadonlyMap<string, readonly Outcome[]>): RunNode {
    const { deps, plan, request } = this;
    const entry = plan.roster.nodes.get(name) as NodeEntry;
    const connect: Connect = (to, options) => this.#connect(to, options);
    return new RunNode(entry, recorded, deps.emit, (emit) => {
      const endpoint = endpointOf(entry, plan.roster, (...args) => this.secrets.keyPassphrase(...args));
      const { unlock } = deps;
      const { context } = request;
      const passphrase = (): Promise<string> => this.secrets.clusterPassphrase();
      return deps.openSession({
        node: entry,
        endpoint,
        connect,
        ...(unlock && {
          unlock: (signal) =>
            unlock({ node: entry, endpoint, connect, passphrase, ...omitUndefined({ context }), signal }),
        }),
        runId: deps.runId,
        nonce: deps.nonce,
        attempt: deps.attempt ?? firstAttempt(partOf(deps.earlier)),
        who: deps.who,
        dryRun: request.dryRun,
        grants: grantsOf(name, request.grants),
        tables: deps.tables,
        // A look at a part must not count as a look at the whole.
        ...(deps.looks && plan.leftOut === undefined && { looks: deps.looks(entry) }),
        emit,
        sudoPassword: (again) => this.secrets.sudoPassword(entry, again),
        recorded,
        ...omitUndefined({ peerBlobs: this.peerTransfer }),
        resumed: deps.earlier.length > 0,
        waitForLock: request.waitForLock,
        connectTimeout: connectTimeouts[entry.transport],
        connectSlot: () => this.#connecting.acquire(),
      });
    });
  }
}

/** The number of the part of a run that now begins, from 1: more than 1 if it is resumed. */
export function partOf(earlier: readonly RunEvent[]): number {
  return earlier.filter(({ type }) => type === "run.started").length + 1;
}

/** The lowest number of an attempt of a part of a run: later parts have higher ones. */
export function firstAttempt(part: number): number {
  return part * 1e9;
}

/** By node and step id, the outcomes in the earlier parts of a resumed run, in order. */
function recordedSteps(earlier: readonly RunEvent[]): ReadonlyMap<string, ReadonlyMap<string, readonly Outcome[]>> {
  const recorded = new Map<string, Map<string, Outcome[]>>();
  for (const event of earlier) {
    if (event.type !== "step.finished") continue;
    const steps = recorded.get(event.node) ?? new Map<string, Outcome[]>();
    steps.set(event.step, [...(steps.get(event.step) ?? []), event.outcome]);
    recorded.set(event.node, steps);
  }
  return recorded;
}
