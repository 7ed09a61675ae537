import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeFacts } from "./shape.ts";

/** What a node told last, and when. */
export interface KeptFacts {
  readonly version: 1;
  readonly node: string;
  /** The run that gathered them. */
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly gathered: number;
  readonly facts: NodeFacts;
}

function fileOf(project: string, node: string): string {
  return join(project, ".kcore", "facts", `${encodeURIComponent(node)}.json`);
}

/**
 * Keeps a node's facts for later targets, in `.kcore/facts/NODE.json` in the place of earlier ones; whole, or not at all.
 * A failure is told on stderr: neither a run nor a command fails for it.
 */
export function keepFacts(project: string, kept: Omit<KeptFacts, "version">): void {
  const file = fileOf(project, kept.node);
  const aside = `${file}.${process.pid}`;
  try {
    mkdirSync(join(project, ".kcore", "facts"), { recursive: true, mode: 0o700 });
    writeFileSync(aside, `${JSON.stringify({ version: 1, ...kept })}\n`, { mode: 0o600 });
    renameSync(aside, file);
  } catch (error) {
    process.stderr.write(`the facts of ${kept.node} could not be kept: ${(error as Error).message}\n`);
  }
}

/** What a node told last; undefined where nothing is kept, or nothing that can be read. */
export function readFacts(project: string, node: string): KeptFacts | undefined {
  try {
    const kept = JSON.parse(readFileSync(fileOf(project, node), "utf8")) as Partial<KeptFacts> | null;
    const isWhole = kept?.version === 1 && kept.node === node && typeof kept.gathered === "number" && kept.facts;
    return isWhole ? (kept as KeptFacts) : undefined;
  } catch {
    return undefined;
  }
}
