import { createHash } from "node:crypto";
import {
  hasEnded,
  isRolling,
  type PlanApproval,
  type Attendance,
  type HookAnswer,
  type NodeAssignment,
  type Owner,
  type RolloutProgress,
  type Report,
  type OperatorRequest,
  type RequestAction,
} from "#rollout/records.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { UpdateStatement, targetIdOf } from "#rollout/spec.ts";
import { hookKey, type RolloutInput } from "#rollout/rollout-input.ts";
import type { z } from "zod";
import { canonicalJson } from "../cluster/canonical-json.ts";
import type { ParsedRegister, Records } from "../cluster/records.ts";
import { keys, type UpdateHead } from "../cluster/registers.ts";

/** All registers of one cluster update. */
export interface UpdateRecords {
  readonly name: string;
  readonly head: ParsedRegister<z.output<typeof UpdateHead>>;
  readonly statement: UpdateStatement;
  readonly owner: Owner;
  readonly approved: PlanApproval | undefined;
  readonly requests: RolloutInput["requests"];
  readonly progress: ParsedRegister<RolloutProgress> | undefined;
  readonly rows: ReadonlyMap<string, NodeAssignment>;
  readonly reports: ReadonlyMap<string, Report>;
  readonly answers: ReadonlyMap<string, HookAnswer>;
  readonly attendance: Attendance | undefined;
}

export type UpdateIndex = ReturnType<typeof indexUpdates>;

/**
 * The present updates, each cached until its registers change: every heartbeat needs them, to know whether an update concerns
 * the node, and ended updates accumulate.
 */
export function indexUpdates(records: Records) {
  const { replica } = records;
  const names = new Set<string>();
  const cache = new Map<string, UpdateRecords | undefined>();
  for (const [key] of replica.entries("update/")) names.add(nameIn(key));
  const stop = replica.watch((changed) => {
    for (const key of changed) {
      if (!key.startsWith("update/")) continue;
      const name = nameIn(key);
      names.add(name);
      cache.delete(name);
    }
  });
  const read = (name: string): UpdateRecords | undefined => {
    if (!cache.has(name)) cache.set(name, names.has(name) ? readUpdate(records, name) : undefined);
    return cache.get(name);
  };
  return {
    /** The update of this name; undefined when there is none, or it cannot be read. */
    read,
    /** All names with registers, those of removed updates among them. */
    names: (): Iterable<string> => names,
    *all(): Iterable<UpdateRecords> {
      for (const name of [...names].toSorted()) {
        const update = read(name);
        if (update) yield update;
      }
    },
    stop,
  };
}

function nameIn(key: string): string {
  return key.split("/")[1] ?? "";
}

const statements = new WeakMap<object, UpdateStatement | undefined>();

/** The parsed statement of a head, cached; undefined if it is malformed. */
function statementOf(head: z.output<typeof UpdateHead>): UpdateStatement | undefined {
  if (!statements.has(head))
    statements.set(
      head,
      orUndefined(() => UpdateStatement.parse(JSON.parse(head.signed.statement))),
    );
  return statements.get(head);
}

/** The value, or undefined if reading throws: one malformed register must not make all updates unreadable. */
function orUndefined<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

function readUpdate(records: Records, name: string): UpdateRecords | undefined {
  const of = keys.update(name);
  const head = records.get("updateHead", of.head);
  const owner = records.value("updateOwner", of.owner);
  const statement = head && statementOf(head.value);
  // A removed update stays removed, even if a former owner writes later.
  if (!head || !owner || !statement || records.replica.stands(of.removed)) return undefined;
  const below = (part: string): string => `${of.all}${part}/`;
  const rows = new Map<string, NodeAssignment>();
  for (const { key, value } of records.list("updateRow", below("node"))) rows.set(lastOf(key), value);
  const reports = new Map<string, Report>();
  for (const { key, value } of records.list("updateReport", below("report"))) reports.set(lastOf(key), value);
  const answers = new Map<string, HookAnswer>();
  for (const { key, value } of records.list("updateHook", below("hook"))) {
    const [node = "", text = ""] = key.split("/").slice(-2);
    const hook = orUndefined(() => decodeURIComponent(text));
    if (hook !== undefined) answers.set(hookKey(node, hook), value);
  }
  return {
    name,
    head,
    statement,
    owner,
    approved: records.value("updateApproved", of.approved),
    requests: requestsOf(records, of.request),
    progress: records.get("updateProgress", of.progress),
    rows,
    reports,
    answers,
    attendance: records.value("updateAttendance", of.attendance),
  };
}

function requestsOf(records: Records, requestKey: ReturnType<typeof keys.update>["request"]): RolloutInput["requests"] {
  const read = (action: RequestAction): OperatorRequest | undefined =>
    records.value("updateRequest", requestKey(action));
  return omitUndefined({ cancel: read("cancel"), rollback: read("rollback"), promote: read("promote") });
}

/** Whether an update has ended, and waits neither for a requested rollback nor for anything else. */
export function isSettled({ progress, head, requests }: UpdateRecords): boolean {
  const now = progress?.value;
  if (now?.generation !== head.value.generation || now.waits !== undefined) return false;
  if (now.phase === "rolled_back") return true;
  return (
    hasEnded(now.phase) && (requests.rollback?.generation !== now.generation || requests.rollback.at === now.undone)
  );
}

export function isUnderWay({ progress }: UpdateRecords): boolean {
  return isRolling(progress?.value.phase);
}

function lastOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The node's report on the present generation, if there is one. */
export function presentReportOf({ head, reports }: UpdateRecords, id: string): Report | undefined {
  const report = reports.get(id);
  return report?.fence.generation === head.value.generation ? report : undefined;
}

/** The epoch of the next owner: above those of the present owner and of all nodes' reports. */
export function nextEpoch({ name, owner, reports }: Pick<UpdateRecords, "name" | "owner" | "reports">): number {
  const epochs = [...reports.values()].flatMap(({ fence }) => (fence.name === name ? [fence.epoch] : []));
  return 1 + Math.max(owner.epoch, ...epochs);
}

/** The target of an update: the id and version that its nodes report afterwards. */
export function targetOf(statement: Pick<UpdateStatement, "spec" | "bundle">): RolloutInput["target"] {
  return { id: targetIdOf(statement), version: statement.bundle?.version ?? "" };
}

/** The hash of a manifest's content, independent of the order of its keys and the time of its signature. */
export function manifestHashOf({ spec, bundle }: Pick<UpdateStatement, "spec" | "bundle">): string {
  return sha256(canonicalJson({ spec, bundle: bundle ?? null }));
}

/** The hash of a plan, to which an approval is bound: manifest, generation and nodes. */
export function planHashOf(hash: string, generation: number, nodes: readonly string[]): string {
  return sha256(canonicalJson({ hash, generation, nodes: nodes.toSorted() }));
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
