import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { makeFolderSync } from "#base/folder.ts";
import type { NodeFacts } from "./shape.ts";

/** The facts that a node reported last, and the time of the report. */
export interface KeptFacts {
  readonly version: 1;
  readonly node: string;
  /** The run that gathered the facts. */
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly gathered: number;
  readonly facts: NodeFacts;
}

/**
 * `facts`: the node's last reported facts. `managed`: the resources that runs manage on it. `looks` and `applied`: see looks.ts and
 * node-revisions.ts in orchestrate.
 */
type Kind = "facts" | "managed" | "looks" | "applied";

const contents: Readonly<Record<Kind, string>> = {
  facts: "the facts",
  managed: "the list of managed things",
  looks: "the looks",
  applied: "the revision",
};

function fileOf(project: string, kind: Kind, node: string): string {
  return join(project, ".kcore", kind, `${encodeURIComponent(node)}.json`);
}

/**
 * Replaces `.kcore/KIND/NODE.json`, atomically, for later runs. A failure is only reported on stderr: neither a run nor a command
 * fails for it.
 */
export function keepNodeFile(
  project: string,
  kind: Kind,
  kept: { readonly node: string; readonly [name: string]: unknown },
): void {
  const file = fileOf(project, kind, kept.node);
  try {
    makeFolderSync(dirname(file));
    replaceFileSync(file, `${JSON.stringify({ version: 1, ...kept })}\n`);
  } catch (error) {
    process.stderr.write(`${contents[kind]} of ${kept.node} could not be kept: ${(error as Error).message}\n`);
  }
}

/** Reads the file of {@link keepNodeFile}; undefined if it is missing, unreadable, or of another version or node. */
export function readNodeFile(project: string, kind: Kind, node: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const kept = JSON.parse(readFileSync(fileOf(project, kind, node), "utf8")) as Record<string, unknown> | null;
    return kept?.["version"] === 1 && kept["node"] === node ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** The files of {@link keepNodeFile} of all nodes, as far as they can be read. */
export function readNodeFiles(project: string, kind: Kind): readonly Readonly<Record<string, unknown>>[] {
  try {
    const names = readdirSync(join(project, ".kcore", kind)).map((file) => file.replace(/\.json$/, ""));
    return names.flatMap((name) => {
      const kept = readNodeFile(project, kind, decodeURIComponent(name));
      return kept ? [kept] : [];
    });
  } catch {
    // No file of this kind was kept yet.
    return [];
  }
}

export function keepFacts(project: string, kept: Omit<KeptFacts, "version">): void {
  keepNodeFile(project, "facts", kept);
}

/** The node's last reported facts; undefined if none are kept. */
export function readFacts(project: string, node: string): KeptFacts | undefined {
  const kept = readNodeFile(project, "facts", node) as Partial<KeptFacts> | undefined;
  return typeof kept?.gathered === "number" && kept.facts ? (kept as KeptFacts) : undefined;
}
