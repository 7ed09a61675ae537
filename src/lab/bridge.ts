import { createHash } from "node:crypto";
import { readdirSync, existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { mustRun, runCommand } from "./run-command.ts";
import { withPrefix, type LabPlace } from "./place.ts";

const interfaces = "/sys/class/net";

/**
 * Makes the lab's bridge, if it is missing, and brings it up. Throws `LAB_NETWORK_TAKEN` if its name or its network belongs to
 * something else.
 */
export async function bridgeUp(place: LabPlace): Promise<void> {
  const { bridge, gateway } = place;
  if (!existsSync(join(interfaces, bridge))) {
    await refuseTakenNetwork(place);
    const kind = ["type", "bridge", "stp_state", "0", "forward_delay", "0"];
    // May fail, because another command of this lab may have made the bridge a moment ago.
    await runCommand("ip", ["link", "add", bridge, "address", hardwareAddress(place), ...kind]);
  }
  if (await isForeign(place)) {
    const alias = await readOf(bridge, "ifalias");
    throw networkTaken(`bridge ${bridge} belongs to ${alias || "something that is not a kcore lab"}`);
  }
  await mustRun("ip", ["link", "set", bridge, "alias", bridgeAlias(place)]);
  const is6 = isIPv6(gateway);
  // nodad: the package server must listen on the address at once, not after a second of duplicate detection.
  await mustRun("ip", ["address", "replace", withPrefix(place, gateway), "dev", bridge, ...(is6 ? ["nodad"] : [])]);
  await mustRun("ip", ["link", "set", bridge, "up"]);
  // Otherwise neighbour discovery that starts before a node has its address is repeated only after a second.
  await writeFile(`/proc/sys/net/ipv${is6 ? 6 : 4}/neigh/${bridge}/retrans_time_ms`, "50").catch(() => {});
}

/** Whether a bridge of this name exists that another lab, or another program, has made. */
export async function isForeign(place: LabPlace): Promise<boolean> {
  const address = await readOf(place.bridge, "address");
  return address !== undefined && address !== hardwareAddress(place);
}

/** Removes the bridge if it is this lab's. */
export async function bridgeDown(place: LabPlace): Promise<void> {
  if (!(await isForeign(place))) await runCommand("ip", ["link", "delete", place.bridge]);
}

/** The name of this machine's end of a node's cable. `number`: the last number of the node's address. */
export function cableOf({ bridge }: LabPlace, number: number): string {
  return `vb-${bridge}-${number}`;
}

/** The names of this lab's interfaces that exist now: the bridge and cables. */
export function labInterfaces({ bridge }: LabPlace): string[] {
  return readdirSync(interfaces).filter((name) => name === bridge || name.startsWith(`vb-${bridge}-`));
}

/** Takes a cable off the bridge: the link stays up, nothing passes, as with a dead switch port. */
export async function cutCable(cable: string): Promise<void> {
  await mustRun("ip", ["link", "set", cable, "nomaster"]);
}

/** Puts a cable on the bridge. */
export async function healCable({ bridge }: LabPlace, cable: string): Promise<void> {
  await mustRun("ip", ["link", "set", cable, "master", bridge]);
}

/** Whether a cable exists and is off the bridge. */
export function isCut(cable: string): boolean {
  return existsSync(join(interfaces, cable)) && !existsSync(join(interfaces, cable, "master"));
}

export async function removeCable(cable: string): Promise<void> {
  if (existsSync(join(interfaces, cable))) await runCommand("ip", ["link", "delete", cable]);
}

/** The bridge's owner, for operators to read; a killed command may have left the bridge without an alias. */
function bridgeAlias({ folder }: LabPlace): string {
  return `kcore-lab ${folder}`;
}

/** The bridge's hardware address, locally administered. The address identifies the lab: the bridge is made with the address, and gets its alias later. */
function hardwareAddress(place: LabPlace): string {
  const hex = createHash("sha256").update(bridgeAlias(place)).digest("hex");
  return ["02", ...(hex.slice(0, 10).match(/../g) ?? [])].join(":");
}

async function readOf(bridge: string, attribute: string): Promise<string | undefined> {
  const text = await readFile(join(interfaces, bridge, attribute), "utf8").catch(() => undefined);
  return text?.trim();
}

async function refuseTakenNetwork({ network }: LabPlace): Promise<void> {
  const found = await mustRun("ip", ["-o", "address", "show", "to", network]);
  if (found !== "")
    throw networkTaken(`network ${network} is in use on ${found.split(/\s+/)[1] ?? "another interface"}`);
}

function networkTaken(message: string): KcoreError {
  return new KcoreError(
    { code: "LAB_NETWORK_TAKEN", message, hint: "give this lab another --name, or --bridge and --net of its own" },
    { exitCode: exitCodes.failed },
  );
}
