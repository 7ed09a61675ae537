import { recordSchema, recordSpecs, VmRecord, type RecordKind, type VmSpec, type VmView } from "#api/record-schemas.ts";
import type { WriteResult } from "#api/schemas.ts";
import type { Nodes } from "./nodes.ts";
import { excessOf, freeRoom, placeVm, type NodeRoom } from "./place-vm.ts";
import type { Records } from "./records.ts";
import { Refused } from "./refused.ts";
import { keys } from "./registers.ts";

/** Records of VMs, networks and images, which a controller checks when it writes them; a VM gets its node then. */
export type Vms = ReturnType<typeof manageVms>;

/** The number of nodes of which a refusal tells. */
const maxShown = 20;

export function manageVms(records: Records, nodes: Pick<Nodes, "list" | "find">) {
  const prefix = keys.object("VM", "");
  const readVms = () =>
    [...records.list("object", prefix)].flatMap(({ key, value, dot, at }) => {
      const { data } = VmRecord.safeParse(value);
      return data ? [{ name: key.slice(prefix.length), dot, at, ...data }] : [];
    });
  const readNodes = (): readonly NodeRoom[] =>
    Array.from(nodes.list(), ({ id, hostname: name, dc, cpu: cpus, memory, status, taints, usage }) => {
      const taint = taints.find(({ effect }) => effect !== "PreferNoSchedule");
      const disk = records.value("storage", keys.node(id).storage)?.capacity ?? usage?.diskSize ?? 0;
      const hasVxlan = records.value("net", keys.node(id).net)?.disableVxlan !== true;
      const closed = status !== "ready" ? `is ${status}` : taint && `has the taint ${taint.key}`;
      return { id, name, dc, has: { cpus, memory, disk }, hasVxlan, closed };
    });
  const find = (kind: RecordKind, name: string) => records.value("object", keys.object(kind, name));
  const missingOf = ({ image = ":", networks }: VmSpec): readonly string[] => [
    ...(image.includes(":") || find("Image", image) ? [] : [`there is no image ${image}`]),
    ...networks.filter((name) => !find("Network", name)).map((name) => `there is no network ${name}`),
  ];
  const place = (name: string, spec: VmSpec): string => {
    const [missing] = missingOf(spec);
    if (missing !== undefined)
      throw new Refused(409, "VM_REFERENCE_UNKNOWN", `VM ${name}: ${missing}`, "create it first");
    const networks = spec.networks.flatMap(
      (network) => recordSpecs.Network.safeParse(find("Network", network)?.["spec"]).data ?? [],
    );
    const dcs = [spec, ...networks].flatMap(({ dc }) => dc ?? []);
    const node = spec.node === undefined ? undefined : nodes.find(spec.node).id;
    const [[former], others] = [readVms().filter((vm) => vm.name === name), readVms().filter((vm) => vm.name !== name)];
    const demand = { size: spec, node, dcs, needsVxlan: networks.some(({ type }) => type === "vxlan") };
    const placed = placeVm(demand, readNodes(), { others, former });
    if ("id" in placed) return placed.id;
    const more = placed.against.length > maxShown ? [`and ${placed.against.length - maxShown} more nodes`] : [];
    const detail = [...placed.against.slice(0, maxShown), ...more].join("\n");
    throw new Refused(409, "VM_NO_ROOM", `no node takes VM ${name}`, "kcore get vms, kcore get nodes", detail);
  };
  // Of two VMs that are placed at once, the second sees the first.
  let last: Promise<unknown> = Promise.resolve();
  return {
    list(): readonly VmView[] {
      const vms = readVms();
      const byNode = Map.groupBy(vms, ({ placed }) => placed);
      const nodesById = new Map(readNodes().map((node) => [node.id, node]));
      return vms.map(({ placed, ...vm }) => {
        const node = nodesById.get(placed);
        const excess = node ? excessOf(freeRoom(node, byNode.get(placed))) : [];
        return {
          ...vm,
          state: !node ? "no node" : excess.length > 0 ? "overcommitted" : "placed",
          problems: [...excess, ...missingOf(vm.spec)],
          nodeId: node?.id ?? "",
          node: node?.name ?? "",
          dc: node?.dc ?? vm.spec.dc ?? "",
        };
      });
    },
    /** @throws Refused API_INVALID, VM_REFERENCE_UNKNOWN, VM_NO_ROOM, NODE_UNKNOWN, NODE_AMBIGUOUS */
    put(kind: RecordKind, name: string, value: unknown): Promise<WriteResult> {
      const { data, error } = recordSchema(kind).safeParse(value);
      const [issue] = error?.issues ?? [];
      if (!data) throw new Refused(400, "API_INVALID", `${kind} ${name}: ${issue?.path.join(".")} ${issue?.message}`);
      const written = last.then(() => {
        const more = kind === "VM" ? { placed: place(name, data.spec as VmSpec) } : {};
        return records.put([{ key: keys.object(kind, name), value: { ...data, ...more } }]);
      });
      last = written.catch(() => undefined);
      return written;
    },
    /** @throws Refused OBJECT_IN_USE for a network or image that a VM names */
    refuseInUse(kind: RecordKind, name: string): void {
      const user = readVms().find(({ spec: { image = "", networks } }) =>
        (kind === "Image" ? [image] : kind === "Network" ? networks : []).includes(name),
      );
      if (user)
        throw new Refused(409, "OBJECT_IN_USE", `VM ${user.name} uses ${name}`, `change it: kcore set vm ${user.name}`);
    },
  };
}
