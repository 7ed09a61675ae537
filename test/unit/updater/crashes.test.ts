import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import { casesOf } from "#support/cases/read.ts";
import { tries } from "#support/hostile.ts";
import { NixosWorld, nixosStatement, type FakeSystem, type Loader } from "#support/nixos-world.ts";
import { seededRandom } from "#support/random.ts";
import { howToRepeat, partOf, seedsOfSlice } from "#support/slice.ts";
import {
  type VersionBehaviour,
  runtimePath,
  ProcessEnds,
  profile,
  statementOf,
  UpdateWorld,
} from "#support/update-world.ts";

interface Scenario {
  readonly steps: readonly OrderStep[];
  readonly gate?: "fails";
  /** The final state and version without a crash, after one more boot; for a runtime also the updater's version. */
  readonly ends: readonly string[];
  /** The version before that boot, if it differs and the power did not fail. */
  readonly runs?: string;
  /** Another end after a power failure: a system on trial is left, and a unit that failed in one boot may start in the next. */
  readonly orEnds?: readonly string[];
  /** For a runtime: another update has put version 0.1.5 on trial before. */
  readonly isTried?: boolean;
  readonly behaviour?: VersionBehaviour;
  /** For a system: the activation of a former update, which installed the system “first”. */
  readonly first?: object;
  readonly loader?: Loader;
  readonly brings?: string;
  /** The machine is booted before the interrupted step. */
  readonly boots?: boolean;
  readonly next?: FakeSystem;
  readonly activation?: object;
}

type Kind = "runtime" | "nixos";
const cases = casesOf<Readonly<Record<Kind, Readonly<Record<string, Scenario>>>>>("updater-cut-off.yaml");
const [old, tried, young] = ["0.1.0", "0.1.5", "0.2.0"];
const before = { name: "u0", signedAt: "2025-01-01T00:00:00.000Z" };
const kernel = { kernel: "6.6.8" };

/** A node with the last step's order in its inbox. */
async function ready(kind: Kind, scenario: Scenario): Promise<UpdateWorld> {
  const {
    steps,
    gate,
    isTried,
    behaviour,
    first,
    loader,
    brings = "new",
    boots,
    next = {},
    activation = {},
  } = scenario;
  const seconds = kind === "runtime" ? 60 : 120;
  const timeouts = { activateSeconds: seconds, rebootSeconds: seconds };
  const gates = gate && { healthGates: [{ name: "page", nodeCommand: "look", withinSeconds: 2 }] };
  const spec = { timeouts, activation, ...gates };
  const world = kind === "runtime" ? new UpdateWorld(old) : new NixosWorld(loader);
  if (world instanceof NixosWorld) {
    world.add("new", next);
    world.add("first", kernel);
  }
  const trial = statementOf(tried, { timeouts, activation: { mode: "test" } }, before);
  if (isTried) await world.give(trial, "prepare", "activate");
  const former = { ...nixosStatement("first", { timeouts, ...(first && { activation: first }) }), ...before };
  if (first) await world.give(former, "prepare", "activate");
  const statement = kind === "runtime" ? statementOf(young, spec) : nixosStatement(brings, spec);
  await world.give(statement, ...steps.slice(0, -1));
  if (behaviour) world.behaviours.set(young, behaviour);
  if (boots) world.powerCut();
  world.order(steps.at(-1)!, statement, { seq: 50 });
  return world;
}

/** The version that the node runs. */
function running(world: UpdateWorld): string {
  if (world instanceof NixosWorld) return world.state.current;
  return [...new Set([...world.units.values()].map(({ program }) => program.slice(runtimePath("").length)))].join();
}

/** The final state after another power failure. */
function endOf(world: UpdateWorld): readonly unknown[] {
  world.onEffect = () => undefined;
  if (world instanceof NixosWorld) expect(world.once, "a one-time boot entry is left").to.equal(undefined);
  world.powerCut();
  expect([...world.store.values()], "damaged files in the store").not.to.include("damaged");
  const state = world.report()?.state;
  if (!(world instanceof NixosWorld))
    return [state, world.version(), world.at(`${profile}-updater`)?.slice(runtimePath("").length)];
  expect(new Set(Object.values(world.state)).size, `between systems: ${JSON.stringify(world.state)}`).to.equal(1);
  return [state, world.state.current];
}

/** Ends the updater's process right before the effects numbered `at`, and the machine with it if `isPower`. Returns the number of effects. */
async function interrupt(world: UpdateWorld, at: readonly number[], isPower: () => boolean): Promise<number> {
  let effects = 0;
  let isInterrupted = false;
  world.onEffect = () => {
    isInterrupted = at.includes(++effects);
    if (isInterrupted) throw new ProcessEnds("killed");
  };
  await world.live(() => {
    // A requested reboot ends the process, too.
    if (isInterrupted && isPower()) world.powerCut();
  });
  return effects;
}

/** How the updater is interrupted: its process is killed, or the machine loses power. */
const interruptions = ["killed", "without power"] as const;

/**
 * Interrupts the updater before every tenth of its effects, before other ones with each commit, each time in a new world; `at` names the
 * effect. `KCORE_HOSTILE=full` tries all effects.
 */
async function* interruptEach(
  start: () => Promise<UpdateWorld>,
  how: (typeof interruptions)[number],
): AsyncGenerator<{ readonly world: UpdateWorld; readonly at: string }> {
  const effects = await interrupt(await start(), [], () => false);
  if (effects <= 20) throw new Error(`the updater has ${effects} effects only`);
  for (const number of partOf(
    Array.from({ length: effects }, (_, index) => index + 1),
    10,
  )) {
    const world = await start();
    await interrupt(world, [number], () => how === "without power");
    yield { world, at: `interrupted before effect ${number} of ${effects}${howToRepeat()}` };
  }
}

for (const kind of ["runtime", "nixos"] as const)
  describe(`the updater, ${kind}, interrupted`, () => {
    const scenarios = Object.entries(cases[kind]);
    // One test for each scenario keeps each below its time limit.
    for (const [name, scenario] of scenarios)
      for (const how of interruptions)
        it(`${name}: has the same result when ${how} before each of its effects`, async () => {
          const { ends, orEnds, runs = ends[1] } = scenario;
          const may = how === "killed" || !orEnds ? [ends] : [ends, orEnds];
          for await (const { world, at } of interruptEach(() => ready(kind, scenario), how)) {
            if (how === "killed") expect(running(world), at).to.equal(runs);
            expect(may, at).to.deep.include(endOf(world));
          }
        });

    it("repeatedly, is completely on one version and reports the result", async () => {
      for (const seed of seedsOfSlice(tries(15, 1_000))) {
        const random = seededRandom(seed);
        const [name, scenario] = scenarios[Math.floor(random() * scenarios.length)]!;
        const world = await ready(kind, scenario);
        const at = Array.from({ length: 6 }, () => 1 + Math.floor(random() * 150));
        await interrupt(world, at, () => random() < 0.5);
        // If the boots used up the time limit, the node has rolled back and reports that.
        const back = kind === "runtime" ? [old, old] : [scenario.ends[1] === "first" ? "first" : "old"];
        const may = [scenario.ends, scenario.orEnds, ["failed", ...back]];
        expect(may, `seed ${seed}: ${name}, interrupted before ${at.join(", ")}`).to.deep.include(endOf(world));
      }
    });
  });

describe("the updater during repeated failures of disk or power", () => {
  const activating = { steps: ["prepare", "activate"], ends: [] } as const;
  const silent = { ...activating, behaviour: { reaches: false } };

  it("does not roll back once an activation has held", async () => {
    const world = await ready("runtime", activating);
    world.onEffect = (what) => {
      if (!what.startsWith(`nix-env -p ${profile}-updater`)) return;
      world.onEffect = () => undefined;
      world.behaviours.set(young, { reaches: false });
      throw new ProcessEnds("killed");
    };
    await world.live(() => world.powerCut());
    expect(endOf(world)).to.deep.equal(["activated", young, young]);
  });

  it("rolls back at its time limit, also if the power fails at every wait", async () => {
    const world = await ready("runtime", silent);
    world.onEffect = (what) => {
      if (what === "sleep" && world.journal().doing?.stage === "begun") throw new ProcessEnds("without power");
    };
    await world.live(() => world.powerCut());
    expect(endOf(world)).to.deep.equal(["failed", old, old]);
  });

  const booting = { ...activating, next: { ...kernel, reaches: false }, activation: { mode: "switch" } };
  for (const [what, kind, scenario, from, hasBoot] of [
    ["", "runtime", silent, "systemctl restart", false],
    [" after a power failure", "runtime", silent, "systemctl restart", true],
    [" while the machine boots, with another boot", "nixos", booting, "readLink /run/booted-system", false],
  ] as const)
    it(`rolls back in time on a full disk${what}, and reports when there is room`, async () => {
      const world = await ready(kind, scenario);
      world.onEffect = (effect) => {
        if (effect.startsWith(from)) world.full = /\/updates\//;
      };
      for (let starts = 0; starts < 15; starts++) {
        await world.run().catch((error: unknown) => expect(String(error)).to.match(/ENOSPC|goes down/));
        world.pass(10_000);
        if (hasBoot && starts === 0) world.powerCut();
      }
      const back = kind === "runtime" ? old : "old";
      expect(running(world)).to.equal(back);
      [world.full, world.onEffect] = [undefined, () => undefined];
      await world.live();
      expect(endOf(world)).to.deep.equal(kind === "runtime" ? ["failed", old, old] : ["failed", back]);
    });
});
