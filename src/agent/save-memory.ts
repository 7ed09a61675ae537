import { setFlagsFromString } from "node:v8";

/**
 * Makes this process small instead of fast, before it loads what it runs: an agent computes next to nothing. With the unit's
 * NODE_OPTIONS (no compiler, a young generation of 1 MiB) the runtime of nodes stays at 67 MB resident instead of 87 MB.
 */
export function saveMemory(): void {
  for (const flag of ["--optimize-for-size", "--no-opt", "--no-maglev", "--no-sparkplug"]) setFlagsFromString(flag);
}
