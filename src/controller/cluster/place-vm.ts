import type { VmSpec } from "#api/record-schemas.ts";
import { formatBinary } from "#base/units.ts";

const measures = ["cpus", "memory", "disk"] as const;
/** Cores, and bytes of memory and disk. */
export type Room = Pick<VmSpec, (typeof measures)[number]>;
export interface PlacedVm {
  readonly placed: string;
  readonly spec: Room;
}

export interface NodeRoom {
  readonly id: string;
  readonly name: string;
  readonly dc: string;
  readonly has: Room;
  readonly hasVxlan: boolean;
  /** The reason why the node takes no new VM. */
  readonly closed?: string | undefined;
}

/** A VM's size and conditions; `dcs`: its datacenter, and those of its networks. */
export interface VmDemand {
  readonly size: Room;
  readonly node?: string | undefined;
  readonly dcs: readonly string[];
  readonly needsVxlan: boolean;
}

/** The room that these VMs leave on the node; below zero where they take more than the node has. */
export function freeRoom({ has }: NodeRoom, vms: readonly PlacedVm[] = []): Room {
  const free = (of: keyof Room): number => vms.reduce((left, { spec }) => left - spec[of], has[of]);
  return { cpus: free("cpus"), memory: free("memory"), disk: free("disk") };
}

/** The excess of VMs over their node's room, such as `memory: 4 GiB too much`; empty if all fits. */
export function excessOf(free: Room): readonly string[] {
  return measures.filter((of) => free[of] < 0).map((of) => `${of}: ${amount(of, -free[of])} too much`);
}

function lacksOf(size: Room, free: Room): readonly string[] {
  return measures
    .filter((of) => size[of] > free[of])
    .map((of) => `${of}: ${amount(of, size[of])} wanted, ${amount(of, Math.max(0, free[of]))} free`);
}

function amount(of: keyof Room, value: number): string {
  return of === "cpus" ? String(value) : formatBinary(value);
}

/**
 * The node for a VM: with the most free memory, then the most free cores, then the first by name; or the reasons against the nodes.
 * A VM keeps its `former` node while that meets its conditions, because only an operator moves VMs; it may always shrink there.
 */
export function placeVm(
  { size, node, dcs, needsVxlan }: VmDemand,
  nodes: readonly NodeRoom[],
  { others, former }: { readonly others: readonly PlacedVm[]; readonly former?: PlacedVm | undefined },
): { readonly id: string } | { readonly against: readonly string[] } {
  const mismatchOf = (of: NodeRoom): string | undefined => {
    const dc = dcs.find((wanted) => wanted !== of.dc);
    if (node !== undefined && node !== of.id) return "is not the node that the VM asks for";
    return dc !== undefined ? `is in ${of.dc}, not in ${dc}` : needsVxlan && !of.hasVxlan ? "has no VXLAN" : undefined;
  };
  const byNode = Map.groupBy(others, ({ placed }) => placed);
  const own = nodes.find((of) => of.id === former?.placed && mismatchOf(of) === undefined);
  const judged = (own ? [{ ...own, closed: undefined }] : nodes).map((of) => {
    const [free, mismatch] = [freeRoom(of, byNode.get(of.id)), mismatchOf(of)];
    const kept = own && former ? former.spec : { cpus: 0, memory: 0, disk: 0 };
    const lacks = measures.some((one) => size[one] > Math.max(free[one], kept[one]))
      ? lacksOf(size, free).join("; ")
      : undefined;
    return { of, free, mismatch, reason: mismatch ?? of.closed ?? lacks };
  });
  const [best] = judged
    .filter(({ reason }) => reason === undefined)
    .toSorted((a, b) => b.free.memory - a.free.memory || b.free.cpus - a.free.cpus || (isFirst(a.of, b.of) ? -1 : 1));
  if (best) return { id: best.of.id };
  const near = judged.filter(({ mismatch }) => mismatch === undefined);
  return { against: (near.length > 0 ? near : judged).map(({ of, reason = "" }) => `${of.name}: ${reason}`) };
}

function isFirst(a: NodeRoom, b: NodeRoom): boolean {
  return `${a.name} ${a.id}` < `${b.name} ${b.id}`;
}
