import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { replaceFile } from "#base/file.ts";
import { mustRun } from "./run-command.ts";
import { addressAt, type LabPlace } from "./place.ts";

export type NodeKind = "debian" | "busybox" | "vm";

/** A node as an operator or a test asks for it. */
export interface NodeSpec {
  readonly name: string;
  readonly kind: NodeKind;
  /** Sizes of its data disks as truncate(1) reads them: “1G”, “512M”. */
  readonly disks: readonly string[];
  /** Size of a container's root file system, which is sparse; default “8G”, which a virtual machine always has. */
  readonly root?: string;
  /** A virtual machine that runs a live system, until its first disk has a boot loader to boot from. */
  readonly live?: boolean;
  /** The Debian release of a container, such as “trixie”; default `suite`. Another release has no repository of packages. */
  readonly release?: string;
  /** Whether a Debian node has Nix from the start, as deploy_node installs it. */
  readonly nix?: boolean;
  /** Whether a virtual machine has ZFS's kernel modules and programs. */
  readonly zfs?: boolean;
  /** Whether a virtual machine has a TPM 2.0 of its own. */
  readonly tpm?: boolean;
}

/** A node as it was made; the record is in its folder until `down`. */
export interface NodeRecord extends NodeSpec {
  /** The last number of its address. */
  readonly number: number;
  readonly address: string;
  /** The node's machine-id, as a UUID. */
  readonly id: string;
  /** `ssh-ed25519 AAAA…` */
  readonly hostKey: string;
  /**
   * The folders that the node was made with: a container's layers, lowest last; a virtual machine's image, saved state and, with
   * `zfs`, ZFS.
   */
  readonly images: readonly string[];
  readonly folder: string;
}

const namePattern = /^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/;
const sizePattern = /^[1-9]\d{0,6}[KMGT]?$/;

/** The file of a node's console output. */
export function consoleLogOf({ folder }: Pick<NodeRecord, "folder">): string {
  return join(folder, "console.log");
}

/** The name of the lock for starting, cutting or removing one node. */
export function lockOfNode({ name }: LabPlace, node: NodeRecord): string {
  return `${name}.node.${node.name}`;
}

/** The nodes that were made and not taken down, sorted by the number of their address. */
export async function readNodeRecords(place: LabPlace): Promise<NodeRecord[]> {
  const nodes = join(place.folder, "nodes");
  const names = existsSync(nodes) ? await readdir(nodes) : [];
  const records: NodeRecord[] = [];
  for (const name of names) {
    // A killed command may leave a node's folder without a record: `up` makes the node anew, `down` removes the folder.
    const text = await readFile(join(nodes, name, "node.json"), "utf8").catch(() => undefined);
    if (text !== undefined) records.push({ ...(JSON.parse(text) as NodeRecord), folder: join(nodes, name) });
  }
  return records.sort((a, b) => a.number - b.number);
}

/** The record of one node; throws `LAB_NODE_UNKNOWN` with the nearest name. */
export async function readNodeRecord(place: LabPlace, name: string): Promise<NodeRecord> {
  const records = await readNodeRecords(place);
  const found = records.find((record) => record.name === name);
  if (found) return found;
  const names = records.map((record) => record.name);
  const known = names.length === 0 ? "no node is up: start with “kcore lab up”" : `there are: ${names.join(", ")}`;
  throw new KcoreError({
    code: "LAB_NODE_UNKNOWN",
    message: `lab “${place.name}” has no node “${name}”`,
    hint: suggestHint(name, names, known) ?? known,
  });
}

/**
 * The records of these nodes; makes address, id and host key of each new node. The caller holds the lab's lock. Throws `USAGE` for an
 * impossible spec, or without a free address.
 */
export async function makeRecords(place: LabPlace, specs: readonly NodeSpec[], images: Images): Promise<NodeRecord[]> {
  for (const spec of specs) checkSpec(spec);
  const records = await readNodeRecords(place);
  const wanted: NodeRecord[] = [];
  for (const spec of specs) {
    const known = records.find((record) => record.name === spec.name);
    const record = known ?? (await makeRecord(place, spec, chooseNumber(spec, records), images));
    if (!known) records.push(record);
    wanted.push(record);
  }
  return wanted;
}

async function makeRecord(place: LabPlace, spec: NodeSpec, number: number, images: Images): Promise<NodeRecord> {
  const folder = join(place.folder, "nodes", spec.name);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const address = addressAt(place, number);
  await mustRun("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", spec.name, "-f", join(folder, "hostkey")]);
  const hostKey = (await readFile(join(folder, "hostkey.pub"), "utf8")).split(" ").slice(0, 2).join(" ");
  await replaceFile(join(folder, "known_hosts"), `${address} ${hostKey}\n`);
  const layers = {
    busybox: [images.busybox],
    debian: [
      images.layer,
      ...(spec.nix ? [join(images.nix, "tree")] : []),
      (spec.release === undefined ? undefined : images.releases[spec.release]) ?? images.debian,
    ],
    vm: [images.vm, images.golden, ...(spec.zfs ? [images.zfs] : [])],
  }[spec.kind];
  const record: NodeRecord = { ...spec, number, address, id: randomUUID(), hostKey, images: layers, folder };
  await replaceFile(join(folder, "node.json"), `${JSON.stringify(record, undefined, 2)}\n`);
  return record;
}

/** A free number for a node's address: 11 for n1, 101 for b1, 201 for v1, so that addresses are easy to guess. Else the next free one. */
function chooseNumber({ name }: NodeSpec, records: readonly NodeRecord[]): number {
  const used = new Set(records.map((record) => record.number));
  const [, letter = "", digits] = /^([nbv])([1-9]\d?)$/.exec(name) ?? [];
  const guess = ({ n: 10, b: 100, v: 200 }[letter] ?? 150) + Number(digits ?? 0);
  for (const start of [guess, 2]) for (let number = start; number < 255; number++) if (!used.has(number)) return number;
  throw new KcoreError({ code: "USAGE", message: "a lab has room for 253 nodes" });
}

/** A virtual disk's serial has room for 20 characters, of which “-disk10” takes seven. */
const longestVmName = 13;

function checkSpec({ name, kind, disks, root, live = false, nix = false, zfs = false, tpm = false }: NodeSpec): void {
  if (!namePattern.test(name)) {
    throw new KcoreError({
      code: "USAGE",
      message: `“${name}” cannot be a node's name: lower case letters, digits and “-”`,
    });
  }
  if (kind === "vm" && name.length > longestVmName)
    throw new KcoreError({
      code: "USAGE",
      message: `“${name}” is too long for a virtual machine's name`,
      hint: `at most ${longestVmName} characters: its disks are named after it`,
    });
  if (live && (kind !== "vm" || disks.length === 0))
    throw new KcoreError({ code: "USAGE", message: "only a virtual machine with a disk can run a live system" });
  if (zfs && kind !== "vm")
    throw new KcoreError({ code: "USAGE", message: `${name} is no virtual machine: only those can have ZFS` });
  if (nix && kind !== "debian")
    throw new KcoreError({ code: "USAGE", message: `${name} cannot have Nix: only Debian nodes can` });
  if (tpm && (kind !== "vm" || live))
    throw new KcoreError({
      code: "USAGE",
      message: `${name} cannot have a TPM: only a virtual machine without a live system can`,
    });
  const bad = [...disks, ...(root === undefined ? [] : [root])].find((size) => !sizePattern.test(size));
  if (bad === undefined) return;
  throw new KcoreError({ code: "USAGE", message: `“${bad}” is not the size of a disk`, hint: "write 512M, 1G, 2G …" });
}

/** The sparse file that is a node's data disk. */
export function diskFile({ folder }: NodeRecord, index: number): string {
  return join(folder, `disk${index}.img`);
}

/** The images of nodes; each folder is complete, never changed, and named after its inputs. */
export interface Images {
  readonly debian: string;
  /** The trees of other Debian releases, by their names. */
  readonly releases: Readonly<Record<string, string>>;
  /** The layer over the Debian tree: helpers that make loop devices behave like disks. */
  readonly layer: string;
  readonly busybox: string;
  /** The layer of a Debian node with Nix, over the Debian tree; empty if no node has Nix. */
  readonly nix: string;
  /** A flat apt repository of `servedPackages`. */
  readonly packages: string;
  /** A flat apt repository of the packages that the lab's commands named; empty without such packages. */
  readonly more: string;
  /** Kernel, initrd and root file system of virtual machines; empty if no node is one. */
  readonly vm: string;
  /** A virtual machine that has booted, saved with its memory; empty if no node is one. */
  readonly golden: string;
  /** The further files of a virtual machine with ZFS; empty if no node has ZFS. */
  readonly zfs: string;
}
