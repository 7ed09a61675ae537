import { KcoreError } from "#errors/problem.ts";
import { openLab, type Lab, type LabOptions } from "#lab/lab.ts";
import { withLock } from "#lab/lock.ts";
import { findLabPlace, labNames, type PlaceOptions } from "#lab/place.ts";

export interface OwnLab extends Lab {
  /** Options with which another process opens the same lab. */
  readonly where: PlaceOptions;
}

/** The labs of tests; no other lab has one of these networks. */
const places = Array.from({ length: 50 }, (_, number) => [
  { ipv6: false, name: `test${number}`, bridge: `kctest${number}`, net: `10.78.${number}` },
  { ipv6: true, name: `testsix${number}`, bridge: `kcsix${number}`, net: `fd78:0:0:${number + 1}` },
]).flat();

/** Opens a lab for this process alone, until the lab's `down` or the end of this process. Also takes down labs of killed processes. */
export async function ownLab({
  ipv6 = false,
  ...options
}: Pick<LabOptions, "packages"> & { readonly ipv6?: boolean } = {}): Promise<OwnLab> {
  const left = await labNames();
  for (const { ipv6: _, ...where } of places) if (left.includes(where.name)) await (await claim(where))?.down();
  for (const { ipv6: is6, ...where } of places) {
    const lab = is6 === ipv6 ? await claim(where, options) : undefined;
    if (lab) return lab;
  }
  throw new Error(`all ${places.length / 2} labs of tests are taken`);
}

async function claim(where: PlaceOptions & { name: string }, options: LabOptions = {}): Promise<OwnLab | undefined> {
  const giveBack = await hold(`${where.name}.owner`);
  if (!giveBack) return undefined;
  const lab = await openLab({ ...options, ...where });
  let isOurs = true;
  return {
    ...lab,
    where,
    down: async (names) => {
      if (names !== undefined) return lab.down(names);
      if (!isOurs) return;
      isOurs = false;
      await lab.down().finally(giveBack);
    },
  };
}

/** Holds a lock until the returned function is called or this process ends; undefined if another process holds it. */
async function hold(name: string): Promise<(() => void) | undefined> {
  const { home } = await findLabPlace();
  return new Promise((resolve, reject) => {
    const work = (): Promise<void> => new Promise((release) => resolve(release));
    withLock(home, name, 0, work).catch((error: unknown) => {
      if (error instanceof KcoreError && error.problems[0]?.code === "LAB_BUSY") resolve(undefined);
      else reject(error as Error);
    });
  });
}
