import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { z } from "zod";
import { usageError } from "#errors/problem.ts";
import { durableJson, readCached } from "#base/durable-file.ts";
import { makeFolder } from "#base/folder.ts";

export interface PlaceOptions {
  /** Folder of all labs and of their shared files; default `KCORE_LAB_DIR`, else /var/lib/kcore-lab. */
  readonly home?: string;
  /** Default “lab”. Each name is a lab with its own bridge, network and nodes. */
  readonly name?: string;
  readonly bridge?: string;
  /** The beginning of the lab's /24, such as “10.77.0”, or of its /64, such as “fd77:0:0:1”: then nodes have IPv6 alone. */
  readonly net?: string;
}

const RecordedNetwork = z.object({ bridge: z.string(), net: z.string() });
const PackageNames = z.array(z.string()).readonly();

/** The lab of a command that names none. */
export const defaultLab = "lab";

/**
 * A lab's folders and network on this machine. Interfaces, machine names and cgroups are named after the bridge, which no two labs
 * may share.
 */
export interface LabPlace {
  readonly name: string;
  /** The shared files of labs: images, packages, the ssh key. */
  readonly home: string;
  /** The files of this lab alone; gone after `down`. */
  readonly folder: string;
  readonly bridge: string;
  readonly net: string;
  /** The network with its prefix: 10.77.0.0/24, fd77:0:0:1::/64. */
  readonly network: string;
  /** The bridge's address, at which nodes reach the lab's packages. */
  readonly gateway: string;
  /** The parent of the nodes' cgroups. */
  readonly group: string;
}

const namePattern = /^[a-z][a-z0-9-]{0,19}$/;
const netPattern =
  /^(?:10\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])$/;
/** A ULA whose addresses can be written in one form alone (RFC 5952): the longest run of zeros follows the network. */
const net6Pattern = /^fd[0-9a-f]{2}(?::(?:0|[1-9a-f][0-9a-f]{0,3})){2}:[1-9a-f][0-9a-f]{0,3}$/;

/**
 * The place of a lab: by the options, else as its `up` recorded it, else by its name. Throws `USAGE` for options that are invalid or
 * differ from the record.
 */
export async function findLabPlace({ home, name = defaultLab, bridge, net }: PlaceOptions = {}): Promise<LabPlace> {
  const root = homeOf(home);
  if (!namePattern.test(name))
    throw usageError(`“${name}” cannot be a lab's name: lower case letters, digits and “-”, at most 20`);
  if (/[,:\\\s]/.test(root))
    throw usageError(`the lab's folder ${root} may not contain a comma, a colon, a backslash or a space`);
  const folder = join(root, "labs", name);
  const recorded = await readCached(recordFile(folder), RecordedNetwork);
  const derived = deriveNetwork(name);
  const chosen = { bridge: bridge ?? recorded?.bridge ?? derived.bridge, net: net ?? recorded?.net ?? derived.net };
  if (!/^[a-z][a-z0-9]{0,7}$/.test(chosen.bridge)) {
    throw usageError(`“${chosen.bridge}” cannot be a bridge's name: lower case letters and digits, at most 8`);
  }
  if (!netPattern.test(chosen.net) && !net6Pattern.test(chosen.net))
    throw usageError(
      `“${chosen.net}” is not the beginning of a private /24, such as 10.77.0, or /64 of IPv6, such as fd77:0:0:1`,
    );
  if (recorded && (recorded.bridge !== chosen.bridge || recorded.net !== chosen.net)) {
    throw usageError(
      `lab “${name}” is up on bridge ${recorded.bridge} with ${networkRange(recorded.net)}: take it down first, or use another --name`,
    );
  }
  const network = networkRange(chosen.net);
  const gateway = addressAt({ network }, 1);
  return { name, home: root, folder, ...chosen, network, gateway, group: `kcore-lab-${chosen.bridge}` };
}

function networkRange(net: string): string {
  return net.includes(":") ? `${net}::/64` : `${net}.0/24`;
}

/** A node's address: 11 in fd77:0:0:1::/64 is fd77:0:0:1::11. */
export function addressAt({ network }: Pick<LabPlace, "network">, number: number): string {
  return network.replace(/0?\/\d+$/, String(number));
}

/** An address of a lab as ip(8) and systemd.network(5) take it. */
export function withPrefix({ network }: Pick<LabPlace, "network">, address: string): string {
  return `${address}${network.slice(network.indexOf("/"))}`;
}

/** The sorted names of the labs that were made and not taken down. */
export async function labNames(home?: string): Promise<readonly string[]> {
  const names = await readdir(join(homeOf(home), "labs")).catch(() => []);
  return names.filter((name) => namePattern.test(name)).sort();
}

function homeOf(home?: string): string {
  return resolve(home ?? process.env["KCORE_LAB_DIR"] ?? "/var/lib/kcore-lab");
}

/** The name of the lock for making or removing things that a lab's nodes share. */
export function lockOfLab({ name }: LabPlace): string {
  return `${name}.lab`;
}

/** Records the bridge and the network, so that later commands need only the lab's name. */
export async function recordLabPlace({ folder, bridge, net }: LabPlace): Promise<void> {
  await makeFolder(folder, { mode: 0o700 });
  await durableJson(recordFile(folder), RecordedNetwork, { bridge, net }).write();
}

const packagePattern = /^[a-z0-9][a-z0-9+.-]+$/;

/** The sorted names of packages that this command or an earlier one asks for in a lab. Throws `USAGE`. */
export async function namedPackages(place: LabPlace, named: readonly string[] = []): Promise<readonly string[]> {
  const bad = named.find((name) => !packagePattern.test(name));
  if (bad !== undefined) throw usageError(`“${bad}” cannot be the name of a Debian package`);
  const recorded = (await readCached(packagesFile(place), PackageNames)) ?? [];
  return [...new Set([...recorded, ...named])].sort();
}

/** Records the packages, so that the next `up` need not name them. */
export async function recordPackages(place: LabPlace, names: readonly string[]): Promise<void> {
  await durableJson(packagesFile(place), PackageNames, names).write();
}

function recordFile(folder: string): string {
  return join(folder, "lab.json");
}

function packagesFile({ folder }: LabPlace): string {
  return join(folder, "packages.json");
}

function deriveNetwork(name: string): { bridge: string; net: string } {
  if (name === defaultLab) return { bridge: "kclab", net: "10.77.0" };
  const digest = createHash("sha256").update(name).digest();
  return {
    bridge: `kc${digest.toString("hex").slice(0, 6)}`,
    net: `10.${72 + (digest.readUInt8(1) % 5)}.${digest.readUInt8(0)}`,
  };
}
