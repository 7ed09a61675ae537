import { Verifier, type Damage, type Entry, type Head, type Verdict } from "#audit/chain.ts";
import { runFolder } from "#engine/run/run-folder.ts";
import { digestOf, type RunEnded, type RunsPruned } from "#engine/run/run-trail.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { ResultFormat } from "../options.ts";
import { formatResult } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";
import { noteHeads, readNotedHeads } from "./noted-heads.ts";
import { findTrails, type KnownTrail, type TrailFlags } from "./trails.ts";

export interface VerifyFlags extends TrailFlags {
  readonly output: ResultFormat;
  /** A head of the runs' trail that was kept elsewhere. */
  readonly head?: Head;
}

interface Finding extends Partial<Verdict> {
  readonly trail: string;
  readonly state: "whole" | "damaged" | "unreadable" | "empty";
  readonly damage: readonly Damage[];
  readonly error?: string;
}

/**
 * `kcore audit verify`: follows each trail from its first entry to its last, compares it with what was noted when it was whole the last
 * time, and the records of runs with what the trail says of them. Exits 1 when one is not whole, or cannot be read.
 */
export async function verifyTrails({ output, head, ...flags }: VerifyFlags): Promise<void> {
  const trails = await findTrails(head ? { ...flags, runs: true } : flags);
  const noted = await readNotedHeads();
  const heads = new Map<string, Head>();
  const findings: Finding[] = [];
  for (const trail of trails) {
    const known = noted[trail.id];
    const finding = await verify(trail, [...(known ? [known] : []), ...(head ? [head] : [])]);
    if (trail.isRare && !known && finding.state === "empty") continue;
    findings.push(finding);
    if (finding.state === "whole" && finding.head) heads.set(trail.id, finding.head);
  }
  if (heads.size > 0) await noteHeads(noted, heads);
  process.stdout.write(formatResult(findings, output, () => draw(findings)));
  if (findings.some(({ state }) => state === "damaged" || state === "unreadable")) process.exitCode = exitCodes.failed;
}

async function verify(trail: KnownTrail, noted: readonly Head[]): Promise<Finding> {
  const verifier = new Verifier(noted);
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
  const damage = [...verdict.damage, ...(await records.damage())];
  const state = damage.length > 0 ? "damaged" : verdict.entries === 0 ? "empty" : "whole";
  return { trail: trail.name, state, ...verdict, damage };
}

/** What a trail says of the records of runs, compared with those that lie there. */
class RunRecords {
  readonly #project: string | undefined;
  readonly #ended: { readonly entry: RunEnded; readonly file: string; readonly line: number }[] = [];
  readonly #pruned = new Set<string>();

  constructor(project: string | undefined) {
    this.#project = project;
  }

  add(entry: Entry, { file, line }: Omit<Damage, "what">): void {
    if (this.#project === undefined) return;
    if (entry["type"] === "run.finished") this.#ended.push({ entry: entry as unknown as RunEnded, file, line });
    if (entry["type"] === "runs.pruned") for (const run of (entry as unknown as RunsPruned).runs) this.#pruned.add(run);
  }

  async damage(): Promise<readonly Damage[]> {
    const found: Damage[] = [];
    for (const { entry, file, line } of this.#ended) {
      const what = this.#pruned.has(entry.run) ? undefined : await this.#compare(entry);
      if (what !== undefined) found.push({ file, line, what });
    }
    return found;
  }

  async #compare({ run, record }: RunEnded): Promise<string | undefined> {
    const { events } = runFolder(this.#project ?? "", run);
    const present = await digestOf(events, record.bytes).catch((error: NodeJS.ErrnoException) => error.code ?? "");
    if (typeof present === "string")
      return `the record of run ${run} cannot be read (${present}), and nobody pruned it`;
    return present.sha256 === record.sha256 ? undefined : `the record of run ${run} was changed: ${events}`;
  }
}

function draw(findings: readonly Finding[]): string {
  const rows = findings.map(({ trail, state, entries = 0, first = 0, head }) => [
    trail,
    state,
    entries === 0 ? "-" : `${first} to ${head?.n}`,
    head && entries > 0 ? `${head.n}:${head.hash}` : "-",
  ]);
  const told = findings.flatMap(({ trail, damage, error }) => [
    ...(error === undefined ? [] : [`${trail}: ${error}`]),
    ...damage.map(({ file, line, what }) => `${trail}: ${file}:${line}  ${what}`),
  ]);
  const sick = findings.filter(({ state }) => state === "damaged" || state === "unreadable").length;
  const verdict = sick === 0 ? "every trail is whole" : `${sick} of ${findings.length} trails are not whole`;
  return `${formatTable(["TRAIL", "STATE", "ENTRIES", "HEAD"], rows)}${[...told, verdict].join("\n")}\n`;
}
