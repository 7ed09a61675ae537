import { createHash } from "node:crypto";
import type { Approved, HookAnswer, Owner, Progress, Report, Row, Wish } from "#rollout/records.ts";
import { Statement, targetIdOf, type Bundle } from "#rollout/spec.ts";
import { hookKey, type RolloutView } from "#rollout/view.ts";
import type { z } from "zod";
import { canonical } from "../cluster/canonical.ts";
import type { Found, Records } from "../cluster/records.ts";
import { keys, type UpdateHead } from "../cluster/registers.ts";

/** All registers of one cluster update, by what they say. */
export interface UpdateRecords {
  readonly name: string;
  readonly head: Found<z.output<typeof UpdateHead>>;
  readonly statement: Statement;
  readonly owner: Owner;
  readonly approved: Approved | undefined;
  readonly wishes: RolloutView["wishes"];
  readonly progress: Found<Progress> | undefined;
  readonly rows: ReadonlyMap<string, Row>;
  readonly reports: ReadonlyMap<string, Report>;
  readonly answers: ReadonlyMap<string, HookAnswer>;
}

/** The names of all updates that can be read. */
export function* updateNames({ replica }: Records): Iterable<string> {
  for (const [key] of replica.entries("update/")) {
    const name = /^update\/([^/]+)\/head$/.exec(key)?.[1];
    if (name !== undefined) yield name;
  }
}

const statements = new WeakMap<object, Statement | undefined>();

/** What was signed, as far as it can be read; each text is parsed once. */
function statementOf(head: z.output<typeof UpdateHead>): Statement | undefined {
  if (!statements.has(head)) {
    const { success, data } = Statement.safeParse(JSON.parse(head.signed.statement));
    statements.set(head, success ? data : undefined);
  }
  return statements.get(head);
}

/** Undefined when there is none of this name, or none that can be read. */
export function readUpdate(records: Records, name: string): UpdateRecords | undefined {
  const of = keys.update(name);
  const head = records.get("updateHead", of.head);
  const owner = records.value("updateOwner", of.owner);
  const statement = head && statementOf(head.value);
  if (!head || !owner || !statement) return undefined;
  const below = (part: string): string => `${of.all}${part}/`;
  const rows = new Map<string, Row>();
  for (const { key, value } of records.list("updateRow", below("node"))) rows.set(lastOf(key), value);
  const reports = new Map<string, Report>();
  for (const { key, value } of records.list("updateReport", below("report"))) reports.set(lastOf(key), value);
  const answers = new Map<string, HookAnswer>();
  for (const { key, value } of records.list("updateHook", below("hook"))) {
    const [node = "", hook = ""] = key.split("/").slice(-2);
    answers.set(hookKey(node, decodeURIComponent(hook)), value);
  }
  return {
    name,
    head,
    statement,
    owner,
    approved: records.value("updateApproved", of.approved),
    wishes: wishesOf(records, of.wish),
    progress: records.get("updateProgress", of.progress),
    rows,
    reports,
    answers,
  };
}

function wishesOf(records: Records, keyOf: ReturnType<typeof keys.update>["wish"]): RolloutView["wishes"] {
  const wishOf = (action: "cancel" | "rollback" | "promote"): Wish | undefined =>
    records.value("updateWish", keyOf(action));
  const [cancel, rollback, promote] = [wishOf("cancel"), wishOf("rollback"), wishOf("promote")];
  return { ...(cancel && { cancel }), ...(rollback && { rollback }), ...(promote && { promote }) };
}

function lastOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The bundles that updates name. */
export function namedBundles(records: Records): readonly Bundle[] {
  return [...updateNames(records)].flatMap((name) => readUpdate(records, name)?.statement.bundle ?? []);
}

/** What a node that is done runs. */
export function targetOf(statement: Pick<Statement, "spec" | "bundle">): RolloutView["target"] {
  return { id: targetIdOf(statement), version: statement.bundle?.version ?? "" };
}

/** What makes two manifests the same: all that they say, whatever the order, and whenever it was signed. */
export function hashOf({ spec, bundle }: Pick<Statement, "spec" | "bundle">): string {
  return sha256(canonical({ spec, bundle: bundle ?? null }));
}

/** What an approval is bound to: the manifest, its generation, and which nodes it means. */
export function planHashOf(hash: string, generation: number, nodes: readonly string[]): string {
  return sha256(canonical({ hash, generation, nodes: nodes.toSorted() }));
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
