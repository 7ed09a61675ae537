import type { Approved, HookAnswer, Owner, Progress, Report, Row, Wish } from "#rollout/records.ts";
import { UpdateSpec } from "#rollout/spec.ts";
import type { Grant } from "#rollout/takeover.ts";
import type { RolloutView } from "#rollout/view.ts";
import type { Registers } from "./registers.ts";

/** A manifest as a controller took it. */
export interface Head {
  readonly generation: number;
  readonly target: string;
  readonly spec: UpdateSpec;
}

export const parseSpec = (spec: object): UpdateSpec => UpdateSpec.parse(spec);

/** The records of one update, as one controller holds them. */
export class Records {
  readonly name: string;
  readonly rows: ReadonlyMap<string, Row>;
  readonly reports: ReadonlyMap<string, Report>;
  /** By node and hook. */
  readonly answers: ReadonlyMap<string, HookAnswer>;
  readonly #claims: ReadonlyMap<string, Pick<Grant, "epoch" | "claimant">>;
  readonly #grants: ReadonlyMap<string, Grant>;
  readonly #wishes: ReadonlyMap<string, Wish>;
  readonly #registers: Registers;

  constructor(registers: Registers, name: string) {
    this.#registers = registers;
    this.name = name;
    const all = <T>(what: string): ReadonlyMap<string, T> =>
      registers.section(this.key(what)) as ReadonlyMap<string, T>;
    this.rows = all("node");
    this.reports = all("report");
    this.answers = all("hook");
    this.#claims = all("claim");
    this.#grants = all("grant");
    this.#wishes = all("wish");
  }

  key(what: string): string {
    return `update/${this.name}/${what}`;
  }

  #one<T>(what: string): T | undefined {
    return this.#registers.get(this.key(what)) as T | undefined;
  }

  get head(): Head | undefined {
    return this.#one("head");
  }

  get owner(): Owner | undefined {
    return this.#one("owner");
  }

  get progress(): Progress | undefined {
    return this.#one("progress");
  }

  report(id: string): Report | undefined {
    return this.reports.get(id);
  }

  get claims(): readonly Pick<Grant, "epoch" | "claimant">[] {
    return [...this.#claims.values()];
  }

  get grants(): readonly Grant[] {
    return [...this.#grants.values()];
  }

  get wishes(): RolloutView["wishes"] {
    return Object.fromEntries(this.#wishes);
  }

  viewOf(around: Pick<RolloutView, "self" | "nodes" | "now" | "hasMajority">): RolloutView | undefined {
    const { head, owner, progress, rows, reports, answers } = this;
    if (!head || !owner) return undefined;
    const { generation, target, spec } = head;
    const approved = this.#one<Approved>("approved");
    return {
      name: this.name,
      generation,
      spec,
      target: { id: target, version: target },
      owner,
      isApproved: approved?.generation === generation,
      progress,
      rows,
      reports,
      answers,
      wishes: this.wishes,
      ...around,
    };
  }
}

/** What registers say of a node's version, whichever update it was last concerned by. */
export function versionOf(all: readonly Records[], id: string): string {
  let last: Report | undefined;
  for (const records of all) {
    const report = records.report(id);
    if (report && report.epoch > (last?.epoch ?? 0)) last = report;
  }
  return last?.present.version ?? "g0";
}
