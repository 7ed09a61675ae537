import { howToRepeat, partOf } from "./slice.ts";
import { ProcessEnds, type UpdateWorld } from "./update-world.ts";

/** Ends the updater's process right before the effects numbered `at`, and the machine with it if `isPower`. Returns the number of effects. */
export async function cut(
  world: UpdateWorld,
  at: readonly number[],
  isPower: (cut: number) => boolean,
): Promise<number> {
  let effects = 0;
  let cuts = 0;
  let isCut = false;
  world.onEffect = () => {
    isCut = at.includes(++effects);
    if (isCut) throw new ProcessEnds("killed");
  };
  await world.live(() => {
    // A requested reboot ends the process, too.
    if (isCut && isPower(cuts++)) world.powerCut();
  });
  return effects;
}

/** How the updater is interrupted: its process is killed, or the machine loses power. */
export const endings = ["killed", "without power"] as const;

/**
 * Ends the updater before every tenth of its effects, before other ones with each commit, each time in a new world; `at` names the effect.
 * `KCORE_HOSTILE=full` tries all effects.
 */
export async function* cutEach<World extends UpdateWorld>(
  ready: () => Promise<World>,
  how: (typeof endings)[number],
): AsyncGenerator<{ readonly world: World; readonly at: string }> {
  const effects = await cut(await ready(), [], () => false);
  if (effects <= 20) throw new Error(`it does ${effects} things only`);
  const numbers = Array.from({ length: effects }, (_, index) => index + 1);
  for (const number of partOf(numbers, 10)) {
    const world = await ready();
    await cut(world, [number], () => how === "without power");
    yield { world, at: `cut off before effect ${number} of ${effects}${howToRepeat()}` };
  }
}
