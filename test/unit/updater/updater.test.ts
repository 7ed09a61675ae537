import { expect } from "chai";
import type { OrderStep } from "#rollout/order.ts";
import type { Bundle, Statement } from "#rollout/spec.ts";
import { casesOf } from "#support/cases/read.ts";
import {
  bundleOf,
  pathOf,
  ProcessEnds,
  profile,
  statementOf,
  UpdateWorld,
  type Behaviour,
} from "#support/update-world.ts";

const [old, young] = ["0.1.0", "0.2.0"];
/** The same target in another update. */
const signedLater = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
const quick = { timeouts: { activateSeconds: 40, prepareSeconds: 60, rebootSeconds: 60 } };

const prepared = (): UpdateWorld => new UpdateWorld(old);

async function activated(): Promise<UpdateWorld> {
  const world = prepared();
  await world.give(statementOf(young, quick), "prepare", "activate");
  return world;
}

/** Gives an order, and runs the updater until it rests. */
function carryOut(world: UpdateWorld, ...order: Parameters<UpdateWorld["order"]>): Promise<void> {
  world.order(...order);
  return world.live();
}

interface Failing {
  readonly kind: string;
  readonly says: string;
  readonly spec?: object;
  readonly fails?: Readonly<Record<string, string>>;
  readonly behaves?: Behaviour;
}
const { activation, preparation } = casesOf<{
  /** `until`: commands fail until this one runs; `from`: the command with which the behaviour begins; `holds`: the gate that succeeds. */
  readonly activation: Readonly<Record<string, Failing & { until?: string; holds?: string; from?: string }>>;
  readonly preparation: Readonly<
    Record<
      string,
      Failing & {
        readonly world?: Partial<Pick<UpdateWorld, "free" | "start">>;
        readonly hangs?: string;
        readonly bundle?: "gone" | "other" | "broken";
        readonly version?: string;
        /** Fields of the bundle in the signed statement. */
        readonly signed?: Partial<Bundle> | null;
        /** Whether the imported paths are kept. */
        readonly stays?: boolean;
      }
    >
  >;
}>("updater-failures.yaml");

function fail({ failures }: UpdateWorld, fails: Readonly<Record<string, string>>): void {
  for (const [command, stderr] of Object.entries(fails)) failures.set(command, { code: 1, stdout: "", stderr });
}

const failureOf = (world: UpdateWorld): unknown => [world.report()?.state, world.report()?.failure?.kind];

describe("the updater", () => {
  it("prepares a runtime without anything of it in use, then brings it into use", async () => {
    const world = prepared();
    await world.give(statementOf(young), "fence", "prepare");
    expect(world.said.map(({ state }) => state)).to.deep.equal(["fenced", "preparing", "prepared"]);
    expect(world.report()).to.include({ targetGeneration: 2, needsReboot: false });
    expect(world.version()).to.equal(old);
    await world.give(statementOf(young), "activate");
    expect(world.version()).to.equal(young);
    expect(world.report()).to.deep.include({
      state: "activated",
      present: { id: pathOf(young), version: young, generation: 2 },
      previous: { id: pathOf(old), version: old, generation: 1 },
    });
    expect(world.at(`${profile}-updater`)).to.equal(pathOf(young));
    expect(restarts(world)).to.have.length(1);
  });

  it("counts its reports by its clock, and never back", async () => {
    const world = prepared();
    await world.give(statementOf(young, quick), "prepare");
    world.now -= 3_600_000;
    await world.give(statementOf(young, quick), "activate");
    const counts = world.said.map(({ epoch }) => epoch);
    expect(counts).to.have.length(4);
    expect(counts).to.deep.equal([...new Set(counts)].toSorted((a, b) => a - b));
    expect(counts[0]).to.be.greaterThan(1_000_000_000);
  });

  it("begins anew when its journal is damaged, and counts on", async () => {
    const world = await activated();
    const before = world.report()?.epoch ?? 0;
    world.files.set("/var/lib/kcore/updates/journal.json", '{"format":');
    await carryOut(world, "fence", statementOf(young, quick));
    expect([world.report()?.state, world.version()]).to.deep.equal(["fenced", young]);
    expect(world.report()?.epoch).to.be.greaterThan(before);
    expect(world.files.get("/var/lib/kcore/updates/journal.json.damaged")).to.equal('{"format":');
  });

  describe("goes back from an update", () => {
    const later = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
    const back = async (world: UpdateWorld, statement: Statement): Promise<unknown> => {
      await world.give(statement, "roll_back");
      const { state, failure } = world.report() ?? {};
      return [world.version(), failure ? `${state} ${failure.kind}` : state];
    };

    it("that others came after, and did nothing here", async () => {
      const world = prepared();
      await world.give(statementOf(young, quick), "prepare", "activate");
      const other = statementOf("0.3.0", quick, later);
      await world.give(other, "fence", "prepare");
      expect(world.report()?.previous).to.equal(undefined);
      world.behaviours.set("0.3.0", { reaches: false });
      await world.give(other, "activate");
      expect([failureOf(world), world.version()]).to.deep.equal([["failed", "unreachable"], young]);
      await world.give(statementOf(young, quick), "fence");
      expect(world.report()?.previous?.version).to.equal(old);
      expect(await back(world, statementOf(young, quick))).to.deep.equal([old, "rolled_back"]);
      expect(world.report()?.previous).to.equal(undefined);
    });

    it("not when another one has held since, whose way back stays", async () => {
      const world = prepared();
      const other = statementOf("0.3.0", quick, later);
      await world.give(statementOf(young, quick), "prepare", "activate");
      await world.give(other, "prepare", "activate");
      expect(await back(world, statementOf(young, quick))).to.deep.equal(["0.3.0", "failed rollback"]);
      expect(world.report()?.failure?.message).to.match(/runs 0.3.0, which came after this update/);
      expect(await back(world, other)).to.deep.equal([young, "rolled_back"]);
    });

    it("that was half done in the generation before", async () => {
      const world = await activated();
      const again = statementOf(young, quick, { signedAt: later.signedAt });
      await carryOut(world, "fence", again, { generation: 2, seq: 20 });
      expect([world.report()?.state, world.report()?.previous?.version]).to.deep.equal(["fenced", old]);
      await carryOut(world, "roll_back", again, { generation: 2, seq: 21 });
      expect([world.report()?.state, world.version()]).to.deep.equal(["rolled_back", old]);
    });

    it("that did not hold, or never came, by staying where it is", async () => {
      const world = prepared();
      await world.give(statementOf(young, quick), "prepare", "activate");
      const other = statementOf("0.3.0", quick, later);
      await world.give(other, "prepare");
      expect(await back(world, other)).to.deep.equal([young, "rolled_back"]);
      const third = statementOf("0.3.0", quick, { name: "u3", signedAt: "2026-03-01T00:00:00.000Z" });
      world.behaviours.set("0.3.0", { runs: false });
      await world.give(third, "prepare", "activate");
      expect(await back(world, third)).to.deep.equal([young, "rolled_back"]);
    });

    it("of another kind than what ran before it: a system is not taken back to a runtime", async () => {
      const world = await activated();
      const flake = { target: { flakeRef: "github:example/fleet", flakeRev: "c".repeat(40) } };
      const system = statementOf(young, flake, { bundle: undefined, signedAt: later.signedAt });
      await carryOut(world, "fence", system, { generation: 2, seq: 20 });
      expect(world.report()?.previous).to.equal(undefined);
    });
  });

  it("does not activate again what has held when a new owner asks for it", async () => {
    const world = await activated();
    world.behaviours.set(young, { reaches: false });
    await carryOut(world, "activate", statementOf(young, quick), { epoch: 2, owner: "c2" });
    expect([world.report()?.state, world.report()?.fence.epoch]).to.deep.equal(["activated", 2]);
    await carryOut(world, "roll_back", statementOf(young, quick), { epoch: 2, owner: "c2", seq: 2 });
    expect([world.report()?.state, world.version()]).to.deep.equal(["rolled_back", old]);
  });

  it("carries out nothing that was signed for other nodes alone", async () => {
    for (const [selector, state] of [
      [{ nodeIds: ["n2"] }, "failed"],
      [{ allNodes: true, datacenters: ["DC2"] }, "failed"],
      [{ nodeIds: ["n1"], datacenters: ["DC1", "DC2"] }, "prepared"],
      [{ nodeIds: ["id-1"] }, "prepared"],
    ] as const) {
      const world = prepared();
      await world.give(statementOf(young, { ...quick, selector }), "prepare");
      expect(world.report()?.state, JSON.stringify(selector)).to.equal(state);
    }
  });

  it("does not go back by what was signed before what it runs, though that allows a downgrade", async () => {
    const world = prepared();
    const signed = (month: string) => ({ name: `u${month}`, signedAt: `2026-${month}-01T00:00:00Z` });
    const back = { target: { version: old, allowDowngrade: true } };
    await world.give(statementOf(young, quick, signed("02")), "prepare", "activate");
    for (const step of ["prepare", "activate"] as const) {
      await world.give(statementOf(old, back, signed("01")), step);
      expect(failureOf(world)).to.deep.equal(["failed", "refused"]);
    }
    expect(world.version()).to.equal(young);
    await world.give(statementOf(old, back, signed("03")), "prepare", "activate");
    expect([world.report()?.state, world.version()]).to.deep.equal(["activated", old]);
  });

  it("says which generation it will be, also when that is there from an attempt that was taken back", async () => {
    const world = prepared();
    world.behaviours.set(young, { reaches: false });
    await world.give(statementOf(young, quick), "prepare", "activate");
    world.behaviours.clear();
    const again = statementOf(young, quick, signedLater);
    await world.give(again, "prepare");
    expect(world.report()?.targetGeneration).to.equal(2);
    await world.give(again, "activate");
    expect(world.report()?.present.generation).to.equal(2);
  });

  describe("what fails is told apart, and the node is wholly back", () => {
    for (const [what, { kind, says, spec = {}, fails = {}, until, holds, from = "", behaves }] of Object.entries(
      activation,
    ))
      it(what, async () => {
        const world = prepared();
        const statement = statementOf(young, { ...quick, ...spec });
        await world.give(statement, "prepare");
        fail(world, fails);
        if (holds !== undefined) world.gates.set(holds, true);
        world.onEffect = (effect) => {
          if (behaves && effect.startsWith(from)) world.behaviours.set(young, behaves);
          if (until !== undefined && effect.startsWith(until)) world.failures.clear();
        };
        await world.give(statement, "activate");
        world.onEffect = () => undefined;
        expect(failureOf(world)).to.deep.equal(["failed", kind]);
        expect(world.report()?.failure?.message).to.match(new RegExp(says));
        expect([world.version(), world.at(`${profile}-updater`)]).to.deep.equal([old, pathOf(old)]);
        // A later order is not blocked.
        world.failures.clear();
        world.behaviours.clear();
        await world.give(statementOf(young, { ...quick, healthGates: [] }, signedLater), "prepare", "activate");
        expect([world.report()?.state, world.version()]).to.deep.equal(["activated", young]);
      });
  });

  describe("the command of a gate", () => {
    const gateOf = (withinSeconds: number) => ({
      ...quick,
      healthGates: [{ name: "disks", nodeCommand: "look", withinSeconds }],
    });
    const limitOf = (words: string | undefined): number => Number(/RuntimeMaxSec=(\d+)/.exec(words ?? "")?.[1]);
    const asked = ({ commands }: UpdateWorld): string | undefined =>
      commands.find((words) => words.startsWith("systemd-run --unit=kcore-update-gate.service "));

    it("is run outside of the updater's unit, for as long as the gate has, and never longer than is left of the whole", async () => {
      for (const [seconds, least, most] of [
        [0, 8, 10],
        [20, 18, 20],
        [900, 15, 39],
      ] as const) {
        const world = prepared();
        world.gates.set("look", true);
        await world.give(statementOf(young, gateOf(seconds)), "prepare", "activate");
        expect(world.report()?.state).to.equal("activated");
        expect(asked(world)).to.match(/ -- sh -c look$/);
        expect(limitOf(asked(world)), `withinSeconds: ${seconds}`).to.be.within(least, most);
      }
    });

    for (const nodeCommand of ['x=1; test "${x}" = 1', "test $$ -gt 1", "test $((2 - 1)) = 1 && echo $HOME", "$LOOK"])
      it(`reaches the shell as it was written: ${nodeCommand}`, async () => {
        const world = prepared();
        world.gates.set(nodeCommand, true);
        const spec = { ...quick, healthGates: [{ name: "disks", nodeCommand, withinSeconds: 1 }] };
        await world.give(statementOf(young, spec), "prepare", "activate");
        expect([world.report()?.failure, world.report()?.state]).to.deep.equal([undefined, "activated"]);
      });

    it("is not left running by an updater that was cut off", async () => {
      const world = prepared();
      world.gates.set("look", true);
      await world.give(statementOf(young, gateOf(20)), "prepare");
      onceAt(world, "systemd-run --unit=kcore-update-gate.service", () => {
        world.outside.add("kcore-update-gate.service");
        throw new ProcessEnds("killed");
      });
      await world.give(statementOf(young, gateOf(20)), "activate");
      expect([world.report()?.state, [...world.outside]]).to.deep.equal(["activated", []]);
    });
  });

  it("asks again when systemd does not answer for a moment, there and back", async () => {
    for (const reaches of [true, false]) {
      const world = prepared();
      await world.give(statementOf(young, quick), "prepare");
      world.behaviours.set(young, { reaches });
      let asked = 0;
      world.onEffect = (what) => {
        if (what.startsWith("systemctl restart")) asked = 0;
        if (!what.startsWith("systemctl show -p Id")) return;
        world.failures.clear();
        // The first request after a restart.
        if (++asked === 1 && restarts(world).length > 0)
          world.failures.set("systemctl show -p Id", {
            code: 1,
            stdout: "",
            stderr: "Transport endpoint is not connected",
          });
      };
      await world.give(statementOf(young, quick), "activate");
      expect([world.report()?.state, world.report()?.failure?.kind, world.report()?.failure?.stuck]).to.deep.equal(
        reaches ? ["activated", undefined, undefined] : ["failed", "unreachable", undefined],
      );
    }
  });

  it("says so when what ran before does not run either", async () => {
    const world = prepared();
    await world.give(statementOf(young, quick), "prepare");
    for (const version of [old, young]) world.behaviours.set(version, { runs: false });
    await world.give(statementOf(young, quick), "activate");
    expect(failureOf(world)).to.deep.equal(["failed", "service"]);
    expect(world.report()?.failure?.message).to.match(
      /and it could not go back: kcore-node-agent.service does not stay up/,
    );
    expect(world.report()?.failure?.stuck).to.equal(true);
    await world.give(statementOf(young, quick), "roll_back");
    expect(failureOf(world)).to.deep.equal(["failed", "rollback"]);
  });

  describe("refuses to prepare, and touches nothing", () => {
    for (const [what, given] of Object.entries(preparation))
      it(what, async () => {
        const {
          kind,
          says,
          spec = {},
          fails = {},
          hangs,
          behaves,
          bundle,
          version = young,
          signed = {},
          stays,
        } = given;
        const world = Object.assign(prepared(), given.world);
        fail(world, fails);
        if (hangs !== undefined) world.failures.set(hangs, { stdout: "", stderr: "" });
        if (behaves) world.behaviours.set(young, behaves);
        if (bundle === "gone") world.contact = "bastion";
        world.onDownload = (_bundle, file) => {
          if (bundle === "broken") throw new Error("it broke off");
          world.fetch(young);
          const found = world.bundles.get(file)!;
          if (bundle === "other") world.bundles.set(file, { ...found, sha256: "f".repeat(64) });
          return Promise.resolve();
        };
        const fields = { bundle: signed === null ? undefined : bundleOf(version, signed) };
        await world.give(statementOf(version, spec, fields), "prepare");
        expect(failureOf(world)).to.deep.equal(["failed", kind]);
        expect(world.report()?.failure?.message).to.match(new RegExp(says));
        expect([world.version(), restarts(world).length]).to.deep.equal([old, 0]);
        const left = [...world.store.keys()].filter((path) => path !== pathOf(old));
        expect(left).to.deep.equal(stays ? [pathOf(young)] : []);
      });

    it("nor activates an older one that is still in the store, signed as it was", async () => {
      const world = prepared();
      await world.give(statementOf(young, quick), "prepare", "activate");
      await world.give(statementOf("0.3.0", quick, { name: "u2" }), "prepare", "activate");
      await world.give(statementOf(young, quick), "activate");
      expect(failureOf(world)).to.deep.equal(["failed", "refused"]);
      expect(world.version()).to.equal("0.3.0");
    });

  });

  describe("fetches a bundle", () => {
    const file = `/var/lib/kcore/updates/bundles/${bundleOf(young).sha256}`;
    const part = { size: 300, sha256: "", holds: "" };

    it("C16: and asks for room before; of what finds none nothing stays", async () => {
      for (const [here, store, dev, says] of [
        [3_699, 3_699, 1, /^\/nix\/store has \S+ KiB free, and the bundle needs \S+ KiB$/],
        [9_999, 2_999, 2, /^\/nix\/store has /],
        [699, 9_999, 2, /^\/var\/lib\/kcore\/updates has /],
        [700, 3_000, 2, undefined],
      ] as const) {
        const world = prepared();
        world.bundles.set(`${file}.part`, part);
        world.roomAt = (path) => (path === "/nix/store" ? { free: store, dev } : { free: here, dev: 1 });
        await world.give(statementOf(young, quick), "prepare");
        if (says) expect(world.report()?.failure?.message).to.match(says);
        else expect(world.report()?.state).to.equal("prepared");
        expect([...world.bundles.keys()]).to.deep.equal([]);
      }
    });

    it("in the place of others, again and again until it has it", async () => {
      const world = prepared();
      world.bundles.set("/var/lib/kcore/updates/bundles/other", part);
      let tries = 0;
      world.onDownload = () => {
        expect([...world.bundles.keys()]).to.deep.equal([]);
        if (++tries < 3) throw new Error("not yet");
        return Promise.resolve(world.fetch(young));
      };
      await world.give(statementOf(young, quick), "prepare");
      expect([world.report()?.state, tries]).to.deep.equal(["prepared", 3]);
      // The store has the runtime.
      await world.give(statementOf(young, quick), "prepare");
      expect([world.report()?.state, tries]).to.deep.equal(["prepared", 3]);
    });

    it("until another order comes, of another update, too", async () => {
      const world = prepared();
      world.onDownload = (_bundle, _file, signal) => {
        world.order("fence", statementOf("0.3.0", quick, { name: "u2" }));
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      };
      await world.give(statementOf(young, quick), "prepare");
      expect(world.said.map(({ state, fence }) => [state, fence.name])).to.deep.equal([["fenced", "u2"]]);
      expect(world.isWaiting).to.equal(false);
    });

    it("of nothing that the bastion did not sign", async () => {
      const world = prepared();
      world.onDownload = () => expect.fail("it is fetched");
      await carryOut(world, "prepare", statementOf(young), {}, { signature: "Zm9yZ2Vk" });
      expect(failureOf(world)).to.deep.equal(["failed", "refused"]);
    });
  });

  describe("fences", () => {
    it("refuses an older epoch for ever", async () => {
      const world = prepared();
      await carryOut(world, "prepare", statementOf(young), { epoch: 3, owner: "c3" });
      const before = world.report();
      await carryOut(world, "activate", statementOf(young), { epoch: 2, owner: "c2", seq: 9 });
      expect(world.report()).to.deep.equal(before);
      expect([world.version(), restarts(world).length]).to.deep.equal([old, 0]);
    });

    it("goes on with an activation when a new owner comes in the middle, and answers to him from then on", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      await world.give(statement, "prepare");
      onceAt(world, "systemctl restart", () => world.order("fence", statement, { epoch: 2, owner: "c2", seq: 7 }));
      await world.give(statement, "activate");
      expect(world.said.slice(2).map(({ state, fence }) => [state, fence.owner, fence.epoch])).to.deep.equal([
        ["activating", "c1", 1],
        ["activating", "c2", 2],
        ["activated", "c2", 2],
      ]);
      expect([world.version(), restarts(world).length]).to.deep.equal([young, 1]);
    });

    it("keeps an order for when the present step has ended", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      await world.give(statement, "prepare");
      onceAt(world, "systemctl restart", () => world.order("roll_back", statement, { seq: 9 }));
      await world.give(statement, "activate");
      expect(world.said.slice(2).map(({ state }) => state)).to.deep.equal(
        "activating activating activated rolling_back rolled_back".split(" "),
      );
      expect(world.version()).to.equal(old);
    });

    it("says nothing of an activation that fails while the order to go back waits: going back has not failed", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      world.behaviours.set(young, { reaches: false });
      await world.give(statement, "prepare");
      onceAt(world, "systemctl restart", () => world.order("roll_back", statement, { seq: 9 }));
      await world.give(statement, "activate");
      expect(world.said.filter(({ fence }) => fence.seq === 9).map(({ state }) => state)).to.deep.equal([
        "activating",
        "rolling_back",
        "rolled_back",
      ]);
      expect(world.version()).to.equal(old);
    });

    it("does not call it gone back when it runs the target and does not know what came before", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      await world.give(statement, "prepare", "activate");
      // As after the loss of the journal.
      world.files.delete("/var/lib/kcore/updates/journal.json");
      await carryOut(world, "roll_back", statement, { seq: 20 });
      expect(failureOf(world)).to.deep.equal(["failed", "rollback"]);
      expect(world.version()).to.equal(young);
    });

    it("begins nothing anew by a word that failed here, or was taken back: a controller must not have it go to and fro", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      await world.give(statement, "prepare", "activate", "roll_back", "activate");
      expect(failureOf(world)).to.deep.equal(["failed", "refused"]);
      expect(world.version()).to.equal(old);
      await world.give(statementOf(young, quick, signedLater), "prepare", "activate");
      expect([world.report()?.state, world.version()]).to.deep.equal(["activated", young]);
    });

    it("answers an owner whose manifest nobody signed, and only at rest", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      const forge = () => world.order("fence", statement, { epoch: 9, owner: "c9", seq: 1 }, { signature: "Zm9yZ2Vk" });
      await world.give(statement, "prepare");
      onceAt(world, "systemctl restart", forge);
      await world.give(statement, "activate");
      expect(world.said.filter(({ fence }) => fence.owner === "c9")).to.deep.equal([]);
      forge();
      await world.live();
      expect([world.report()?.fence.owner, failureOf(world)]).to.deep.equal(["c9", ["failed", "refused"]]);
      await carryOut(world, "roll_back", statement, { epoch: 10, owner: "c1" });
      expect([world.report()?.state, world.version()]).to.deep.equal(["rolled_back", old]);
    });

    it("has one rollout at a time", async () => {
      const world = prepared();
      const statement = statementOf(young, quick);
      await world.give(statement, "prepare");
      onceAt(world, "systemctl restart", () =>
        world.order("activate", statementOf(old, quick, { name: "u2" }), { seq: 9 }),
      );
      await world.give(statement, "activate");
      expect([world.report()?.fence.name, world.report()?.state]).to.deep.equal(["u1", "activated"]);
    });

    for (const [what, owner] of [
      ["was signed for another owner", { owner: "c2" }],
      ["was signed for an earlier epoch", { epoch: 1 }],
      ["was signed for another update", { name: "u2" }],
      ["the bastion did not sign", { signature: "Zm9yZ2Vk" }],
    ] as const)
      it(`obeys no owner whose word ${what}`, async () => {
        const world = prepared();
        await carryOut(world, "activate", statementOf(young), { epoch: 2 }, { owner });
        expect([world.report(), world.at(profile)], "a report would confirm that owner").to.deep.equal([
          undefined,
          pathOf(old),
        ]);
        // The refused order fences no other owner out.
        await carryOut(world, "fence", statementOf(young));
        expect(world.report()).to.deep.include({ state: "fenced" });
      });

    it("carries out no other update than the one that the order names", async () => {
      const world = prepared();
      await carryOut(world, "activate", statementOf(young), { name: "u9" });
      expect(world.report()?.failure?.message).to.equal("it is of the update “u1”, not of “u9”");
    });

    it("drops what is no order", async () => {
      const world = prepared();
      world.files.set("/var/lib/kcore/updates/inbox.json", "{");
      await world.live();
      expect([world.isWaiting, world.report()]).to.deep.equal([false, undefined]);
    });
  });

  describe("how it comes into use", () => {
    it("on trial: the next boot begins with what ran before", async () => {
      const world = prepared();
      const statement = statementOf(young, { ...quick, activation: { mode: "test" } });
      await world.give(statement, "prepare", "activate");
      expect(world.report()).to.deep.include({ state: "activated", present: { id: pathOf(young), version: young } });
      expect([...world.units.values()].map(({ program }) => program)).to.deep.equal([pathOf(young), pathOf(young)]);
      expect([world.at(profile), world.at(`${profile}-updater`)]).to.deep.equal([pathOf(old), pathOf(old)]);
      world.powerCut();
      await world.give(statement, "fence");
      expect(world.version()).to.equal(old);
    });

    for (const [what, generation, name] of [
      ["the next generation of its update", 2, "u1"],
      ["another update", 1, "u2"],
    ] as const)
      it(`on trial, and is made to last by ${what}, which goes back to what lasted before`, async () => {
        const world = prepared();
        await world.give(statementOf(young, { ...quick, activation: { mode: "test" } }), "prepare", "activate");
        const lasts = statementOf(young, quick, { name, signedAt: signedLater.signedAt });
        const give = async (step: OrderStep, statement = lasts): Promise<void> => {
          await carryOut(world, step, statement, { generation, seq: (world.report()?.fence.seq ?? 0) + 1 });
        };
        await give("fence");
        expect(world.report()?.present.generation).to.equal(undefined);
        await give("prepare");
        await give("activate");
        expect(world.report()?.present.generation).to.equal(2);
        world.powerCut();
        expect([world.version(), world.at(`${profile}-updater`)]).to.deep.equal([young, pathOf(young)]);
        await give("roll_back");
        expect([world.report()?.state, world.version()]).to.deep.equal(["rolled_back", old]);
      });

    it("on trial, and back to what lasted when it could not be made to last", async () => {
      const world = prepared();
      await world.give(statementOf(young, { ...quick, activation: { mode: "test" } }), "prepare", "activate");
      const gates = [{ name: "page", http: { url: "http://localhost/" }, withinSeconds: 0 }];
      await world.give(statementOf(young, { ...quick, healthGates: gates }, signedLater), "prepare", "activate");
      expect([failureOf(world), world.version()]).to.deep.equal([["failed", "gate"], old]);
    });

    it("on trial, and back without a boot", async () => {
      const world = prepared();
      const statement = statementOf(young, { ...quick, activation: { mode: "test" } });
      await world.give(statement, "prepare", "activate", "roll_back");
      expect([world.report()?.state, world.version()]).to.deep.equal(["rolled_back", old]);
    });
  });
});

function restarts({ commands }: UpdateWorld): readonly string[] {
  return commands.filter((words) => words.startsWith("systemctl restart"));
}

/** Acts once, right before an effect of the updater. */
function onceAt(world: UpdateWorld, start: string, act: () => void): void {
  world.onEffect = (what) => {
    if (!what.startsWith(start)) return;
    world.onEffect = () => undefined;
    act();
  };
}
