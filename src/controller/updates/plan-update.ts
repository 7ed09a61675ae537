import type { AnswerOf } from "#api/methods.ts";
import type { PlannedNode, UpdateDraft } from "#api/update-schemas.ts";
import { maxValueBytes } from "#crdt/register.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { isHook } from "#rollout/hooks.ts";
import { hasEnded, type Report } from "#rollout/records.ts";
import { matchSelector, selectionFaults, divideIntoWaves, type Waves } from "#rollout/selection.ts";
import { updateKindOf, unpackedSize } from "#rollout/spec.ts";
import { isOlder } from "#rollout/version.ts";
import { isInWindow } from "#rollout/window.ts";
import { keys } from "../cluster/registers.ts";
import { readNodes, type KnownNode } from "./known-input.ts";
import {
  manifestHashOf,
  isUnderWay,
  planHashOf,
  presentReportOf,
  targetOf,
  type UpdateRecords,
} from "./update-records.ts";
import { targetTitle, type ViewParts } from "./update-views.ts";

/** Plans an update without changing anything: the effect of applying this draft, and its obstacles. */
export function makePlan(
  parts: ViewParts,
  { again = false, ...draft }: UpdateDraft & { readonly again?: boolean | undefined },
): AnswerOf<"planUpdate"> {
  const { name, spec } = draft;
  const nodes = readNodes(parts);
  const present = parts.index.read(name);
  const hash = manifestHashOf(draft);
  const isSame = isApplied(present, hash, again);
  const generation = present ? (isSame ? present.head.value.generation : latestGeneration(present) + 1) : 1;
  const selected = matchSelector(nodes.values(), spec.selector) as readonly KnownNode[];
  const { owner, epoch } = present?.owner ?? { owner: parts.controllerId, epoch: 1 };
  const { waves } = divideIntoWaves(selected, spec, owner);
  const preparedBy = (id: string): Report | undefined => (present && isSame ? presentReportOf(present, id) : undefined);
  const planned = selected.map((node) => planNodeUpdate(draft, node, { waves, prepared: preparedBy(node.id) }));
  const blockers = [
    ...selectionFaults(spec, { nodes: [...nodes.values()], of: "this cluster", selected }),
    ...blockersOf(parts, draft, { present, selected, waves, isSame }),
  ];
  return {
    name,
    result: present ? (isSame ? "unchanged" : "updated") : "created",
    generation,
    owner: { id: owner, epoch },
    hash: planHashOf(
      hash,
      generation,
      selected.map(({ id }) => id),
    ),
    viable: blockers.length === 0 && planned.every((node) => node.blockers.length === 0),
    target: targetTitle(draft),
    strategy: strategyText(spec),
    approval: spec.approvalPolicy === "manual" ? "manual" : "automatic",
    ...omitUndefined({ likelyRequiresReboot: rebootOfAny(planned), attendance: present?.attendance }),
    waves: waves.map((wave) => [...wave]),
    nodes: planned,
    blockers,
    warnings: warningsOf(parts, draft, selected),
  };
}

/**
 * Whether this manifest is applied already, so that applying it changes nothing. It is not if nodes know a later generation, since they
 * refuse orders of this one; nor if it has ended and `again` repeats it.
 */
export function isApplied(present: UpdateRecords | undefined, hash: string, again: boolean): boolean {
  if (present?.head.value.hash !== hash) return false;
  const { generation } = present.head.value;
  if (latestGeneration(present) > generation) return false;
  const progress = present.progress?.value;
  return !(again && progress?.generation === generation && hasEnded(progress.phase));
}

/**
 * The latest generation that the head or a node's report names. During a network cut a former owner may have accepted a manifest that reached
 * nodes, but whose head later lost to the new owner's.
 */
function latestGeneration({ name, head, reports }: UpdateRecords): number {
  const generations = [...reports.values()].flatMap(({ fence }) => (fence.name === name ? [fence.generation] : []));
  return Math.max(head.value.generation, ...generations);
}

function strategyText({ strategy }: UpdateDraft["spec"]): string {
  const { type, maxUnavailable, batchSize } = strategy;
  return `${type}, ${batchSize === undefined ? "" : `batches of ${batchSize}, `}at most ${maxUnavailable} down`;
}

function blockersOf(
  { index, records }: ViewParts,
  { name, spec, bundle }: UpdateDraft,
  {
    present,
    selected,
    waves,
    isSame,
  }: {
    readonly present: UpdateRecords | undefined;
    readonly selected: readonly KnownNode[];
    readonly waves: Waves["waves"];
    readonly isSame: boolean;
  },
): string[] {
  const blockers: string[] = [];
  const removal = records.value("updateRemoved", keys.update(name).removed);
  if (removal)
    blockers.push(
      `“${name}” was removed at ${removal.at}, and its name is never used again: remove this manifest, or give it another name`,
    );
  if (selected.length === 0) blockers.push("the selector means no node");
  if (isTooLarge(waves))
    blockers.push(`${selected.length} nodes are too many for one update: take them by datacenter, or by label`);
  if (updateKindOf(spec) === "runtime" && !bundle) blockers.push("no bundle of kcore's runtime was found for it");
  if (!isSame && present && isUnderWay(present))
    blockers.push(`it is ${present.progress?.value.phase}: cancel it first, or wait until it has ended`);
  for (const other of index.all()) {
    if (other.name === name) continue;
    const names = sharedWith(other, selected);
    if (names.length > 0) blockers.push(`the update “${other.name}” is not over, and has ${names.join(", ")} too`);
  }
  return blockers;
}

/** Room for reasons and waits in a rollout's progress, which may name many nodes, bytes. */
const progressRoom = 8 * 1024;

/**
 * Whether an update has too many nodes for its progress, which is one register and names each node twice. Such an update
 * would stop half-way.
 */
export function isTooLarge(waves: Waves["waves"]): boolean {
  return Buffer.byteLength(JSON.stringify({ waves, started: waves.flat() })) + progressRoom > maxValueBytes;
}

/** The names of the selected nodes that another update has, too; empty unless that update is under way. */
function sharedWith(
  update: UpdateRecords,
  selected: readonly { readonly id: string; readonly hostname: string }[],
): readonly string[] {
  if (!isUnderWay(update)) return [];
  return selected.filter(({ id }) => update.rows.has(id)).map(({ hostname }) => hostname);
}

function warningsOf({ clock }: ViewParts, { spec }: UpdateDraft, selected: readonly KnownNode[]): string[] {
  const warnings: string[] = [];
  const down = selected.filter(({ isReady }) => !isReady);
  if (down.length > 0 && down.length >= spec.strategy.maxUnavailable)
    warnings.push(
      `${down.map(({ hostname }) => hostname).join(", ")} not ready: no node is started while ${spec.strategy.maxUnavailable} or more are down`,
    );
  if (!isInWindow(spec.window, clock())) warnings.push(`outside of the window: it begins at ${spec.window?.from} UTC`);
  const { drain } = spec;
  if (drain.enabled && !isHook(drain))
    warnings.push("drain is enabled, and neither a state nor a command says how: nothing is drained");
  return warnings;
}

function planNodeUpdate(
  draft: UpdateDraft,
  node: KnownNode,
  { waves, prepared }: { readonly waves: readonly (readonly string[])[]; readonly prepared: Report | undefined },
): PlannedNode {
  const { id, hostname, dc, version, runtime, storeFree, orderUntaken } = node;
  const wave = waves.findIndex((ids) => ids.includes(id)) + 1;
  const change = changeOf(draft, node);
  const { bundle, spec } = draft;
  const isNixos = updateKindOf(spec) === "system";
  const blockers = [
    ...(node.isApproved ? [] : [`it is not approved: ${node.approval}`]),
    ...(!isNixos && runtime?.canUpdate !== true && change !== "none"
      ? ["its units do not follow the profile, or kcore-updater is missing: kcore orchestrate deploy_node"]
      : []),
    ...(isNixos && runtime?.nixos === false
      ? ["it is no NixOS system, and target.flakeRef brings one; target.version brings kcore's runtime"]
      : []),
    ...(orderUntaken !== undefined
      ? [`its updater has not taken an order for ${orderUntaken} s: systemctl status kcore-updater.path kcore-updater`]
      : []),
    ...(bundle && runtime?.arch !== undefined && runtime.arch !== bundle.arch
      ? [`it is ${runtime.arch}, and the bundle is for ${bundle.arch}`]
      : []),
    ...(change === "downgrade" && !spec.target.allowDowngrade
      ? [`it runs ${version}, which is newer; target.allowDowngrade: true goes back all the same`]
      : []),
    ...(bundle && storeFree !== undefined && change !== "none" && storeFree < neededFor(bundle.size)
      ? [`the bundle needs ${neededFor(bundle.size)} bytes there, and ${storeFree} are free`]
      : []),
  ];
  return {
    id,
    hostname,
    dc,
    roles: [...node.roles],
    ready: node.isReady,
    approval: node.approval,
    lastSeen: node.lastSeenAt > 0 ? new Date(node.lastSeenAt).toISOString() : "",
    currentVersion: version,
    change,
    reboots: isNixos ? rebootOf(draft, prepared) : "no",
    rebootReasons: [...(prepared?.rebootReasons ?? [])],
    ...(bundle && change !== "none"
      ? { room: { needed: neededFor(bundle.size), ...omitUndefined({ free: storeFree }) } }
      : {}),
    ...omitUndefined({
      currentGeneration: runtime?.generation,
      replication: node.isController ? (node.replication ?? "healthy") : undefined,
      wave: wave > 0 ? wave : undefined,
    }),
    blockers,
    warnings: node.isReady ? [] : [`it is not ready: ${node.reason ?? "no heartbeat"}`],
  };
}

/** Whether any node will reboot; undefined if that is unknown of a node, and no other node certainly will. */
function rebootOfAny(planned: readonly PlannedNode[]): boolean | undefined {
  if (planned.some(({ reboots }) => reboots === "yes")) return true;
  return planned.some(({ reboots }) => reboots === "unknown") ? undefined : false;
}

/** Whether a node will reboot; unless the policy decides, unknown until the node has built its system. */
function rebootOf({ spec }: UpdateDraft, prepared: Report | undefined): PlannedNode["reboots"] {
  if (spec.activation.rebootPolicy === "always") return "yes";
  if (spec.activation.rebootPolicy === "never") return "no";
  return prepared?.needsReboot === undefined ? "unknown" : prepared.needsReboot ? "yes" : "no";
}

/** The bytes that a node needs for a bundle: compressed, and unpacked in the store. */
function neededFor(size: number): number {
  return size + unpackedSize({ size });
}

function changeOf(draft: UpdateDraft, { version, runtime }: KnownNode): PlannedNode["change"] {
  if (updateKindOf(draft.spec) === "system") return "unknown";
  if (runtime?.id === targetOf(draft).id) return "none";
  return isOlder(draft.bundle?.version ?? "", version) ? "downgrade" : "update";
}
