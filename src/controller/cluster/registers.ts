import { z } from "zod";
import { RuntimeFacts } from "#api/runtime-facts.ts";
import { Approval, Expected, Network, Storage, Taint } from "#api/schemas.ts";
import type { KeyRules } from "../replica/cluster-state.ts";
import type { MergeKind } from "#crdt/merge-kind.ts";
import {
  Approved,
  Attendance,
  HookAnswer,
  Owner,
  Progress,
  Report,
  NodeAssignment,
  OperatorRequest,
  type RequestAction,
} from "#rollout/records.ts";
import { SignedStatement } from "#rollout/spec.ts";

/** The keys of the replicated registers; one group of fields that must be consistent each. */
export const keys = {
  node: (id: string) =>
    ({
      all: `node/${id}/`,
      reg: `node/${id}/reg`,
      approval: `node/${id}/approval`,
      reject: (name: string) => `node/${id}/reject/${name}`,
      expected: `node/${id}/expected`,
      net: `node/${id}/net`,
      storage: `node/${id}/storage`,
      removed: `node/${id}/removed`,
      label: (name: string) => `node/${id}/label/${name}`,
      role: (name: string) => `node/${id}/role/${name}`,
      taint: (name: string) => `node/${id}/taint/${name}`,
    }) as const,
  controller: (id: string) =>
    ({
      /** Written by an operator, or by the bootstrap: membership. A controller writes the others about itself. */
      auth: `controller/${id}/auth`,
      addr: `controller/${id}/addr`,
      version: `controller/${id}/version`,
      settings: `controller/${id}/settings`,
      subCa: `controller/${id}/sub-ca`,
    }) as const,
  operator: (name: string, spki: string) => `operator/${name}/key/${spki}`,
  revoked: (spki: string) => `revoked/${spki}`,
  certificate: (serial: string) => `cert/${serial}`,
  object: (kind: string, name: string) => `object/${kind}/${name}`,
  config: (group: string) => `cluster/config/${group}`,
  update: (name: string) =>
    ({
      all: `update/${name}/`,
      /** The update was removed, and its name is never used again. */
      removed: `update/${name}/removed`,
      head: `update/${name}/head`,
      owner: `update/${name}/owner`,
      approved: `update/${name}/approved`,
      request: (action: RequestAction) => `update/${name}/wish/${action}`,
      progress: `update/${name}/progress`,
      /** The owner's row of a node, and the node's own report. */
      row: (node: string) => `update/${name}/node/${node}`,
      report: (node: string) => `update/${name}/report/${node}`,
      hook: (node: string, hook: string) => `update/${name}/hook/${node}/${encodeURIComponent(hook)}`,
      attendance: `update/${name}/attendance`,
    }) as const,
} as const;

const text = z.string();
/** The author of a decision, as `role id`, or `auto`. */
const by = text;

/** The schemas of registers' values. Unknown fields are kept: a newer controller may have written them (3.9). */
export const Registered = z.looseObject({
  hostname: text,
  address: text,
  dc: text,
  roles: z.array(text),
  labels: z.record(text, text),
  cpu: z.number(),
  memory: z.number(),
  version: text,
  bootId: text.optional(),
  /** SHA-256 of the public key that it registered with, the only key that it may use. */
  key: text,
  serial: text,
  certificateExpires: text,
  registeredAt: text,
  runtime: RuntimeFacts.optional(),
});
export type Registered = z.infer<typeof Registered>;
export const ApprovalRecord = z.looseObject({ epoch: z.int().min(0), state: Approval, by, reason: text.optional() });
export type ApprovalRecord = z.infer<typeof ApprovalRecord>;
/** The reason and the author of a reject; deleted by an approve that has read it (rejects.ts). */
const RejectRecord = z.looseObject({ by, reason: text.optional() });
export type RejectRecord = z.infer<typeof RejectRecord>;
/** `value` null hides a label that the node registered with. */
const LabelRecord = z.looseObject({ value: text.nullable() });
const RoleRecord = z.looseObject({ present: z.boolean() });
const Gone = z.looseObject({ at: text, by, reason: text });
/** `notAfter`: from then on the key can renew no certificate, and its revocation changes nothing. */
const Revoked = Gone.extend({ notAfter: text.optional() });
/** `owner` is the controller that removed an update, and deletes the rest of it. */
const UpdateRemoved = z.looseObject({ at: text, by, owner: text });
/** `next` is accepted as well, during a rotation. */
const Auth = z.looseObject({
  spki: text,
  next: text.optional(),
  address: text.optional(),
  dc: text,
  at: text.optional(),
});
export const CertificateRecordValue = z.looseObject({
  spki: text,
  role: z.enum(["controller", "node", "operator", "sub-ca"]),
  id: text,
  issuer: text,
  notAfter: text,
  issued: text,
  by,
});
export type CertificateRecordValue = z.infer<typeof CertificateRecordValue>;

/** A cluster update as it was applied last: the statement that the bastion signed. `hash` is of the spec and the bundle. */
export const UpdateHead = z.looseObject({
  generation: z.int().min(1),
  hash: text,
  signed: SignedStatement,
  createdAt: text,
  updatedAt: text,
  by,
});
/**
 * The kinds of registers: the schema that a shown value must have, and the merge of two. A new kind names, as `since`, the replication
 * protocol that it came with (replica/messages.ts): it is not written while a controller speaks an older one.
 */
export const kinds = {
  reg: { schema: Registered, merge: "lww" },
  approval: { schema: ApprovalRecord, merge: "approval" },
  reject: { schema: RejectRecord, merge: "remove-wins", since: 2 },
  expected: { schema: Expected, merge: "lww" },
  net: { schema: Network, merge: "lww" },
  storage: { schema: Storage, merge: "lww" },
  nodeRemoved: { schema: Gone, merge: "first" },
  label: { schema: LabelRecord, merge: "lww" },
  role: { schema: RoleRecord, merge: "lww" },
  taint: { schema: Taint, merge: "lww" },
  auth: { schema: Auth, merge: "lww" },
  addr: { schema: z.looseObject({ address: text, dc: text }), merge: "lww" },
  version: {
    schema: z.looseObject({ version: text, protocol: z.int().optional(), certificateExpires: text.optional() }),
    merge: "lww",
  },
  settings: { schema: z.looseObject({ requireManualApproval: z.boolean() }), merge: "lww" },
  subCa: { schema: z.looseObject({ certificate: text, serial: text, notAfter: text }), merge: "lww" },
  operator: { schema: z.looseObject({ spki: text }), merge: "first" },
  revoked: { schema: Revoked, merge: "first" },
  certificate: { schema: CertificateRecordValue, merge: "first" },
  conflict: { schema: z.unknown(), merge: "remove-wins" },
  object: { schema: z.record(text, z.unknown()), merge: "lww" },
  config: { schema: z.record(text, z.unknown()), merge: "lww" },
  updateRemoved: { schema: UpdateRemoved, merge: "first", since: 4 },
  updateHead: { schema: UpdateHead, merge: "generation", since: 3 },
  updateOwner: { schema: Owner, merge: "epoch", since: 6 },
  updateApproved: { schema: Approved, merge: "lww", since: 3 },
  updateWish: { schema: OperatorRequest, merge: "lww", since: 3 },
  updateProgress: { schema: Progress, merge: "epoch", since: 3 },
  updateRow: { schema: NodeAssignment, merge: "epoch", since: 3 },
  updateReport: { schema: Report, merge: "epoch", since: 3 },
  updateHook: { schema: HookAnswer, merge: "lww", since: 3 },
  updateAttendance: { schema: Attendance, merge: "lww", since: 5 },
  /** Protocols 3 to 5 decided a takeover by these two; they are still merged, and no longer written. */
  updateClaim: { schema: z.unknown(), merge: "first", since: 3 },
  updateGrant: { schema: z.unknown(), merge: "first", since: 3 },
} as const satisfies Readonly<
  Record<string, { readonly schema: z.ZodType; readonly merge: MergeKind; readonly since?: number }>
>;
export type Kind = keyof typeof kinds;
export type ValueOf<Name extends Kind> = z.output<(typeof kinds)[Name]["schema"]>;

/**
 * Kinds whose concurrent writes lose nothing: facts that a node or a controller repeats about itself, a revocation by
 * any writer, and a rollout's progress, where the owner's epoch decides.
 */
const uncontested: ReadonlySet<Kind | undefined> = new Set([
  ...(["reg", "net", "storage"] as const),
  ...(["addr", "version", "settings", "subCa"] as const),
  "revoked",
  ...(["updateApproved", "updateWish", "updateProgress", "updateRow", "updateReport"] as const),
  ...(["updateHook", "updateAttendance", "updateClaim", "updateGrant", "updateRemoved"] as const),
]);

const patterns: readonly (readonly [RegExp, Kind])[] = [
  [/^node\/[^/]+\/reg$/, "reg"],
  [/^node\/[^/]+\/approval$/, "approval"],
  [/^node\/[^/]+\/reject\/[^/]+$/, "reject"],
  [/^node\/[^/]+\/expected$/, "expected"],
  [/^node\/[^/]+\/net$/, "net"],
  [/^node\/[^/]+\/storage$/, "storage"],
  [/^node\/[^/]+\/removed$/, "nodeRemoved"],
  [/^node\/[^/]+\/label\/.+$/, "label"],
  [/^node\/[^/]+\/role\/.+$/, "role"],
  [/^node\/[^/]+\/taint\/.+$/, "taint"],
  [/^controller\/[^/]+\/auth$/, "auth"],
  [/^controller\/[^/]+\/addr$/, "addr"],
  [/^controller\/[^/]+\/version$/, "version"],
  [/^controller\/[^/]+\/settings$/, "settings"],
  [/^controller\/[^/]+\/sub-ca$/, "subCa"],
  [/^operator\/[^/]+\/key\/[0-9a-f]{64}$/, "operator"],
  [/^revoked\/[0-9a-f]{64}$/, "revoked"],
  [/^cert\/[0-9a-f]+$/, "certificate"],
  [/^conflict\/.+$/, "conflict"],
  [/^object\/[^/]+\/.+$/, "object"],
  [/^cluster\/config\/.+$/, "config"],
  [/^update\/[^/]+\/removed$/, "updateRemoved"],
  [/^update\/[^/]+\/head$/, "updateHead"],
  [/^update\/[^/]+\/owner$/, "updateOwner"],
  [/^update\/[^/]+\/approved$/, "updateApproved"],
  [/^update\/[^/]+\/wish\/(?:cancel|rollback|promote)$/, "updateWish"],
  [/^update\/[^/]+\/progress$/, "updateProgress"],
  [/^update\/[^/]+\/node\/[^/]+$/, "updateRow"],
  [/^update\/[^/]+\/report\/[^/]+$/, "updateReport"],
  [/^update\/[^/]+\/hook\/[^/]+\/[^/]+$/, "updateHook"],
  [/^update\/[^/]+\/attendance$/, "updateAttendance"],
  [/^update\/[^/]+\/claim\/\d+\/[^/]+$/, "updateClaim"],
  [/^update\/[^/]+\/grant\/\d+\/[^/]+$/, "updateGrant"],
];

/** By the first word of a key: it is asked for every register that is merged. */
const patternsBy = Map.groupBy(patterns, ([{ source }]) => source.slice(1, source.indexOf("\\/")));

/** The kind of a key; undefined for a kind of a newer version, whose registers are kept and relayed all the same. */
export function kindOf(key: string): Kind | undefined {
  return patternsBy.get(key.slice(0, key.indexOf("/")))?.find(([pattern]) => pattern.test(key))?.[1];
}

/**
 * Whether a register's value appears only where it is requested: never in a list of conflicts. Objects of kind Secret
 * are so.
 */
export function isSecret(key: string): boolean {
  return key.startsWith(keys.object("Secret", ""));
}

/** Whether two concurrent writes of a key are a conflict. A node alone can cause none. */
export function isContested(key: string): boolean {
  return !uncontested.has(kindOf(key));
}

/** How the replica merges a key. Every version of kcore must give the same answer for the same key. */
export function mergeKindOf(key: string): MergeKind {
  const kind = kindOf(key);
  return kind === undefined ? "lww" : kinds[kind].merge;
}

/** Whether this version can read a register's value; the replica quarantines other values (K9, S-24). */
export function isKnown(key: string, json: string): boolean {
  const kind = kindOf(key);
  if (kind === undefined) return false;
  try {
    return kinds[kind].schema.safeParse(JSON.parse(json)).success;
  } catch {
    return false;
  }
}

/** The rules by which a controller's database merges and shows registers. */
export const keyRules: KeyRules = { mergeKindOf, isContested, isSecret, isKnown };
