import { dirname, join } from "node:path";
import { replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import type { Order } from "#rollout/order.ts";

/** The files in the folder of updates through which the agent, or a run over SSH, exchanges orders and reports with the updater. */
export const updateFiles = {
  /** The next order; systemd starts the updater for it. */
  inbox: "inbox.json",
  /** The last order that the updater took, until all work is done: systemd starts the updater for it, too. */
  taken: "taken.json",
  /** The updater's journal, with its report. */
  journal: "journal.json",
} as const;

export function updatesFolder(stateDir: string): string {
  return join(stateDir, "updates");
}

/** The file of a bundle, until the updater has imported it into the store. */
export function bundleFile(folder: string, sha256: string): string {
  return join(folder, "bundles", sha256);
}

async function replaceOnDisk(path: string, text: string): Promise<void> {
  await ensurePrivateFolder(dirname(path));
  await replaceFile(path, text);
}

/** Puts an order durably into the updater's inbox, in place of an order that the updater has not taken. */
export async function writeOrder(folder: string, order: Order, replace = replaceOnDisk): Promise<void> {
  await replace(join(folder, updateFiles.inbox), `${JSON.stringify(order)}\n`);
}
