import { decide } from "#rollout/decide.ts";
import { fenceOf } from "#rollout/order.ts";
import type { NodePhase, RolloutProgress, Report, NodeAssignment, RequestAction } from "#rollout/records.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import { hookKey, type RolloutNode, type RolloutInput } from "#rollout/rollout-input.ts";

/** The versions of nodes before and after a stepped rollout. */
export const old = { id: "/nix/store/old", version: "1.0" };
export const target = { id: "/nix/store/new", version: "2.0", generation: 2 };

/** A ready node on the old version. */
export function aNode(id: string, more: Partial<RolloutNode> = {}): RolloutNode {
  const ready = { dc: "DC1", labels: {}, isController: false, isApproved: true, isReady: true, version: "1.0" };
  return { id, hostname: id, ...ready, ...more };
}

/** The spec of an update of all nodes that needs no approval, with changes. */
export function aSpec(more: object = {}): UpdateSpec {
  return UpdateSpec.parse({
    target: { version: "2.0" },
    selector: { allNodes: true },
    approvalPolicy: "auto",
    ...more,
  });
}

interface Start {
  readonly spec?: object;
  readonly nodes: readonly (string | RolloutNode)[];
  readonly self?: string;
}

/** One owner and its registers. A test sets reports and time, and reads the owner's records. */
export class SteppedRollout {
  view: RolloutInput;
  /** All rows that were written, in order. */
  readonly written: (readonly [string, NodePhase])[] = [];
  /** The number of registers and of bytes that each decision wrote. */
  readonly sizes: (readonly [number, number])[] = [];

  constructor({ spec = {}, nodes, self = "c1" }: Start) {
    const all = nodes.map((node) => (typeof node === "string" ? aNode(node) : node));
    this.view = {
      name: "u",
      generation: 1,
      spec: aSpec(spec),
      target,
      self,
      owner: { epoch: 1, owner: self },
      isApproved: false,
      progress: undefined,
      rows: new Map(),
      reports: new Map(),
      answers: new Map(),
      requests: {},
      nodes: new Map(all.map((node) => [node.id, node])),
      now: 1_000_000,
    };
  }

  /** Writes decisions until none is left, within a bound. */
  settle(): this {
    for (let round = 0; round < 100; round++) {
      const { progress, rows } = decide(this.view);
      if (!progress && rows.size === 0) return this;
      for (const [id, row] of rows) this.written.push([id, row.phase]);
      const values = [...rows.values(), ...(progress ? [progress] : [])];
      const bytes = values.reduce((sum, value) => sum + Buffer.byteLength(JSON.stringify(value)), 0);
      this.sizes.push([values.length, bytes]);
      this.view = {
        ...this.view,
        progress: progress ?? this.view.progress,
        rows: new Map([...this.view.rows, ...rows]),
      };
    }
    throw new Error(`it does not settle: ${JSON.stringify(this.view.progress)}`);
  }

  /** Sets a node's report on its present row, or on the order of `more.fence`. */
  report(id: string, state: Report["state"], more: Partial<Report> = {}): this {
    const fence = fenceOf(this.view.name, this.row(id));
    const present = state === "activated" ? target : old;
    const report = { epoch: (this.view.reports.get(id)?.epoch ?? 0) + 1, fence, state, present, at: this.view.now };
    this.view = { ...this.view, reports: new Map([...this.view.reports, [id, { ...report, ...more }]]) };
    if (state === "activated") this.node(id, { version: target.version });
    if (state === "rolled_back") this.node(id, { version: old.version });
    return this.settle();
  }

  /** The nodes, by default all, confirm their owner. */
  confirm(...ids: readonly string[]): this {
    for (const id of ids.length > 0 ? ids : this.view.rows.keys()) this.report(id, "fenced");
    return this;
  }

  /** The node reports that it is prepared, then activated. */
  finish(id: string): this {
    return this.report(id, "prepared").report(id, "activated");
  }

  node(id: string, more: Partial<RolloutNode>): this {
    const node = { ...(this.view.nodes.get(id) ?? aNode(id)), ...more };
    return this.set({ nodes: new Map([...this.view.nodes, [id, node]]) });
  }

  request(
    action: RequestAction,
    more: { readonly at?: string; readonly now?: boolean; readonly generation?: number } = {},
  ): this {
    const request = { generation: 1, by: "operator", at: "2026-01-01T00:00:00Z", ...more };
    return this.set({ requests: { ...this.view.requests, [action]: request } });
  }

  answer(id: string, hook: string, ok: boolean, message?: string): this {
    const { generation, seq, epoch, owner } = this.row(id);
    const answer = { generation, seq, epoch, owner, ok, ...(message === undefined ? {} : { message }) };
    return this.set({ answers: new Map([...this.view.answers, [hookKey(id, hook), answer]]) });
  }

  after(seconds: number): this {
    return this.set({ now: this.view.now + seconds * 1000 });
  }

  set(more: Partial<RolloutInput>): this {
    this.view = { ...this.view, ...more };
    return this.settle();
  }

  /** Another controller owns the update from the next epoch on; `known`: its records, where they differ. */
  takeOver(self: string, known: Partial<RolloutInput> = {}): this {
    const { owner } = this.view;
    return this.set({ self, owner: { epoch: owner.epoch + 1, owner: self }, ...known });
  }

  row(id: string): NodeAssignment {
    const row = this.view.rows.get(id);
    if (!row) throw new Error(`no row of ${id}`);
    return row;
  }

  get progress(): RolloutProgress {
    if (!this.view.progress) throw new Error("there is no progress");
    return this.view.progress;
  }

  /** The phase of each node, as one text: `n1=succeeded n2=pending`. */
  get phases(): string {
    return [...this.view.rows].map(([id, { phase }]) => `${id}=${phase}`).join(" ");
  }
}
