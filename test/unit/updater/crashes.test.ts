import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import { casesOf } from "#support/cases/read.ts";
import { cut, cutEach, endings } from "#support/cut-off.ts";
import { tries } from "#support/hostile.ts";
import { seededRandom } from "#support/random.ts";
import { seedsOfSlice } from "#support/slice.ts";
import { type Behaviour, pathOf, ProcessEnds, profile, statementOf, UpdateWorld } from "#support/update-world.ts";

const [old, tried, young] = ["0.1.0", "0.1.5", "0.2.0"];

interface Scenario {
  readonly what: string;
  readonly steps: readonly OrderStep[];
  /** Another update has put version 0.1.5 on trial before. */
  readonly isTried?: boolean;
  readonly behaviour?: Behaviour;
  readonly gate?: "fails";
  /** The end without a crash: the state, the node's version, the updater's version. */
  readonly ends: readonly [state: string, version: string, updater: string];
  /** The version before the next boot, if it differs and no power cut came. */
  readonly runs?: string;
}

const { runtime } = casesOf<{ readonly runtime: Readonly<Record<string, Omit<Scenario, "what">>> }>(
  "updater-cut-off.yaml",
);
const scenarios: readonly Scenario[] = Object.entries(runtime).map(([what, given]) => ({ what, ...given }));
const gates = [{ name: "page", nodeCommand: "look", withinSeconds: 2 }];
const timeouts = { activateSeconds: 60, rebootSeconds: 60 };
const statement = ({ gate }: Scenario) => statementOf(young, { timeouts, ...(gate && { healthGates: gates }) });
const trial = statementOf(
  tried,
  { timeouts, activation: { mode: "test" } },
  { name: "u0", signedAt: "2025-01-01T00:00:00.000Z" },
);

async function ready(scenario: Scenario): Promise<UpdateWorld> {
  const world = new UpdateWorld(old);
  if (scenario.isTried) await world.give(trial, "prepare", "activate");
  await world.give(statement(scenario), ...scenario.steps.slice(0, -1));
  if (scenario.behaviour) world.behaviours.set(young, scenario.behaviour);
  world.order(scenario.steps.at(-1)!, statement(scenario), { seq: 50 });
  return world;
}

/** The final state, also after an immediate power cut. */
function look(world: UpdateWorld): readonly unknown[] {
  world.onEffect = () => undefined;
  world.powerCut();
  expect([...world.store.values()], "damaged files in the store").not.to.include("damaged");
  return [world.report()?.state, world.version(), world.at(`${profile}-updater`)?.slice(pathOf("").length)];
}

describe("the updater, cut off", () => {
  // Hundreds of lives in one test take seconds, and more on a busy machine.
  for (const scenario of scenarios) {
    for (const how of endings)
      it(`${scenario.what}, ${how} before what it does, ends as it would have ended`, async () => {
        const { ends, runs = ends[1] } = scenario;
        for await (const { world, at } of cutEach(() => ready(scenario), how)) {
          const programs = [...world.units.values()].map(({ program }) => program);
          if (how === "killed") expect(new Set(programs), at).to.deep.equal(new Set([pathOf(runs)]));
          expect(look(world), at).to.deep.equal(ends);
        }
      });
  }

  it("when an activation has held, goes forward alone, whatever fails from then on", async () => {
    const world = await ready({ what: "", steps: ["prepare", "activate"], ends: ["", "", ""] });
    world.onEffect = (what) => {
      if (!what.startsWith(`nix-env -p ${profile}-updater`)) return;
      world.onEffect = () => undefined;
      world.behaviours.set(young, { reaches: false });
      throw new ProcessEnds("killed");
    };
    await world.live(() => world.powerCut());
    expect(look(world)).to.deep.equal(["activated", young, young]);
  });

  it("has no time without an end where the power fails again and again", async () => {
    const reaches = { what: "", steps: ["prepare", "activate"], behaviour: { reaches: false } } as const;
    const world = await ready({ ...reaches, ends: ["", "", ""] });
    world.onEffect = (what) => {
      if (what === "sleep" && world.journal().doing?.stage === "begun") throw new ProcessEnds("without power");
    };
    await world.live(() => world.powerCut());
    expect(look(world)).to.deep.equal(["failed", old, old]);
  });

  for (const hasBoot of [false, true])
    it(`is back in its time when the disk takes nothing any more${hasBoot ? ", behind a power cut" : ""}, and says so when it does again`, async () => {
      const reaches = { what: "", steps: ["prepare", "activate"], behaviour: { reaches: false } } as const;
      const world = await ready({ ...reaches, ends: ["", "", ""] });
      world.onEffect = (effect) => {
        if (effect.startsWith("systemctl restart")) world.full = /\/updates\//;
      };
      const start = async (): Promise<void> => {
        await world.run().catch((error: unknown) => expect(String(error)).to.match(/ENOSPC/));
        world.pass(10_000);
      };
      await start();
      if (hasBoot) world.powerCut();
      for (let starts = 0; starts < 10; starts++) await start();
      expect([...world.units.values()].map(({ program }) => program)).to.deep.equal([pathOf(old), pathOf(old)]);
      [world.full, world.onEffect] = [undefined, () => undefined];
      await world.live();
      expect(look(world)).to.deep.equal(["failed", old, old]);
    });

  it("again and again, is wholly on one version and says on which", async () => {
    for (const seed of seedsOfSlice(tries(15, 1_000))) {
      const random = seededRandom(seed);
      const scenario = scenarios[Math.floor(random() * scenarios.length)]!;
      const world = await ready(scenario);
      const at = Array.from({ length: 6 }, () => 1 + Math.floor(random() * 150));
      await cut(world, at, () => random() < 0.5);
      const [state, version, updater] = look(world);
      // The boots used the time up: the node went back, and reports it.
      const isBack = scenario.ends[0] === "activated" && state === "failed";
      const ends = isBack ? ["failed", old, old] : scenario.ends;
      expect([state, version, updater], `seed ${seed}: ${scenario.what}`).to.deep.equal(ends);
    }
  });
});
