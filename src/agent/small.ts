import { setFlagsFromString } from "node:v8";

/**
 * Makes this process small instead of fast, before it loads what it runs: an agent computes next to nothing. Measured on the
 * runtime of nodes (bench/agent.ts): 87 MB resident without these, 68 MB with them.
 */
export function beSmall(): void {
  for (const flag of ["--optimize-for-size", "--no-opt", "--no-maglev", "--no-sparkplug"]) setFlagsFromString(flag);
}
