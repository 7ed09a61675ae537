import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { deviceAndUpper, type DiskInventory } from "#engine/program/disk-inventory.ts";
import { addNode, setNodeFields } from "#engine/roster/edit.ts";
import type { RosterText } from "#engine/roster/roster-files.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { diskName, type DiskId } from "#engine/step/disk-names.ts";
import type { Plain } from "#engine/roster/flow-yaml.ts";
import { parsePlainYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError } from "#errors/problem.ts";
import type { HostKey } from "#engine/transport/host-key.ts";
import { fileForNew, usualName, type Machine } from "../roster/find-machine.ts";
import { deviceAt, findWholeDisk, idOf, isDevice, isWhole, pinDisk } from "#engine/layout/named-disks.ts";
import { refuseMoved } from "./refuse-moved.ts";
import type { InstallPlan } from "./request.ts";

type Fields = Readonly<Record<string, Plain>>;

/**
 * Plans the change of the roster: a new entry, or fields of the present one; all other fields stay. `edit` makes the change in
 * the text of `file`. @throws KcoreError USAGE, DISK_NOT_FOUND, DISK_AMBIGUOUS
 */
export function planEntry(
  machine: Machine,
  plan: InstallPlan,
  { key, inventory, newId = randomUUID }: { key: HostKey; inventory: DiskInventory; newId?: () => string },
) {
  const { entry, isInRoster, roster } = machine;
  const name = isInRoster ? sameName(entry, plan) : newName(machine, plan);
  if (plan.vars.installOs && entry.vars["installOs"] === undefined) refuseOwnSystem(plan.osDisk, inventory);
  const disks = disksOf(plan, inventory);
  if (isInRoster) refuseMoved(entry, plan, inventory);
  const fields = {
    ...(plan.nodeId === undefined ? {} : { id: plan.nodeId }),
    ...(plan.identityFile === undefined ? {} : { identityFile: plan.identityFile }),
    dc: plan.dc,
    roles: plan.roles,
    hostKeys: [`${key.type} ${key.key}`],
  };
  const vars = { ...plan.vars } as Fields;
  if (!isInRoster) {
    const { id = newId(), ...rest } = fields;
    const port = entry.port === 22 ? {} : { port: entry.port };
    const fresh = { address: entry.address, ...port, id, ...rest, ...(disks.length > 0 ? { disks } : {}), vars };
    const file = fileForNew(machine.project, roster);
    return { name, file, edit: (text: RosterText) => addNode(text, name, fresh) };
  }
  const { hostKeys: pinned, ...others } = fields;
  const wanted: Fields = { ...others, ...(entry.hostKeys.length > 0 ? {} : { hostKeys: pinned }) };
  const differing = Object.entries(wanted).filter(([field, value]) => !isDeepStrictEqual(entry[field as never], value));
  const file = roster.positions.get(name)?.file ?? fileForNew(machine.project, roster);
  return {
    name,
    file,
    edit: (text: RosterText) => {
      const written = writtenEntry(text, name);
      const more: Record<string, Plain> = Object.fromEntries(differing);
      // The entry keeps its `installOs`, unless the operator names a system, or says that a system is installed already.
      const { installOs, ...otherVars } = (written["vars"] as Fields | undefined) ?? {};
      const same = installOs === undefined || plan.isOsNamed || !("installOs" in vars) ? {} : { installOs };
      const merged = { ...otherVars, ...vars, ...same };
      if (!isDeepStrictEqual(written["vars"] ?? {}, merged)) more["vars"] = merged;
      const missing = disks.filter((disk) => {
        const device = inventory.devices.find((found) => isWhole(found) && isDevice(disk as Partial<DiskId>, found));
        return !entry.disks.some((known) => device && isDevice(known, device));
      });
      if (missing.length > 0)
        more["disks"] = [...((written["disks"] as readonly Plain[] | undefined) ?? []), ...missing];
      return setNodeFields(text, name, more);
    },
  };
}

function sameName({ name, id }: NodeEntry, { hostname = name, nodeId = id }: InstallPlan): string {
  if (hostname === name && nodeId === id) return name;
  throw new KcoreError({
    code: "USAGE",
    message: `this machine is in the roster already, as ${name} with the id ${id}`,
    hint: "leave out --hostname and --node-id, or correct the roster by hand",
  });
}

function newName({ host, roster }: Machine, { hostname = usualName(host) }: InstallPlan): string {
  const other = roster.nodes.get(hostname);
  if (!other) return hostname;
  throw new KcoreError({
    code: "USAGE",
    message: `${hostname} is another machine in the roster, at ${other.address}`,
    hint: "--hostname OTHER",
  });
}

function disksOf({ osDisk, dataDisks, vars }: InstallPlan, inventory: DiskInventory): readonly Fields[] {
  const entryOf = (id: DiskId): Fields => {
    const { kind, value } = diskName(id);
    return { [kind]: value };
  };
  const pinned = (path: string): Fields => entryOf(pinDisk(findWholeDisk({ path }, inventory), inventory));
  const os = deviceAt(osDisk, inventory);
  // A disk that is only recorded, not installed on, need not be found.
  const id = os && isWhole(os) ? idOf(os) : undefined;
  const named = vars.installOs ? pinned(osDisk) : id && entryOf(id);
  const data = dataDisks.map((path): Fields => ({ ...pinned(path), use: "volumes" }));
  return [...(named ? [{ ...named, use: "os" }] : []), ...data];
}

/** Refuses the disk that the machine runs from as the disk for a new system. @throws KcoreError USAGE */
function refuseOwnSystem(osDisk: string, inventory: DiskInventory): void {
  const upper = deviceAndUpper(inventory, deviceAt(osDisk, inventory)?.name ?? "");
  const root = upper.find(({ mounts }) => mounts.includes("/"));
  if (!root) return;
  throw new KcoreError({
    code: "USAGE",
    message: `this machine runs from ${osDisk} (${root.path} is /), so nothing is installed there`,
    hint: "to keep its system, add --os-installed; to install one, boot it from a live system",
  });
}

function writtenEntry({ text }: RosterText, name: string): Readonly<Record<string, unknown>> {
  const { nodes = {} } = parsePlainYaml(text) as { nodes?: Record<string, Record<string, unknown> | null> };
  return nodes[name] ?? {};
}
