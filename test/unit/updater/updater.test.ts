import { expect } from "chai";
import type { Bundle } from "#rollout/spec.ts";
import { casesOf } from "#support/cases/read.ts";
import {
  bundleOf,
  onceAt,
  runtimePath,
  ProcessEnds,
  profile,
  restarts,
  statementOf,
  UpdateWorld,
  type VersionBehaviour,
} from "#support/update-world.ts";

const [old, young] = ["0.1.0", "0.2.0"];
/** A later update with the same target. */
const signedLater = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
const quick = { timeouts: { activateSeconds: 40, prepareSeconds: 60, rebootSeconds: 60 } };

const openWorld = (): UpdateWorld => new UpdateWorld(old);

async function activated(): Promise<UpdateWorld> {
  const world = openWorld();
  await world.give(statementOf(young, quick), "prepare", "activate");
  return world;
}

/** Gives an order, and runs the updater until it is idle. */
function carryOut(world: UpdateWorld, ...order: Parameters<UpdateWorld["order"]>): Promise<void> {
  world.order(...order);
  return world.live();
}

interface Failing {
  readonly kind: string;
  readonly says: string;
  readonly spec?: object;
  readonly fails?: Readonly<Record<string, string>>;
  readonly behaves?: VersionBehaviour;
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
  it("numbers its reports by its clock, always ascending", async () => {
    const world = openWorld();
    await world.give(statementOf(young, quick), "prepare");
    world.now -= 3_600_000;
    await world.give(statementOf(young, quick), "activate");
    const counts = world.reports.map(({ epoch }) => epoch);
    expect(counts).to.have.length(4);
    expect(counts).to.deep.equal([...new Set(counts)].toSorted((a, b) => a - b));
    expect(counts[0]).to.be.greaterThan(1_000_000_000);
  });

  it("sets a damaged journal aside, and continues with higher report numbers", async () => {
    const world = await activated();
    const before = world.report()?.epoch ?? 0;
    world.files.set("/var/lib/kcore/updates/journal.json", '{"format":');
    await carryOut(world, "fence", statementOf(young, quick));
    expect([world.report()?.state, world.version()]).to.deep.equal(["fenced", young]);
    expect(world.report()?.epoch).to.be.greaterThan(before);
    expect(world.files.get("/var/lib/kcore/updates/journal.json.damaged")).to.equal('{"format":');
  });

  it("has no former version of another kind to roll back to", async () => {
    const world = await activated();
    const flake = { target: { flakeRef: "github:example/fleet", flakeRev: "c".repeat(40) } };
    const system = statementOf(young, flake, { bundle: undefined, signedAt: signedLater.signedAt });
    await carryOut(world, "fence", system, { generation: 2, seq: 20 });
    expect(world.report()?.previous).to.equal(undefined);
  });

  it("refuses a statement that was signed for other nodes only", async () => {
    for (const [selector, state] of [
      [{ nodeIds: ["n2"] }, "failed"],
      [{ allNodes: true, datacenters: ["DC2"] }, "failed"],
      [{ nodeIds: ["n1"], datacenters: ["DC1", "DC2"] }, "prepared"],
      [{ nodeIds: ["id-1"] }, "prepared"],
    ] as const) {
      const world = openWorld();
      await world.give(statementOf(young, { ...quick, selector }), "prepare");
      expect(world.report()?.state, JSON.stringify(selector)).to.equal(state);
    }
  });

  describe("reports the kind of a failure, and rolls back completely", () => {
    for (const [what, { kind, says, spec = {}, fails = {}, until, holds, from = "", behaves }] of Object.entries(
      activation,
    ))
      it(what, async () => {
        const world = openWorld();
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
        expect([world.version(), world.at(`${profile}-updater`)]).to.deep.equal([old, runtimePath(old)]);
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
    const gateCommand = ({ commands }: UpdateWorld): string | undefined =>
      commands.find((words) => words.startsWith("systemd-run --unit=kcore-update-gate.service "));

    it("runs outside the updater's unit, limited by the gate's and the activation's time", async () => {
      for (const [seconds, least, most] of [
        [0, 8, 10],
        [20, 18, 20],
        [900, 15, 39],
      ] as const) {
        const world = openWorld();
        world.gates.set("look", true);
        await world.give(statementOf(young, gateOf(seconds)), "prepare", "activate");
        expect(world.report()?.state).to.equal("activated");
        expect(gateCommand(world)).to.match(/ -- sh -c look$/);
        expect(limitOf(gateCommand(world)), `withinSeconds: ${seconds}`).to.be.within(least, most);
      }
    });

    for (const nodeCommand of ['x=1; test "${x}" = 1', "test $$ -gt 1", "test $((2 - 1)) = 1 && echo $HOME", "$LOOK"])
      it(`reaches the shell unchanged: ${nodeCommand}`, async () => {
        const world = openWorld();
        world.gates.set(nodeCommand, true);
        const spec = { ...quick, healthGates: [{ name: "disks", nodeCommand, withinSeconds: 1 }] };
        await world.give(statementOf(young, spec), "prepare", "activate");
        expect([world.report()?.failure, world.report()?.state]).to.deep.equal([undefined, "activated"]);
      });

    it("is stopped after an interruption of the updater", async () => {
      const world = openWorld();
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

  it("retries if systemd does not answer for a moment, in activation and rollback", async () => {
    for (const reaches of [true, false]) {
      const world = openWorld();
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

  describe("refuses to prepare, and changes nothing", () => {
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
        const world = Object.assign(openWorld(), given.world);
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
        const left = [...world.store.keys()].filter((path) => path !== runtimePath(old));
        expect(left).to.deep.equal(stays ? [runtimePath(young)] : []);
      });
  });

  describe("fetches a bundle", () => {
    const file = `/var/lib/kcore/updates/bundles/${bundleOf(young).sha256}`;
    const part = { size: 300, sha256: "", holds: "" };

    it("only with room for it, and leaves no files without", async () => {
      for (const [here, store, dev, says] of [
        [3_699, 3_699, 1, /^\/nix\/store has \S+ KiB free, and the bundle needs \S+ KiB$/],
        [9_999, 2_999, 2, /^\/nix\/store has /],
        [699, 9_999, 2, /^\/var\/lib\/kcore\/updates has /],
        [700, 3_000, 2, undefined],
      ] as const) {
        const world = openWorld();
        world.bundles.set(`${file}.part`, part);
        world.roomAt = (path) => (path === "/nix/store" ? { free: store, dev } : { free: here, dev: 1 });
        await world.give(statementOf(young, quick), "prepare");
        if (says) expect(world.report()?.failure?.message).to.match(says);
        else expect(world.report()?.state).to.equal("prepared");
        expect([...world.bundles.keys()]).to.deep.equal([]);
      }
    });

    it("after it has removed other bundles, and retries until it has the bundle", async () => {
      const world = openWorld();
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

    it("until another order arrives, also of another update", async () => {
      const world = openWorld();
      world.onDownload = (_bundle, _file, signal) => {
        world.order("fence", statementOf("0.3.0", quick, { name: "u2" }));
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      };
      await world.give(statementOf(young, quick), "prepare");
      expect(world.reports.map(({ state, fence }) => [state, fence.name])).to.deep.equal([["fenced", "u2"]]);
      expect(world.isWaiting).to.equal(false);
    });

    it("only of a signed statement", async () => {
      const world = openWorld();
      world.onDownload = () => expect.fail("the bundle is fetched");
      await carryOut(world, "prepare", statementOf(young), {}, { signature: "Zm9yZ2Vk" });
      expect(failureOf(world)).to.deep.equal(["failed", "refused"]);
    });
  });

  describe("obeys no owner and no order without a valid signature", () => {
    for (const [what, owner] of [
      ["signed for another owner", { owner: "c2" }],
      ["signed for an earlier epoch", { epoch: 1 }],
      ["signed for another update", { name: "u2" }],
      ["not signed by the bastion", { signature: "Zm9yZ2Vk" }],
    ] as const)
      it(`refuses an ownership ${what}`, async () => {
        const world = openWorld();
        await carryOut(world, "activate", statementOf(young), { epoch: 2 }, { owner });
        expect([world.report(), world.at(profile)], "a report would confirm that owner").to.deep.equal([
          undefined,
          runtimePath(old),
        ]);
        // The refused order fences no other owner out.
        await carryOut(world, "fence", statementOf(young));
        expect(world.report()).to.deep.include({ state: "fenced" });
      });

    it("drops a malformed order", async () => {
      const world = openWorld();
      world.files.set("/var/lib/kcore/updates/inbox.json", "{");
      await world.live();
      expect([world.isWaiting, world.report()]).to.deep.equal([false, undefined]);
    });
  });
});
