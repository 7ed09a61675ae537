import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { z } from "zod";
import { replaceFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import type { Remembered } from "#rollout/node-fence.ts";
import type { Order } from "#rollout/order.ts";
import { Report } from "#rollout/records.ts";
import { Journal } from "./journal.ts";

/** What lies in the folder of updates, `updates` below the node's state folder: how the agent and the updater speak with each other. */
export const names = {
  /** The order that the updater shall take; systemd starts it for that. */
  inbox: "inbox.json",
  /** The same, when the updater has it and has not yet said so in its journal. */
  taken: "taken.json",
  /** There while something is begun that has not ended; systemd starts the updater for that, too. */
  unfinished: "unfinished",
  journal: "journal.json",
  report: "report.json",
  /** The bastion's word, given over a new connection, that it reaches the node: `NAME EPOCH OWNER` of the order that it gave. */
  confirmed: "confirmed",
} as const;

export function updatesFolder(stateDir: string): string {
  return join(stateDir, "updates");
}

/** The file of an order that the updater has not taken yet. */
export function inboxFile(stateDir: string): string {
  return join(updatesFolder(stateDir), names.inbox);
}

/** Where the agent puts bundles before it gives an order to prepare them. The updater believes nothing of them. */
export function bundlesFolder(folder: string): string {
  return join(folder, "bundles");
}

export function bundleFile(folder: string, sha256: string): string {
  return join(bundlesFolder(folder), sha256);
}

async function replaceOnDisk(path: string, text: string): Promise<void> {
  await ensurePrivateFolder(dirname(path));
  await replaceFile(path, text);
}

/** Gives the updater an order; one that lies there untaken is replaced. It is on the disk when this resolves. */
export async function writeOrder(folder: string, order: Order, replace = replaceOnDisk): Promise<void> {
  await replace(join(folder, names.inbox), `${JSON.stringify(order)}\n`);
}

/** The node's present word; undefined: it has none, or it cannot be read. */
export async function readReport(folder: string): Promise<Report | undefined> {
  return readAs(folder, "report", Report);
}

const Accepted = Journal.pick({ fence: true, past: true });

/**
 * The orders that the node has accepted, so what it refuses for ever; undefined: it has accepted none. The report may answer an order that
 * it did not accept, so that is asked only where there is no journal.
 */
export async function readAccepted(folder: string): Promise<Omit<Remembered, "isBusy"> | undefined> {
  const journal = await readAs(folder, "journal", Accepted);
  if (journal) return journal.fence && { fence: journal.fence, past: journal.past };
  const report = await readReport(folder);
  return report && { fence: report.fence };
}

async function readAs<Schema extends z.ZodType>(
  folder: string,
  name: keyof typeof names,
  schema: Schema,
): Promise<z.output<Schema> | undefined> {
  try {
    return schema.parse(JSON.parse(await readFile(join(folder, names[name]), "utf8")));
  } catch {
    return undefined;
  }
}
