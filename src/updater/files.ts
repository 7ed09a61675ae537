import { dirname, join } from "node:path";
import { replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import type { Order } from "#rollout/order.ts";

/** The files in the folder of updates by which the agent, or a run of the bastion, speaks with the updater. */
export const names = {
  /** The next order; systemd starts the updater for it. */
  inbox: "inbox.json",
  /** The order that the updater took last, until all its work is done: systemd starts the updater for it, too. */
  taken: "taken.json",
  /** All that the updater knows, with its report. */
  journal: "journal.json",
} as const;

export function updatesFolder(stateDir: string): string {
  return join(stateDir, "updates");
}

/** The bundle that an order to prepare brings, until the updater has it in the store. */
export function bundleFile(folder: string, sha256: string): string {
  return join(folder, "bundles", sha256);
}

async function replaceOnDisk(path: string, text: string): Promise<void> {
  await ensurePrivateFolder(dirname(path));
  await replaceFile(path, text);
}

/** Gives the updater an order; an order that lies there untaken is replaced. It is on the disk when this resolves. */
export async function writeOrder(folder: string, order: Order, replace = replaceOnDisk): Promise<void> {
  await replace(join(folder, names.inbox), `${JSON.stringify(order)}\n`);
}
