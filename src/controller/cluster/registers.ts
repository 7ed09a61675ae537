import { z } from "zod";
import { RuntimeFacts } from "#api/runtime-facts.ts";
import { Approval, Expected, NetworkFacts, StorageFacts, Taint } from "#api/schemas.ts";
import type { KeyRules } from "../replica/replica-ports.ts";
import type { MergeKind } from "#crdt/merge-kind.ts";
import {
  PlanApproval,
  Attendance,
  HookAnswer,
  Owner,
  RolloutProgress,
  Report,
  NodeAssignment,
  OperatorRequest,
  type RequestAction,
} from "#rollout/records.ts";
import { SignedStatement } from "#rollout/spec.ts";

/** The keys of the replicated registers. A register holds one group of fields that must be consistent. */
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
      taint: (name: string) => `node/${id}/taint/${name}`,
    }) as const,
  controller: (id: string) =>
    ({
      /** Membership, written by an operator or at the founding. The controller itself writes its other registers. */
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
      /** The mark of a removed update, whose name is never used again. */
      removed: `update/${name}/removed`,
      head: `update/${name}/head`,
      owner: `update/${name}/owner`,
      approved: `update/${name}/approved`,
      /** `wish` is the word of the stored key: another one would lose the requests of running updates. */
      request: (action: RequestAction) => `update/${name}/wish/${action}`,
      progress: `update/${name}/progress`,
      /** The owner's assignment of a node. */
      row: (node: string) => `update/${name}/node/${node}`,
      report: (node: string) => `update/${name}/report/${node}`,
      hook: (node: string, hook: string) => `update/${name}/hook/${node}/${encodeURIComponent(hook)}`,
      attendance: `update/${name}/attendance`,
    }) as const,
} as const;

const text = z.string();
/** The author of a decision, as `role id`, or `auto`. */
const by = text;

/** The schemas of registers' values. Unknown fields are kept: a newer controller may have written them. */
export const RegistrationRecord = z.looseObject({
  hostname: text,
  address: text,
  dc: text,
  roles: z.array(text),
  labels: z.record(text, text),
  cpu: z.number(),
  memory: z.number(),
  version: text,
  bootId: text.optional(),
  /** SHA-256 of the public key that the node registered with; another recorded key counts as approved only after the next registration. */
  key: text,
  serial: text,
  certificateExpires: text,
  registeredAt: text,
  runtime: RuntimeFacts.optional(),
});
export type RegistrationRecord = z.infer<typeof RegistrationRecord>;
export const ApprovalRecord = z.looseObject({ epoch: z.int().min(0), state: Approval, by, reason: text.optional() });
export type ApprovalRecord = z.infer<typeof ApprovalRecord>;
/** The reason and the author of a reject; deleted by an approve that has read it (rejects.ts). */
const RejectRecord = z.looseObject({ by, reason: text.optional() });
export type RejectRecord = z.infer<typeof RejectRecord>;
/** `value` null hides a label that the node registered with. */
const LabelRecord = z.looseObject({ value: text.nullable() });
const RemovalRecord = z.looseObject({ at: text, by, reason: text });
/** `notAfter`: the time from which the key can renew no certificate, so that its revocation may be deleted. */
const RevocationRecord = RemovalRecord.extend({ notAfter: text.optional() });
/** `owner`: the controller that removed the update, and deletes its other registers. */
const UpdateRemovalRecord = z.looseObject({ at: text, by, owner: text });
/** `next`: the key that is accepted beside `spki` during a rotation. */
const MembershipRecord = z.looseObject({
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

/** A cluster update as last applied: the statement that the bastion signed. `hash` is of the spec and the bundle. */
export const UpdateHead = z.looseObject({
  generation: z.int().min(1),
  hash: text,
  signed: SignedStatement,
  createdAt: text,
  updatedAt: text,
  by,
});
const AddressRecord = z.looseObject({ address: text, dc: text });
const VersionRecord = z.looseObject({ version: text, certificateExpires: text.optional() });
const SettingsRecord = z.looseObject({ requireManualApproval: z.boolean() });
const SubCaRecord = z.looseObject({ certificate: text, serial: text, notAfter: text });
const OperatorKey = z.looseObject({ spki: text });

interface KindRules {
  /**
   * False where concurrent writes lose nothing: facts that a node or controller repeats about itself, a revocation by any writer, and
   * all of an update except its head and owner.
   */
  readonly isContested?: boolean;
}

function kind<Schema extends z.ZodType>(
  pattern: RegExp,
  schema: Schema,
  merge: MergeKind,
  { isContested: contested = true }: KindRules = {},
) {
  return { pattern, schema, merge, isContested: contested };
}

/** The kinds of registers: the pattern of their keys, the schema of values that are shown, and the merge kind. */
export const registerKinds = {
  reg: kind(/^node\/[^/]+\/reg$/, RegistrationRecord, "lww", { isContested: false }),
  approval: kind(/^node\/[^/]+\/approval$/, ApprovalRecord, "approval"),
  reject: kind(/^node\/[^/]+\/reject\/[^/]+$/, RejectRecord, "remove-wins"),
  expected: kind(/^node\/[^/]+\/expected$/, Expected, "lww"),
  net: kind(/^node\/[^/]+\/net$/, NetworkFacts, "lww", { isContested: false }),
  storage: kind(/^node\/[^/]+\/storage$/, StorageFacts, "lww", { isContested: false }),
  nodeRemoved: kind(/^node\/[^/]+\/removed$/, RemovalRecord, "first"),
  label: kind(/^node\/[^/]+\/label\/.+$/, LabelRecord, "lww"),
  taint: kind(/^node\/[^/]+\/taint\/.+$/, Taint, "lww"),
  auth: kind(/^controller\/[^/]+\/auth$/, MembershipRecord, "lww"),
  addr: kind(/^controller\/[^/]+\/addr$/, AddressRecord, "lww", { isContested: false }),
  version: kind(/^controller\/[^/]+\/version$/, VersionRecord, "lww", { isContested: false }),
  settings: kind(/^controller\/[^/]+\/settings$/, SettingsRecord, "lww", { isContested: false }),
  subCa: kind(/^controller\/[^/]+\/sub-ca$/, SubCaRecord, "lww", { isContested: false }),
  operator: kind(/^operator\/[^/]+\/key\/[0-9a-f]{64}$/, OperatorKey, "first"),
  revoked: kind(/^revoked\/[0-9a-f]{64}$/, RevocationRecord, "first", { isContested: false }),
  certificate: kind(/^cert\/[0-9a-f]+$/, CertificateRecordValue, "first"),
  conflict: kind(/^conflict\/.+$/, z.unknown(), "remove-wins"),
  object: kind(/^object\/[^/]+\/.+$/, z.record(text, z.unknown()), "lww"),
  config: kind(/^cluster\/config\/.+$/, z.record(text, z.unknown()), "lww"),
  updateRemoved: kind(/^update\/[^/]+\/removed$/, UpdateRemovalRecord, "first", { isContested: false }),
  updateHead: kind(/^update\/[^/]+\/head$/, UpdateHead, "generation"),
  updateOwner: kind(/^update\/[^/]+\/owner$/, Owner, "epoch"),
  updateApproved: kind(/^update\/[^/]+\/approved$/, PlanApproval, "lww", { isContested: false }),
  updateRequest: kind(/^update\/[^/]+\/wish\/(?:cancel|rollback|promote)$/, OperatorRequest, "lww", {
    isContested: false,
  }),
  updateProgress: kind(/^update\/[^/]+\/progress$/, RolloutProgress, "epoch", { isContested: false }),
  updateRow: kind(/^update\/[^/]+\/node\/[^/]+$/, NodeAssignment, "epoch", { isContested: false }),
  updateReport: kind(/^update\/[^/]+\/report\/[^/]+$/, Report, "epoch", { isContested: false }),
  updateHook: kind(/^update\/[^/]+\/hook\/[^/]+\/[^/]+$/, HookAnswer, "lww", { isContested: false }),
  updateAttendance: kind(/^update\/[^/]+\/attendance$/, Attendance, "lww", { isContested: false }),
} as const;
export type RegisterKind = keyof typeof registerKinds;
export type ValueOf<Name extends RegisterKind> = z.output<(typeof registerKinds)[Name]["schema"]>;

/** The kinds by the first part of their keys, for a fast lookup: every merge of a register looks its kind up. */
const kindsByPart = Map.groupBy(
  Object.entries(registerKinds) as [RegisterKind, (typeof registerKinds)[RegisterKind]][],
  ([, { pattern }]) => pattern.source.slice(1, pattern.source.indexOf("\\/")),
);

/** The kind of a key; undefined for a kind of a newer version, whose registers are kept and relayed. */
export function registerKindOf(key: string): RegisterKind | undefined {
  return kindsByPart.get(key.slice(0, key.indexOf("/")))?.find(([, { pattern }]) => pattern.test(key))?.[0];
}

/** Whether a list of conflicts must not show a register's value: objects of kind Secret appear only where they are requested. */
export function isSecretKey(key: string): boolean {
  return key.startsWith(keys.object("Secret", ""));
}

/** Whether two concurrent writes of a key are a conflict. A node alone can cause no conflict. */
export function isContested(key: string): boolean {
  const found = registerKindOf(key);
  return found === undefined || registerKinds[found].isContested;
}

/** How the replica merges a key. Every version of kcore must give the same answer for the same key. */
export function mergeKindOf(key: string): MergeKind {
  const found = registerKindOf(key);
  return found === undefined ? "lww" : registerKinds[found].merge;
}

/** Whether this version can read a register's value; the replica quarantines other values (S-24). */
export function isKnown(key: string, json: string): boolean {
  const found = registerKindOf(key);
  if (found === undefined) return false;
  try {
    return registerKinds[found].schema.safeParse(JSON.parse(json)).success;
  } catch {
    return false;
  }
}

/** The rules by which a controller's database merges and shows registers. */
export const keyRules: KeyRules = { mergeKindOf, isContested, isSecret: isSecretKey, isKnown };
