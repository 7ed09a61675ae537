import { casesOf } from "#support/cases/read.ts";
import type { Mutant } from "../mutants.ts";
import { missing, undisturbed, type RolloutSwarm } from "./swarm.ts";

interface RolloutMutant extends Omit<Mutant, "swarm"> {
  readonly swarm: Partial<RolloutSwarm>;
}

interface Bug extends Omit<Mutant, "edits" | "swarm"> {
  readonly name: string;
  readonly basis?: keyof typeof bases;
  readonly swarm?: Partial<RolloutSwarm>;
  readonly from: string;
  readonly to: string;
  readonly also?: readonly { readonly file?: string; readonly from: string; readonly to: string }[];
}

const bases = { missing, undisturbed };
const files = casesOf<readonly { readonly file: string; readonly bugs: readonly Bug[] }[]>("rollout-mutants.yaml");

/**
 * Bugs of rollouts that the simulator must find. After a change of the simulated code, search for a new seed with `--mutant NAME`. Updates are
 * only removed if a bug's swarm says so.
 */
export const rolloutMutants: Readonly<Record<string, RolloutMutant>> = Object.fromEntries(
  files.flatMap(({ file, bugs }) =>
    bugs.map(({ name, basis, swarm, from, to, also = [], ...bug }) => {
      const edits = [{ file, from, to }, ...also.map((edit) => ({ file, ...edit }))];
      return [name, { ...bug, edits, swarm: { removes: false, ...(basis && bases[basis]), ...swarm } }] as const;
    }),
  ),
);
