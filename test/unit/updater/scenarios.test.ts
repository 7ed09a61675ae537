import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import type { UpdateStatement } from "#rollout/spec.ts";
import { casesOf } from "#support/cases/read.ts";
import { NixosWorld, nixosStatement, revOf, systemPath } from "#support/nixos-world.ts";
import { onceAt, runtimePath, profile, restarts, statementOf, UpdateWorld } from "#support/update-world.ts";

type Step = string | Readonly<Record<string, Readonly<Record<string, unknown>>>>;
type Groups = Readonly<Record<string, Readonly<Record<string, readonly Step[]>>>>;

const { words, ...kinds } = casesOf<
  { readonly words: Readonly<Record<string, object>> } & Readonly<Record<"runtime" | "over SSH" | "nixos", Groups>>
>("updater-scenarios.yaml");
const quick = { timeouts: { activateSeconds: 60, prepareSeconds: 60, rebootSeconds: 60 } };
const [silent, dead] = [{ reaches: false }, { runs: false }];

const worlds: Readonly<Record<keyof typeof kinds, () => UpdateWorld>> = {
  runtime: () => new UpdateWorld("0.1.0"),
  "over SSH"() {
    const world = new UpdateWorld("0.1.0");
    world.fetch("0.2.0");
    world.behaviours.set("0.2.0", silent);
    world.contact = "bastion";
    return world;
  },
  nixos() {
    const world = new NixosWorld();
    world.add("new", { kernel: "6.6.8" });
    world.add("other", {});
    return world;
  },
};

function statementFor(world: UpdateWorld, update: string, version: string, given: readonly string[]): UpdateStatement {
  const month = given.includes("later") ? 2 : given.includes("early") ? 1 : Number(update.slice(1));
  const fields = { name: update, signedAt: `2026-0${month}-01T00:00:00.000Z` };
  const spec = Object.assign({}, quick, ...given.map((word) => words[word])) as object;
  return world instanceof NixosWorld
    ? { ...nixosStatement(version, spec), ...fields }
    : statementOf(version, spec, fields);
}

/** The orders of a text, each with the next seq unless the text has one. */
function ordersOf(world: UpdateWorld, text: string): readonly (() => void)[] {
  const [, update = "", version = "", given = "", steps = "", fence = ""] =
    /^(u\d) (\S+)(?: \(([^)]*)\))? ([a-z_ ]+?)(?: by (.*))?$/.exec(text) ?? expect.fail(`no order: ${text}`);
  const statement = statementFor(world, update, version, given.split(" "));
  const fields = fence.split(" ").flatMap((word): [string, string | number][] => {
    const [, key, value = ""] = /^(\w+)=(.*)$/.exec(word) ?? [];
    return key === undefined ? [] : [[key, /^\d+$/.test(value) ? Number(value) : value]];
  });
  const signature = fence.endsWith("forged") ? { signature: "Zm9yZ2Vk" } : {};
  return steps.split(" ").map((step) => () => {
    const seq = (world.report()?.fence.seq ?? 0) + 1;
    world.order(step as OrderStep, statement, { seq, ...Object.fromEntries(fields) }, signature);
  });
}

async function happens(world: UpdateWorld, action: string): Promise<void> {
  const [, start, order = ""] = /^at (.+?): (.*)$/.exec(action) ?? [];
  if (start !== undefined) return onceAt(world, start, () => ordersOf(world, order)[0]?.());
  const [, hold] = /^when it waits: (.*)$/.exec(action) ?? [];
  if (hold !== undefined) {
    world.onEffect = () => {
      if (world.report()?.waitsFor !== "bastion") return;
      world.onEffect = () => undefined;
      ordersOf(world, hold)[0]?.();
    };
    return;
  }
  const [first = "", verb = "", how = ""] = action.split(" ");
  if (action === "power cut") world.powerCut();
  else if (action === "lose journal") world.files.delete("/var/lib/kcore/updates/journal.json");
  else if (first === "collect") world.store.delete(world instanceof NixosWorld ? systemPath(verb) : runtimePath(verb));
  else if (verb === "is" && world instanceof NixosWorld)
    world.add(first, how === "silent" ? silent : how === "stubborn" ? { exits: { switch: 2 } } : {});
  else if (verb === "is") world.behaviours.set(first, how === "silent" ? silent : how === "dead" ? dead : {});
  else
    for (const give of ordersOf(world, action)) {
      give();
      await world.live();
    }
}

const versionAt = (world: UpdateWorld, name: string): unknown => world.at(name)?.slice(runtimePath("").length);
const named = (id: string | undefined): string => {
  if (id === undefined) return "-";
  const rev = /rev=(\w+)$/.exec(id)?.[1];
  return ["old", "new", "other"].find((name) => systemPath(name) === id || revOf(name) === rev) ?? id;
};
const systemsOf = (world: UpdateWorld): Readonly<Record<string, string>> => (world as NixosWorld).state;

/** The keys of an expected state, each with its value on the node. */
const readings: Readonly<Record<string, (world: UpdateWorld) => unknown>> = {
  state: (world) => world.report()?.state,
  kind: (world) => world.report()?.failure?.kind,
  stuck: (world) => world.report()?.failure?.stuck,
  update: (world) => world.report()?.fence.name,
  owner: (world) => world.report()?.fence.owner,
  epoch: (world) => world.report()?.fence.epoch,
  target: (world) => world.report()?.targetGeneration,
  generation: (world) => world.report()?.present.generation,
  lasting: (world) => world.report()?.lasting?.version,
  previous: (world) => world.report()?.previous?.version,
  version: (world) => world.version(),
  runs: ({ units }) =>
    [...new Set([...units.values()].map(({ program }) => program.slice(runtimePath("").length)))].join(),
  lasts: (world) => versionAt(world, profile),
  updater: (world) => versionAt(world, `${profile}-updater`),
  restarts: (world) => restarts(world).length,
  said: ({ reports }) => reports.map(({ state, waitsFor }) => waitsFor ?? state).join(" "),
  boots: ({ boots }) => boots - 1,
  current: (world) => systemsOf(world)["current"],
  systems: (world) => ["current", "booted", "boots", "profile"].map((name) => systemsOf(world)[name]).join(" "),
  ids: (world) =>
    versionsOf(world)
      .map((one) => named(one?.id))
      .join(" "),
  generations: (world) =>
    versionsOf(world)
      .map((one) => one?.generation ?? "-")
      .join(" "),
};

function versionsOf(world: UpdateWorld) {
  const { present, lasting, previous } = world.report() ?? {};
  return [present, lasting, previous];
}

for (const [kind, groups] of Object.entries(kinds))
  for (const [group, scenarios] of Object.entries(groups))
    describe(`the updater, ${kind}: ${group}`, () => {
      for (const [name, steps] of Object.entries(scenarios))
        it(name, async () => {
          const world = worlds[kind as keyof typeof kinds]();
          for (const step of steps)
            for (const [actions, expected] of Object.entries(typeof step === "string" ? { [step]: {} } : step)) {
              for (const action of actions.split("; ")) await happens(world, action);
              for (const [what, value] of Object.entries(expected))
                if (what === "says")
                  expect(world.report()?.failure?.message, actions).to.match(new RegExp(String(value)));
                else expect(readings[what]?.(world), `${actions}: ${what}`).to.equal(value ?? undefined);
            }
        });
    });
