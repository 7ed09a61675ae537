import { omitUndefined } from "#base/omit-undefined.ts";
import { shortValue } from "./difference.ts";
import type { KubeNode, KubeTaint } from "./objects.ts";

/** The wanted labels, annotations, taints and cordon of a node. Null removes one; all others stay. */
export interface WantedMarks {
  readonly labels?: Readonly<Record<string, string | null>> | undefined;
  readonly annotations?: Readonly<Record<string, string | null>> | undefined;
  /** Values by `KEY:EFFECT`; null removes the taint. `KEY` alone with null removes the taints of every effect. */
  readonly taints?: Readonly<Record<string, string | null>> | undefined;
  readonly cordoned?: boolean | undefined;
}

export interface NodeChange {
  /** A JSON merge patch. */
  readonly patch: Readonly<Record<string, unknown>>;
  /** One line for each difference. */
  readonly lines: readonly string[];
}

/** The change that a node needs; undefined: it is as wanted. */
export function nodeChange(node: KubeNode, wanted: WantedMarks): NodeChange | undefined {
  const lines: string[] = [];
  const metadata = {
    ...mapChange("labels", node.metadata.labels, wanted.labels, lines),
    ...mapChange("annotations", node.metadata.annotations, wanted.annotations, lines),
  };
  const taints = taintsChange(node.spec?.taints ?? [], wanted.taints ?? {}, lines);
  const isCordoned = node.spec?.unschedulable === true;
  const cordons = wanted.cordoned !== undefined && wanted.cordoned !== isCordoned;
  if (cordons) lines.push(wanted.cordoned === true ? "cordoned" : "uncordoned");
  if (lines.length === 0) return undefined;
  const spec = { ...(taints && { taints }), ...(cordons && { unschedulable: wanted.cordoned === true ? true : null }) };
  const { resourceVersion } = node.metadata;
  return {
    lines,
    patch: {
      // The list of taints is replaced as a whole: the patch must apply to the version that was read.
      metadata: { ...metadata, ...(taints && { resourceVersion }) },
      ...(Object.keys(spec).length > 0 && { spec }),
    },
  };
}

/** The node after the change, with its present resourceVersion. */
export function changedNode(node: KubeNode, { patch }: NodeChange): KubeNode {
  const changed = merge(node, patch) as KubeNode;
  const { resourceVersion: _, ...metadata } = changed.metadata;
  return {
    ...changed,
    metadata: { ...metadata, ...omitUndefined({ resourceVersion: node.metadata.resourceVersion }) },
  };
}

/** Applies a JSON merge patch (RFC 7396). */
function merge(value: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const merged: Record<string, unknown> = { ...(isMap(value) ? value : {}) };
  for (const [key, change] of Object.entries(patch)) {
    if (change === null) delete merged[key];
    else merged[key] = merge(merged[key], change);
  }
  return merged;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function mapChange(
  field: "labels" | "annotations",
  have: Readonly<Record<string, string>> = {},
  wanted: Readonly<Record<string, string | null>> = {},
  lines: string[],
): Record<string, unknown> {
  const change: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted)) {
    const present = Object.hasOwn(have, key) ? have[key] : undefined;
    if ((value ?? undefined) === present) continue;
    change[key] = value;
    lines.push(`${field.slice(0, -1)} ${key}: ${valueOf(present)} → ${valueOf(value)}`);
  }
  return Object.keys(change).length > 0 ? { [field]: change } : {};
}

function valueOf(value: string | null | undefined): string {
  return value === null || value === undefined ? "none" : shortValue(value);
}

function taintsChange(
  have: readonly KubeTaint[],
  wanted: Readonly<Record<string, string | null>>,
  lines: string[],
): readonly KubeTaint[] | undefined {
  let taints = have;
  for (const [name, value] of Object.entries(wanted)) {
    const { key, effect } = splitTaint(name);
    const isNamed = (taint: KubeTaint): boolean =>
      taint.key === key && (effect === undefined || taint.effect === effect);
    const present = taints.filter(isNamed);
    if (value === null ? present.length === 0 : (present[0]?.value ?? "") === value && present.length === 1) continue;
    lines.push(`taint ${name}: ${valueOf(present[0] && (present[0].value ?? ""))} → ${valueOf(value)}`);
    const added = value === null || effect === undefined ? [] : [{ key, ...(value !== "" && { value }), effect }];
    taints = [...taints.filter((taint) => !isNamed(taint)), ...added];
  }
  return taints === have ? undefined : taints;
}

/** Splits `dedicated:NoSchedule`; no effect means every effect. */
export function splitTaint(name: string): { readonly key: string; readonly effect?: string } {
  const at = name.lastIndexOf(":");
  return at < 0 ? { key: name } : { key: name.slice(0, at), effect: name.slice(at + 1) };
}
