import { join } from "node:path";
import type { z } from "zod";
import { Report } from "#rollout/records.ts";
import { names } from "./files.ts";
import { emptyJournal, Journal } from "./journal.ts";
import type { Log, Ports } from "./ports.ts";

interface Source {
  /** The folder of updates. */
  readonly folder: string;
  readonly ports: Ports;
  readonly log: Log;
}

/**
 * The journal as the process before this one left it. One that cannot be read, which no crash leaves behind, is put aside: the node runs what it
 * runs, and its words are counted on.
 */
export async function readJournal({ folder, ports, log }: Source): Promise<{ journal: Journal; isDamaged: boolean }> {
  const path = join(folder, names.journal);
  const text = await ports.read(path);
  if (text === undefined) return { journal: emptyJournal(), isDamaged: false };
  const journal = parseAs(Journal, text);
  if (journal) {
    const { previous, previousOf, fence, brings } = journal;
    if (previous && !previousOf && fence) journal.previousOf = { name: fence.name, brings };
    return { journal, isDamaged: false };
  }
  log.warn("the journal cannot be read, and is put aside", { path });
  await ports.move(path, `${path}.damaged`);
  const report = parseAs(Report, (await ports.read(join(folder, names.report))) ?? "");
  return { journal: { ...emptyJournal(), ...(report && { fence: report.fence, report }) }, isDamaged: true };
}

/** What a text says, if it says that. */
export function parseAs<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
