import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import { casesOf } from "#support/cases/read.ts";
import { cut, cutEach, endings } from "#support/cut-off.ts";
import { tries } from "#support/hostile.ts";
import { NixosWorld, nixosStatement, type FakeSystem, type Loader } from "#support/nixos-world.ts";
import { seededRandom } from "#support/random.ts";
import { seedsOfSlice } from "#support/slice.ts";
import { type Behaviour, pathOf, ProcessEnds, profile, statementOf, UpdateWorld } from "#support/update-world.ts";

type End = readonly [state: string, ...versions: readonly string[]];

interface Scenario {
  readonly steps: readonly OrderStep[];
  readonly gate?: "fails";
  /** The end without a crash: the state and the node's version after one more boot; of a runtime also the updater's version. */
  readonly ends: End;
  /** The version before that boot, if it differs and no power cut came. */
  readonly runs?: string;
  /** Another end after a power cut: a system on trial is left, and a unit that failed in one boot may start in the next. */
  readonly orEnds?: End;
}

interface OfRuntime extends Scenario {
  /** Another update has put version 0.1.5 on trial before. */
  readonly isTried?: boolean;
  readonly behaviour?: Behaviour;
}

interface OfSystem extends Scenario {
  readonly loader?: Loader;
  /** The activation of another update, which has brought the system “first” before. */
  readonly first?: object;
  /** The system of the update. */
  readonly brings?: string;
  /** The machine is booted before the step that is cut off. */
  readonly boots?: boolean;
  readonly next?: FakeSystem;
  readonly activation?: object;
}

interface Kind<World extends UpdateWorld, Given extends Scenario> {
  readonly scenarios: Readonly<Record<string, Given>>;
  /** A node with the last step's order in its inbox. */
  readonly ready: (scenario: Given) => Promise<World>;
  /** The version that the node runs. */
  readonly runs: (world: World) => string;
  /** The final state after a power cut. */
  readonly look: (world: World) => unknown;
  /** The version before the update. */
  readonly before: (scenario: Given) => readonly string[];
}

const cases = casesOf<{
  readonly runtime: Readonly<Record<string, OfRuntime>>;
  readonly nixos: Readonly<Record<string, OfSystem>>;
}>("updater-cut-off.yaml");
const [old, tried, young] = ["0.1.0", "0.1.5", "0.2.0"];
const specOf = (seconds: number, { gate }: Pick<Scenario, "gate">) => ({
  timeouts: { activateSeconds: seconds, rebootSeconds: seconds },
  ...(gate && { healthGates: [{ name: "page", nodeCommand: "look", withinSeconds: 2 }] }),
});
const before = { name: "u0", signedAt: "2025-01-01T00:00:00.000Z" };
const kernel = { kernel: "6.6.8" };

const runtime: Kind<UpdateWorld, OfRuntime> = {
  scenarios: cases.runtime,
  async ready(scenario) {
    const world = new UpdateWorld(old);
    const trial = statementOf(tried, { ...specOf(60, {}), activation: { mode: "test" } }, before);
    if (scenario.isTried) await world.give(trial, "prepare", "activate");
    const statement = statementOf(young, specOf(60, scenario));
    await world.give(statement, ...scenario.steps.slice(0, -1));
    if (scenario.behaviour) world.behaviours.set(young, scenario.behaviour);
    world.order(scenario.steps.at(-1)!, statement, { seq: 50 });
    return world;
  },
  runs: ({ units }) => [...new Set([...units.values()].map(({ program }) => program.slice(pathOf("").length)))].join(),
  look: (world) => {
    expect([...world.store.values()], "damaged files in the store").not.to.include("damaged");
    return [world.version(), world.at(`${profile}-updater`)?.slice(pathOf("").length)];
  },
  before: () => [old, old],
};

const nixos: Kind<NixosWorld, OfSystem> = {
  scenarios: cases.nixos,
  async ready({ loader, next = {}, first: firstly, brings = "new", activation = {}, boots, ...scenario }) {
    const world = new NixosWorld(loader);
    world.add("new", next);
    world.add("first", kernel);
    const first = { ...nixosStatement("first", { ...specOf(120, {}), activation: firstly }), ...before };
    if (firstly) await world.give(first, "prepare", "activate");
    const statement = nixosStatement(brings, { ...specOf(120, scenario), activation });
    await world.give(statement, ...scenario.steps.slice(0, -1));
    if (boots) world.powerCut();
    world.order(scenario.steps.at(-1)!, statement, { seq: 50 });
    return world;
  },
  runs: ({ state }) => state.current,
  look: ({ state }) => {
    const { current, booted, boots, profile: set } = state;
    expect(new Set([current, booted, boots, set]).size, `between systems: ${JSON.stringify(state)}`).to.equal(1);
    return [current];
  },
  before: ({ first, ends }) => [first && ends[1] === "first" ? "first" : "old"],
};

/** The final state, also after an immediate power cut. */
function endOf<World extends UpdateWorld>({ look }: Pick<Kind<World, never>, "look">, world: World): unknown {
  world.onEffect = () => undefined;
  if (world instanceof NixosWorld) expect(world.once, "a boot that nobody waits for").to.equal(undefined);
  world.powerCut();
  return [world.report()?.state, ...(look(world) as readonly unknown[])];
}

function describeCuts<World extends UpdateWorld, Given extends Scenario>(what: string, kind: Kind<World, Given>): void {
  describe(what, () => {
    const scenarios = Object.entries(kind.scenarios);
    // Hundreds of lives in one test take seconds, and more on a busy machine.
    for (const [name, scenario] of scenarios)
      for (const how of endings)
        it(`${name}, ${how} before what it does, ends as it would have ended`, async () => {
          const { ends, orEnds, runs = ends[1] } = scenario;
          const may = how === "killed" || !orEnds ? [ends] : [ends, orEnds];
          for await (const { world, at } of cutEach(() => kind.ready(scenario), how)) {
            if (how === "killed") expect(kind.runs(world), at).to.equal(runs);
            expect(may, at).to.deep.include(endOf(kind, world));
          }
        });

    it("again and again, is wholly on one version and says what came of it", async () => {
      for (const seed of seedsOfSlice(tries(15, 1_000))) {
        const random = seededRandom(seed);
        const [name, scenario] = scenarios[Math.floor(random() * scenarios.length)]!;
        const world = await kind.ready(scenario);
        const at = Array.from({ length: 6 }, () => 1 + Math.floor(random() * 150));
        await cut(world, at, () => random() < 0.5);
        // The boots may have used the time up: then the node went back, and reports it.
        const may = [scenario.ends, scenario.orEnds, ["failed", ...kind.before(scenario)]];
        expect(may, `seed ${seed}: ${name}, cut off before ${at.join(", ")}`).to.deep.include(endOf(kind, world));
      }
    });
  });
}

describeCuts("the updater, cut off", runtime);
describeCuts("the updater of NixOS systems, cut off", nixos);

describe("the updater, when its disk or the power fails again and again", () => {
  const activating = { steps: ["prepare", "activate"], ends: [""] } as const;
  const silent = { ...activating, behaviour: { reaches: false } };

  it("goes forward alone from the moment at which an activation has held, whatever fails", async () => {
    const world = await runtime.ready(activating);
    world.onEffect = (what) => {
      if (!what.startsWith(`nix-env -p ${profile}-updater`)) return;
      world.onEffect = () => undefined;
      world.behaviours.set(young, { reaches: false });
      throw new ProcessEnds("killed");
    };
    await world.live(() => world.powerCut());
    expect(endOf(runtime, world)).to.deep.equal(["activated", young, young]);
  });

  it("has no time without an end", async () => {
    const world = await runtime.ready(silent);
    world.onEffect = (what) => {
      if (what === "sleep" && world.journal().doing?.stage === "begun") throw new ProcessEnds("without power");
    };
    await world.live(() => world.powerCut());
    expect(endOf(runtime, world)).to.deep.equal(["failed", old, old]);
  });

  /** Starts the updater again and again on a disk that takes nothing from this effect on. */
  const startOften = async (world: UpdateWorld, from: string, hasBoot = false): Promise<void> => {
    world.onEffect = (effect) => {
      if (effect.startsWith(from)) world.full = /\/updates\//;
    };
    for (let starts = 0; starts < 15; starts++) {
      await world.run().catch((error: unknown) => expect(String(error)).to.match(/ENOSPC|goes down/));
      world.pass(10_000);
      if (hasBoot && starts === 0) world.powerCut();
    }
  };
  const recover = async (world: UpdateWorld): Promise<void> => {
    [world.full, world.onEffect] = [undefined, () => undefined];
    await world.live();
  };

  for (const hasBoot of [false, true])
    it(`is back in its time on a full disk${hasBoot ? ", behind a power cut" : ""}, and says so when there is room`, async () => {
      const world = await runtime.ready(silent);
      await startOften(world, "systemctl restart", hasBoot);
      expect(runtime.runs(world)).to.equal(old);
      await recover(world);
      expect(endOf(runtime, world)).to.deep.equal(["failed", old, old]);
    });

  it("is back in its time on a full disk while the machine boots, by another boot", async () => {
    const world = await nixos.ready({ ...activating, next: { ...kernel, reaches: false }, activation: { mode: "switch" } });
    await startOften(world, "readLink /run/booted-system");
    expect(world.state).to.deep.equal({ current: "old", booted: "old", boots: "old", profile: "old" });
    await recover(world);
    expect(endOf(nixos, world)).to.deep.equal(["failed", "old"]);
  });
});
