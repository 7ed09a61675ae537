import { keepOfNode, readOfNode } from "#engine/facts/cache.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Leaving } from "#engine/states/leaves.ts";

/** States that were applied to a node. */
interface Application {
  readonly stage: string;
  /** A hash of those of the command line: with others, it is another application. */
  readonly params: string;
  /** The states, if they got no parameters: then they are the same in any stage. */
  readonly plain?: string;
}

type Kept = Leaving & { readonly step: string };

/** What a run has applied. */
export interface Applied extends Application {
  readonly leaves: readonly Kept[];
  /** Ids of steps of which it is not known in this run what they leave. */
  readonly doubts: readonly string[];
}

/** What is kept of it, with the run that kept it in order first. */
export interface Managed extends Application {
  readonly things: readonly (Kept & { readonly run: string })[];
}

/** Remembers between runs what is managed on nodes. */
export interface ManagedThings {
  read(node: NodeEntry): readonly Managed[];
  keep(node: NodeEntry, managed: readonly Managed[]): void;
}

/** In `.kcore/managed` of the project, a file a node. A node that goes by the name of a former one has nothing yet. */
export function managedThings(project: string): ManagedThings {
  return {
    read: ({ name, id }) => {
      const kept = readOfNode(project, "managed", name);
      return kept?.["id"] === id && Array.isArray(kept["managed"]) ? (kept["managed"] as Managed[]) : [];
    },
    keep: ({ name, id }, managed) => keepOfNode(project, "managed", { node: name, id, managed }),
  };
}

/**
 * Compares what a run keeps on a node with what it kept the last time that the same was applied. `lost` names what nobody keeps any more;
 * `after` is what is managed from now on.
 */
export function compareManaged(
  before: readonly Managed[],
  applied: readonly Applied[],
  run: string,
): { readonly lost?: string; readonly after: readonly Managed[] } {
  const isAgain = ({ stage, params, plain }: Managed) =>
    applied.some(
      (one) => (plain !== undefined && one.plain === plain) || (one.stage === stage && one.params === params),
    );
  const things = before.filter(isAgain).flatMap((one) => one.things);
  const earlier = new Map(things.map((thing) => [thing.place, thing]));
  const others = before.filter((one) => !isAgain(one));
  // The same stage would not make it either, whatever its parameters were.
  const elsewhere = others.filter(({ stage }) => !applied.some((one) => one.stage === stage));
  const now = applied.flatMap(({ leaves }) => leaves);
  const named = new Set([...now, ...elsewhere.flatMap((one) => one.things)].map(({ place }) => place));
  const isTaken = (place: string) => now.some((one) => one.isGone && `${place}/`.startsWith(`${one.place}/`));
  const left = [...earlier.values()].filter(({ place }) => !named.has(place) && !isTaken(place));
  const isDoubtful = ({ doubts }: Applied, { step }: Kept) =>
    doubts.some((id) => step === id || step.startsWith(`${id}[`));
  const lost = left.filter((thing) => !applied.some((one) => isDoubtful(one, thing)));
  const told = lost.map(({ what, run: maker, by }) => `${what} (made by run ${maker}; to remove it: ${by})`);
  const isOver = (place: string) => isTaken(place) || lost.some((one) => one.place === place);
  return {
    ...(lost.length > 0 && { lost: `no longer managed: ${told.join(", ")}` }),
    after: [
      ...others.map((one) => ({ ...one, things: one.things.filter(({ place }) => !isOver(place)) })),
      ...applied.map((one) => {
        const { leaves, doubts: _, ...application } = one;
        const made = leaves.filter(({ isGone }) => !isGone);
        const things = made.map((thing) => ({ ...thing, run: earlier.get(thing.place)?.run ?? run }));
        return { ...application, things: [...things, ...left.filter((thing) => isDoubtful(one, thing))] };
      }),
    ],
  };
}
