import { stat } from "node:fs/promises";
import {
  parseEntry,
  Verifier,
  type TrailDamage,
  type TrailEntry,
  type TrailHead,
  type TrailCheck,
} from "#audit/chain.ts";
import { readHeader, runFolder } from "#engine/run/run-folder.ts";
import { digestOf, type RunBegan, type RunEnded, type RunsEntry } from "#engine/run/run-trail.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { ResultFormat } from "../options.ts";
import { formatTable } from "../terminal/format-table.ts";
import { findTrails, type KnownTrail, type TrailFlags } from "./trails.ts";
import { printResult } from "../terminal/format-result.ts";
import { join } from "node:path";
import { z } from "zod";
import { durableJson } from "#base/durable-file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";

export interface VerifyFlags extends TrailFlags {
  readonly output: ResultFormat;
  /** A head of the runs' trail that the operator kept elsewhere. */
  readonly head?: TrailHead;
}

interface TrailFinding extends Partial<TrailCheck> {
  readonly trail: string;
  readonly state: "whole" | "damaged" | "unreadable" | "empty";
  readonly damage: readonly TrailDamage[];
  readonly error?: string;
}

/**
 * `kcore audit verify`: follows each trail from its first entry to its last and compares it with the head noted at the last check.
 * Records of runs are compared with the trail's hashes. Exits 1 when a trail is not whole, or cannot be read.
 */
export async function verifyTrails({ output, head, ...flags }: VerifyFlags): Promise<void> {
  const trails = await findTrails(head ? { ...flags, runs: true } : flags);
  const noted = await openNotedHeads();
  const heads = new Map<string, TrailHead>();
  const findings: TrailFinding[] = [];
  for (const trail of trails) {
    const known = noted.data[trail.id];
    const given = trail.project === undefined ? undefined : head;
    const finding = await verify(
      trail,
      [known, given].filter((one) => one !== undefined),
    );
    if (trail.isRare && !known && finding.state === "empty") continue;
    findings.push(finding);
    if (finding.state === "whole" && finding.head) heads.set(trail.id, finding.head);
  }
  if (heads.size > 0) await noteHeads(noted, heads);
  printResult(findings, output, () => draw(findings));
  if (findings.some(({ state }) => state === "damaged" || state === "unreadable")) process.exitCode = exitCodes.failed;
}

async function verify(trail: KnownTrail, noted: readonly TrailHead[]): Promise<TrailFinding> {
  const verifier = new Verifier(noted, trail.mustKeep);
  const records = new RunRecords(trail.project);
  try {
    for await (const line of trail.lines()) {
      const entry = verifier.add(line);
      if (entry) records.add(entry, line);
    }
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { trail: trail.name, state: "unreadable", damage: [], error: error.message };
  }
  const verdict = verifier.verdict();
  const damage = [...verdict.damage, ...(await records.damage(trail))];
  const state = damage.length > 0 ? "damaged" : verdict.entries === 0 ? "empty" : "whole";
  return { trail: trail.name, state, ...verdict, damage };
}

/** An entry about the start or end of a run, with its file and line. */
interface LocatedEntry<RunEntry> {
  readonly entry: RunEntry;
  readonly at: Omit<TrailDamage, "what">;
}

/** The entries of a trail about the project's runs, compared with their records. */
class RunRecords {
  readonly #project: string | undefined;
  readonly #began = new Map<string, LocatedEntry<RunBegan>>();
  readonly #ended: LocatedEntry<RunEnded>[] = [];
  /** The newest entry of each run. */
  readonly #last = new Map<string, TrailEntry>();
  readonly #pruned = new Set<string>();

  constructor(project: string | undefined) {
    this.#project = project;
  }

  add(entry: TrailEntry, { file, line }: Omit<TrailDamage, "what">): void {
    if (this.#project === undefined) return;
    const about = entry as TrailEntry & RunsEntry;
    if (about.type === "runs.pruned") for (const run of about.runs) this.#pruned.add(run);
    if (about.type === "run.started") this.#began.set(about.run, { entry: about, at: { file, line } });
    if (about.type === "run.finished") this.#ended.push({ entry: about, at: { file, line } });
    if (about.type === "run.started" || about.type === "run.finished") this.#last.set(about.run, entry);
  }

  async damage({ lines }: KnownTrail): Promise<readonly TrailDamage[]> {
    const found: TrailDamage[] = [];
    const compare = async <E extends { readonly run: string }>(
      all: Iterable<LocatedEntry<E>>,
      judge: (entry: E) => Promise<string | undefined>,
    ): Promise<void> => {
      for (const { entry, at } of all) {
        const what = this.#pruned.has(entry.run) ? undefined : await judge(entry);
        if (what !== undefined) found.push({ ...at, what });
      }
    };
    await compare(this.#began.values(), (entry) => this.#headerOf(entry));
    await compare(this.#ended, (entry) => this.#recordOf(entry, lines));
    return found;
  }

  async #headerOf({ run, who, revision }: RunBegan): Promise<string | undefined> {
    const folder = runFolder(this.#project ?? "", run);
    const header = await readHeader(folder).catch((error: unknown) => {
      if (!(error instanceof KcoreError)) throw error;
    });
    if (!header) return `the record of run ${run} cannot be read, although it was not pruned: ${folder.header}`;
    // A resume writes its revision into the header before its `run.started` entry.
    const hasEnded = this.#last.get(run)?.["type"] === "run.finished";
    const isSame = header.who === who && (!hasEnded || header.revision === revision);
    return isSame ? undefined : `the header of run ${run} was changed: ${folder.header}`;
  }

  async #recordOf(entry: RunEnded, lines: KnownTrail["lines"]): Promise<string | undefined> {
    const { run, record } = entry;
    const { events } = runFolder(this.#project ?? "", run);
    const present = await digestOf(events, record.bytes).catch((error: NodeJS.ErrnoException) => error.code ?? "");
    if (typeof present === "string")
      return `the record of run ${run} cannot be read (${present}), although it was not pruned`;
    if (present.sha256 !== record.sha256) return `the record of run ${run} was changed: ${events}`;
    if (this.#last.get(run) !== (entry as unknown) || (await stat(events)).size === record.bytes) return undefined;
    // A resume may have begun since the trail was read.
    let isResumed = false;
    for await (const { text } of lines()) {
      const later = parseEntry(text);
      isResumed ||= later?.["run"] === run && later.n > (this.#last.get(run)?.n ?? 0);
    }
    return isResumed ? undefined : `the record of run ${run} goes on behind its end: ${events}`;
  }
}

function draw(findings: readonly TrailFinding[]): string {
  const rows = findings.map(({ trail, state, entries = 0, first = 0, head }) => [
    trail,
    state,
    entries === 0 ? "-" : `${first} to ${head?.n}`,
    head && entries > 0 ? `${head.n}:${head.hash}` : "-",
  ]);
  const notes = findings.flatMap(({ trail, damage, error, droppedHeads = [] }) => [
    ...(error === undefined ? [] : [`${trail}: ${error}`]),
    ...droppedHeads.map((n) => `${trail}: entry ${n} was noted, and was dropped since to make room for newer ones`),
    ...damage.map(({ file, line, what }) => `${trail}: ${file}:${line}  ${what}`),
  ]);
  const sick = findings.filter(({ state }) => state === "damaged" || state === "unreadable").length;
  const verdict = sick === 0 ? "every trail is whole" : `${sick} of ${findings.length} trails are not whole`;
  return `${formatTable(["TRAIL", "STATE", "ENTRIES", "HEAD"], rows)}${[...notes, verdict].join("\n")}\n`;
}

const NotedHeadsFile = z.record(z.string(), z.object({ n: z.int().positive(), hash: z.string().length(64) }));

/** The database of the last heads, by the trail's id. */
export type NotedHeads = ReturnType<typeof durableJson<z.infer<typeof NotedHeadsFile>>>;

/**
 * Opens the last heads of trails that this user found whole: they show whether a trail was cut short later.
 * @throws KcoreError CONFIG_INVALID: a damaged file must not make heads vanish
 */
export async function openNotedHeads(): Promise<NotedHeads> {
  const file = join(kcoreHome(), "audit-heads.json");
  const db = durableJson(file, NotedHeadsFile, {});
  try {
    await db.read();
    return db;
  } catch (cause) {
    const hint = "look at it by hand; without it the next verify begins anew";
    throw new KcoreError({ code: "CONFIG_INVALID", message: `${file} is damaged`, hint }, { cause });
  }
}

/** Saves the heads of whole trails for the next check; reads the file again before, since another check may have ended meanwhile. */
export async function noteHeads(noted: NotedHeads, heads: ReadonlyMap<string, TrailHead>): Promise<void> {
  await ensurePrivateFolder(kcoreHome());
  await noted.read();
  Object.assign(noted.data, Object.fromEntries(heads));
  await noted.write();
}
