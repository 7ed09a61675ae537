import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** The result of many seeds. */
export interface Campaign {
  readonly seeds: number;
  readonly failures: readonly { readonly seed: number; readonly failure: string }[];
  readonly figures: Readonly<Record<string, number>>;
  /** The virtual milliseconds that each seed took to converge after its faults, in ascending order. */
  readonly converged: readonly number[];
}

export interface CampaignOptions {
  readonly from?: number;
  readonly seeds: number;
  readonly mutant?: string;
  /** Whether each process ends with its first failing seed. */
  readonly untilFirst?: boolean;
  readonly processes?: number;
  /** The simulated world: replicas, rollouts, or rollouts whose owner is killed at each of its writes. */
  readonly what?: "replicas" | "rollouts" | "kills";
}

const run = promisify(execFile);

let cacheFolder: string | undefined;

/** The folder of the processes' shared compile cache: compiling the sources takes as long as a seed. */
function compileCache(): string {
  if (cacheFolder === undefined) {
    const folder = mkdtempSync(join(tmpdir(), "kcore-sim-"));
    process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
    cacheFolder = folder;
  }
  return cacheFolder;
}

/** Runs seeds, evenly distributed over `processes` child processes. */
export async function runCampaign(options: CampaignOptions): Promise<Campaign> {
  const { from = 1, seeds, mutant = "-", untilFirst = false, processes = 1, what = "replicas" } = options;
  const parts = await Promise.all(
    Array.from({ length: processes }, async (_, index): Promise<Campaign> => {
      const count = Math.ceil((seeds - index) / processes);
      const args = [from + index, count, processes, mutant, untilFirst ? "FIRST" : "ALL", what].map(String);
      const { stdout } = await run(process.execPath, [join(import.meta.dirname, "worker.ts"), ...args], {
        maxBuffer: 1 << 28,
        env: { ...process.env, NODE_COMPILE_CACHE: compileCache() },
      });
      return JSON.parse(stdout) as Campaign;
    }),
  );
  const figures: Record<string, number> = {};
  for (const part of parts)
    for (const [name, value] of Object.entries(part.figures)) figures[name] = (figures[name] ?? 0) + value;
  return {
    seeds: parts.reduce((sum, part) => sum + part.seeds, 0),
    failures: parts.flatMap((part) => part.failures).toSorted((a, b) => a.seed - b.seed),
    figures,
    converged: parts.flatMap((part) => part.converged).toSorted((a, b) => a - b),
  };
}
