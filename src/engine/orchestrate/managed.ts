import { keepNodeFile, readNodeFile } from "#engine/facts/node-files.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { ManagedRemnant } from "#engine/states/remnants.ts";

/** The beginning of the warning of things that no step of a run manages any more. */
export const noLongerManaged = "no longer managed: ";

/** One application of states to a node. */
interface Application {
  readonly stage: string;
  /** A hash of the command line's parameters: with other parameters it is another application. */
  readonly params: string;
  /** The states' names, if they got no parameters: then the application is the same in any stage. */
  readonly plain?: string;
}

type ManagedThing = ManagedRemnant & { readonly step: string };

/** An application in this run, with the things that its steps manage on the node. */
export interface Applied extends Application {
  readonly leaves: readonly ManagedThing[];
  /** Ids of steps whose things this run does not know. */
  readonly doubts: readonly string[];
}

/** An application as recorded between runs: each thing with the run that made it. */
export interface Managed extends Application {
  readonly things: readonly (ManagedThing & { readonly run: string })[];
}

/** The record, kept between runs, of the things that are managed on nodes. */
export interface ManagedThings {
  read(node: NodeEntry): readonly Managed[];
  keep(node: NodeEntry, managed: readonly Managed[]): void;
}

/** The record in the project's `.kcore/managed`, one file for each node. A new node with a former node's name has no record yet. */
export function managedThings(project: string): ManagedThings {
  return {
    read: ({ name, id }) => {
      const kept = readNodeFile(project, "managed", name);
      return kept?.["id"] === id && Array.isArray(kept["managed"]) ? (kept["managed"] as Managed[]) : [];
    },
    keep: ({ name, id }, managed) => keepNodeFile(project, "managed", { node: name, id, managed }),
  };
}

/**
 * Compares the things that a run manages on a node with the things of the last run of the same states. `lost` names things that no
 * step manages any more; `after` is the new record. After a run that did not end well or did a part of its work (`isWhole` is false), none is lost.
 */
export function compareManaged(
  before: readonly Managed[],
  { applied, run, isWhole }: { readonly applied: readonly Applied[]; readonly run: string; readonly isWhole: boolean },
): { readonly lost?: string; readonly after: readonly Managed[] } {
  const isSame = (one: Application, { stage, params, plain }: Application) =>
    (plain !== undefined && one.plain === plain) || (one.stage === stage && one.params === params);
  const again = before.filter((one) => applied.some((other) => isSame(other, one)));
  const others = before.filter((one) => !again.includes(one));
  const runs = new Map(
    again.flatMap(({ things }) => things.flatMap((one) => one.places.map((at) => [at, one.run] as const))),
  );
  // Earlier applications of this run's stages, with other parameters, keep nothing: this run's stages replace them.
  const elsewhere = others.filter(({ stage }) => !applied.some((one) => one.stage === stage));
  const now = applied.flatMap(({ leaves }) => leaves);
  const isManaged = managedBy([...now, ...elsewhere.flatMap(({ things }) => things)]);
  const gone = now.flatMap(({ isGone, places }) => (isGone ? places : []));
  const isRemoved = ({ places: [place], within = place }: ManagedThing) =>
    gone.some((at) => `${within}/`.startsWith(`${at}/`));
  const isDoubtful = ({ doubts }: Applied, { step }: ManagedThing) =>
    !isWhole || doubts.some((id) => step === id || step.startsWith(`${id}[`));
  const unmanaged = again.flatMap(({ things }) => things.filter((thing) => !isManaged(thing) && !isRemoved(thing)));
  const lost = unmanaged.filter((thing) => !applied.some((one) => isDoubtful(one, thing)));
  const names = lost.map(({ what, run: maker, by }) => `${what} (made by run ${maker}; to remove it: ${by})`);
  const isLost = managedBy(lost);
  return {
    ...(lost.length > 0 && { lost: `${noLongerManaged}${[...new Set(names)].join(", ")}` }),
    after: [
      ...others.map((one) => ({ ...one, things: one.things.filter((thing) => !isRemoved(thing) && !isLost(thing)) })),
      ...applied.map((one) => {
        const { leaves, doubts: _, ...application } = one;
        const made = leaves.filter(({ by, isGone }) => by !== undefined && !isGone);
        const things = made.map((thing) => ({
          ...thing,
          run: thing.places.flatMap((at) => runs.get(at) ?? [])[0] ?? run,
        }));
        return { ...application, things: [...things, ...unmanaged.filter((thing) => isDoubtful(one, thing))] };
      }),
    ],
  };
}

/** Makes the test whether a thing is managed: as such, by the thing's file, or, for a whole file, by a part of the file. */
function managedBy(managed: readonly ManagedRemnant[]): (thing: ManagedRemnant) => boolean {
  const places = new Set(managed.flatMap((one) => one.places));
  const files = new Set(managed.map(({ within }) => within));
  const whole = new Set(managed.flatMap(({ within, isPart }) => (isPart ? [] : within)));
  return (thing) =>
    thing.places.some((place) => places.has(place)) ||
    (thing.within !== undefined && (thing.isPart ? whole : files).has(thing.within));
}
