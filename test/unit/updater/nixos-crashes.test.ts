import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import { NixosWorld, nixosStatement, type FakeSystem, type Loader } from "#support/nixos-world.ts";
import { seededRandom } from "#support/random.ts";
import { cut } from "#support/update-world.ts";

interface Scenario {
  readonly what: string;
  readonly loader?: Loader;
  readonly before?: readonly OrderStep[];
  readonly step: OrderStep;
  readonly next?: FakeSystem;
  readonly activation?: object;
  readonly spec?: object;
  /** How it ends without a crash: the state, and what the node begins with and runs after one more boot. */
  readonly ends: readonly [state: string, system: string];
  /** How else it may end when the power fails: a system that is tried once is left, and what failed in one boot may not in the next. */
  readonly orEnds?: readonly [state: string, system: string];
}

const kernel = { kernel: "6.6.8" };
const activate = { before: ["prepare"], step: "activate" } as const;

const scenarios: readonly Scenario[] = [
  { what: "a preparation", step: "prepare", ends: ["prepared", "old"] },
  { what: "a switch", ...activate, ends: ["activated", "new"] },
  {
    what: "a boot that is tried once",
    ...activate,
    next: kernel,
    ends: ["activated", "new"],
    orEnds: ["failed", "old"],
  },
  {
    what: "a boot that GRUB tries once",
    ...activate,
    loader: "grub",
    next: kernel,
    ends: ["activated", "new"],
    orEnds: ["failed", "old"],
  },
  { what: "a boot that is not tried", ...activate, loader: "none", next: kernel, ends: ["activated", "new"] },
  {
    what: "a switch with a boot behind it",
    ...activate,
    next: kernel,
    activation: { mode: "switch" },
    ends: ["activated", "new"],
    orEnds: ["failed", "old"],
  },
  {
    what: "a system for the next boot",
    ...activate,
    next: kernel,
    activation: { mode: "boot", rebootPolicy: "never" },
    ends: ["activated", "new"],
  },
  { what: "a trial", ...activate, next: kernel, activation: { mode: "test" }, ends: ["activated", "old"] },
  { what: "a system that does not boot", ...activate, next: { ...kernel, boots: false }, ends: ["failed", "old"] },
  {
    what: "a system that is booted and reaches no controller",
    ...activate,
    next: { ...kernel, reaches: false },
    ends: ["failed", "old"],
  },
  { what: "a system that reaches no controller", ...activate, next: { reaches: false }, ends: ["failed", "old"] },
  {
    what: "units that fail",
    ...activate,
    next: { exits: { switch: 4 } },
    ends: ["failed", "old"],
    orEnds: ["activated", "new"],
  },
  {
    what: "a gate that does not hold",
    ...activate,
    next: kernel,
    spec: { healthGates: [{ name: "page", nodeCommand: "look", withinSeconds: 2 }] },
    ends: ["failed", "old"],
  },
  { what: "a way back", before: ["prepare", "activate"], step: "roll_back", ends: ["rolled_back", "old"] },
  {
    what: "a way back by a boot",
    before: ["prepare", "activate"],
    step: "roll_back",
    next: kernel,
    ends: ["rolled_back", "old"],
  },
];

const statement = ({ spec, activation = {} }: Scenario) =>
  nixosStatement("new", { timeouts: { activateSeconds: 60, rebootSeconds: 120 }, activation, ...spec });

async function ready(scenario: Scenario): Promise<NixosWorld> {
  const world = new NixosWorld(scenario.loader);
  world.add("new", scenario.next ?? {});
  await world.give(statement(scenario), ...(scenario.before ?? []));
  world.order(scenario.step, statement(scenario), { seq: 50 });
  return world;
}

/** How it is after all, also when the power fails right then. */
function look(world: NixosWorld): readonly unknown[] {
  world.onEffect = () => undefined;
  expect(world.once, "a boot that nobody waits for").to.equal(undefined);
  world.powerCut();
  const { current, booted, boots, profile } = world.state;
  const systems = new Set([current, booted, boots, profile]);
  expect(systems.size, `between systems: ${JSON.stringify(world.state)}`).to.equal(1);
  return [world.report()?.state, current];
}

describe("the updater of NixOS systems, cut off", () => {
  for (const scenario of scenarios)
    for (const how of ["killed", "without power"])
      it(`${scenario.what}, ${how} before each thing that it does, ends as it would have ended`, async () => {
        const effects = await cut(await ready(scenario), [], () => false);
        expect(effects).to.be.greaterThan(20);
        for (let at = 1; at <= effects; at++) {
          const world = await ready(scenario);
          await cut(world, [at], () => how === "without power");
          const may = how === "killed" || !scenario.orEnds ? [scenario.ends] : [scenario.ends, scenario.orEnds];
          expect(may, `cut off before effect ${at} of ${effects}`).to.deep.include(look(world));
        }
      });

  it("again and again, is wholly on one system and says what came of it", async () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const scenario = scenarios[Math.floor(random() * scenarios.length)]!;
      const world = await ready(scenario);
      const at = Array.from({ length: 6 }, () => 1 + Math.floor(random() * 200));
      await cut(world, at, () => random() < 0.5);
      const [state, system] = look(world);
      const message = `seed ${seed}: ${scenario.what}, cut off before ${at.join(", ")}`;
      // Boots use the time up: then it is back, and says so.
      expect([scenario.ends, scenario.orEnds, ["failed", "old"]], message).to.deep.include([state, system]);
    }
  });
});
