import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import { casesOf } from "#support/cases/read.ts";
import { cut, cutEach, endings } from "#support/cut-off.ts";
import { NixosWorld, nixosStatement, type FakeSystem, type Loader } from "#support/nixos-world.ts";
import { tries } from "#support/hostile.ts";
import { seededRandom } from "#support/random.ts";
import { seedsOfSlice } from "#support/slice.ts";

interface Scenario {
  readonly what: string;
  readonly steps: readonly OrderStep[];
  readonly loader?: Loader;
  /** The activation of another update, which has brought the system “first” before. */
  readonly first?: object;
  /** The system of the update. */
  readonly brings?: string;
  /** The machine is booted before the step that is cut off. */
  readonly boots?: boolean;
  readonly next?: FakeSystem;
  readonly activation?: object;
  readonly gate?: "fails";
  /** The end without a crash: the state, and the system after one more boot. */
  readonly ends: readonly [state: string, system: string];
  /** The system before that boot, if it differs and no power cut came. */
  readonly runs?: string;
  /** Another end after a power cut: a system on trial is left, and a unit that failed in one boot may start in the next. */
  readonly orEnds?: readonly [state: string, system: string];
}

const { nixos } = casesOf<{ readonly nixos: Readonly<Record<string, Omit<Scenario, "what">>> }>("updater-cut-off.yaml");
const scenarios: readonly Scenario[] = Object.entries(nixos).map(([what, given]) => ({ what, ...given }));
const kernel = { kernel: "6.6.8" };
const gates = [{ name: "page", nodeCommand: "look", withinSeconds: 2 }];
const timeouts = { activateSeconds: 120, rebootSeconds: 120 };
const statement = ({ brings = "new", gate, activation = {} }: Scenario) =>
  nixosStatement(brings, { timeouts, activation, ...(gate && { healthGates: gates }) });

async function ready(scenario: Scenario): Promise<NixosWorld> {
  const world = new NixosWorld(scenario.loader);
  world.add("new", scenario.next ?? {});
  world.add("first", kernel);
  const { first: activation } = scenario;
  const first = { ...nixosStatement("first", { timeouts, activation }), name: "u0", signedAt: "2025-01-01T00:00:00Z" };
  if (activation) await world.give(first, "prepare", "activate");
  await world.give(statement(scenario), ...scenario.steps.slice(0, -1));
  if (scenario.boots) world.powerCut();
  world.order(scenario.steps.at(-1)!, statement(scenario), { seq: 50 });
  return world;
}

/** The final state, also after an immediate power cut. */
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
  // Hundreds of lives in one test take seconds, and more on a busy machine.
  for (const scenario of scenarios)
    for (const how of endings)
      it(`${scenario.what}, ${how} before what it does, ends as it would have ended`, async () => {
        const { ends, runs = ends[1] } = scenario;
        const may = how === "killed" || !scenario.orEnds ? [ends] : [ends, scenario.orEnds];
        for await (const { world, at } of cutEach(() => ready(scenario), how)) {
          if (how === "killed") expect(world.state.current, at).to.equal(runs);
          expect(may, at).to.deep.include(look(world));
        }
      });

  it("is back in its time when the disk takes nothing any more while the machine boots, by another boot", async () => {
    const world = await ready({
      what: "",
      steps: ["prepare", "activate"],
      next: { ...kernel, reaches: false },
      activation: { mode: "switch" },
      ends: ["", ""],
    });
    world.onEffect = (effect) => {
      if (effect === "readLink /run/booted-system") world.full = /\/updates\//;
    };
    for (let starts = 0; starts < 15; starts++) {
      await world.run().catch((error: unknown) => expect(String(error)).to.match(/ENOSPC|goes down/));
      world.pass(10_000);
    }
    expect(world.state).to.deep.equal({ current: "old", booted: "old", boots: "old", profile: "old" });
    [world.full, world.onEffect] = [undefined, () => undefined];
    await world.live();
    expect(look(world)).to.deep.equal(["failed", "old"]);
  });

  it("again and again, is wholly on one system and says what came of it", async () => {
    for (const seed of seedsOfSlice(tries(15, 1_000))) {
      const random = seededRandom(seed);
      const scenario = scenarios[Math.floor(random() * scenarios.length)]!;
      const world = await ready(scenario);
      const at = Array.from({ length: 6 }, () => 1 + Math.floor(random() * 200));
      await cut(world, at, () => random() < 0.5);
      const [state, system] = look(world);
      const message = `seed ${seed}: ${scenario.what}, cut off before ${at.join(", ")}`;
      // The boots used the time up: the node went back, and reports it.
      const before = scenario.first && scenario.ends[1] === "first" ? "first" : "old";
      expect([scenario.ends, scenario.orEnds, ["failed", before]], message).to.deep.include([state, system]);
    }
  });
});
