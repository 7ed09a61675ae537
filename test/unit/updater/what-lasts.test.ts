import { expect } from "chai";
import { NixosWorld, nixosStatement, systemPath } from "#support/nixos-world.ts";
import { pathOf, profile, statementOf, UpdateWorld } from "#support/update-world.ts";
import type { Statement } from "#rollout/spec.ts";

const quick = { timeouts: { activateSeconds: 60, prepareSeconds: 60, rebootSeconds: 60 } };
const kernel = { kernel: "6.6.8" };
const staged = { activation: { mode: "boot", rebootPolicy: "never" } };
const trial = { activation: { mode: "test" } };
const fails = { healthGates: [{ name: "page", nodeCommand: "look", withinSeconds: 1 }] };

/** A statement of this update; `a` was signed before `b`, and `b` before `c`. */
const systemOf = (name: string, update: "a" | "b" | "c", spec: object = {}): Statement => ({
  ...nixosStatement(name, { ...quick, ...spec }),
  name: update,
  signedAt: `2026-0${"abc".indexOf(update) + 1}-01T00:00:00.000Z`,
});
const idOf = (name: string): string =>
  `git+https://git.example.org/systems?ref=main&rev=${nixosStatement(name).spec.target.flakeRev}`;
const all = (name: string): object => ({ current: name, booted: name, boots: name, profile: name });
const said = (world: UpdateWorld): unknown => world.report()?.state;

describe("the updater, where what runs is not what lasts:", () => {
  const nixos = (): NixosWorld => {
    const world = new NixosWorld();
    world.add("new", kernel);
    world.add("other", {});
    return world;
  };

  describe("a system that only waits for a boot", () => {
    const a = systemOf("new", "a", staged);
    let world: NixosWorld;
    beforeEach(async () => {
      world = nixos();
      await world.give(a, "prepare", "activate");
      expect(world.state).to.include({ current: "old", boots: "new", profile: "new" });
    });

    it("is told, with what the node goes back to", () => {
      const { present, lasting, previous } = world.report() ?? {};
      expect([present?.id, lasting?.id, previous?.id]).to.deep.equal([
        systemPath("old"),
        idOf("new"),
        systemPath("old"),
      ]);
      expect([present?.generation, lasting?.generation, previous?.generation]).to.deep.equal([undefined, 2, 1]);
    });

    it("lasts again when it is brought anew, though it still runs", async () => {
      world.powerCut();
      await world.give(a, "roll_back");
      await world.give(systemOf("new", "b", staged), "prepare", "activate");
      expect([said(world), world.report()?.failure, world.state]).to.deep.equal(["activated", undefined, all("new")]);
      await world.give(systemOf("new", "b", staged), "roll_back");
      expect(world.state).to.deep.equal({ ...all("new"), boots: "old", profile: "old" });
    });

    it("is taken back when what the node knew of it is lost", async () => {
      world.files.delete("/var/lib/kcore/updates/journal.json");
      world.order("roll_back", a, { seq: 9 });
      await world.live();
      expect([said(world), world.state]).to.deep.equal(["rolled_back", all("old")]);
    });

    it("is taken back when a later attempt of its own did not hold", async () => {
      world.order("activate", systemOf("new", "a", { ...staged, ...fails }), { epoch: 2, owner: "c2" });
      await world.live();
      expect([said(world), world.report()?.failure?.kind, world.state]).to.deep.equal(["failed", "gate", all("old")]);
    });

    for (const [how, spec] of [
      ["waits for a boot as well", staged],
      ["is only tried", trial],
    ] as const)
      it(`waits on when another one, which ${how}, does not hold`, async () => {
        await world.give(systemOf("other", "b", { ...spec, ...fails }), "prepare", "activate");
        expect([said(world), world.report()?.failure?.kind]).to.deep.equal(["failed", "gate"]);
        expect(world.state).to.deep.equal({ ...all("old"), boots: "new", profile: "new" });
      });
  });

  it("a system on trial is tried again when another one that had held is taken back, and not once it is collected", async () => {
    const world = nixos();
    const isTried = { ...all("old"), current: "new" };
    await world.give(systemOf("new", "a", trial), "prepare", "activate");
    expect(world.state).to.deep.equal(isTried);
    expect(world.report()?.lasting?.id).to.equal(systemPath("old"));
    const b = systemOf("other", "b");
    await world.give(b, "prepare", "activate", "roll_back");
    expect([said(world), world.state]).to.deep.equal(["rolled_back", isTried]);
    const c = systemOf("other", "c");
    await world.give(c, "prepare", "activate");
    expect(world.state).to.include({ current: "other", profile: "other" });
    world.store.delete(systemPath("new"));
    await world.give(c, "roll_back");
    expect([said(world), world.state]).to.deep.equal(["rolled_back", all("old")]);
  });

  it("a system that could not go back, and does so when it is told to, once it can", async () => {
    const world = nixos();
    world.add("new", { reaches: false });
    world.add("old", { exits: { switch: 2 } });
    const a = systemOf("new", "a");
    await world.give(a, "prepare", "activate");
    expect(world.report()?.failure?.message).to.match(/and it could not go back: /);
    expect([world.state.current, world.report()?.previous?.id]).to.deep.equal(["new", systemPath("old")]);
    world.add("old", {});
    await world.give(a, "roll_back");
    expect([said(world), world.report()?.failure, world.state]).to.deep.equal(["rolled_back", undefined, all("old")]);
  });

  it("a system is found by the commit that it was first built for when it was built for another one since", async () => {
    const world = nixos();
    await world.give(systemOf("other", "a"), "prepare", "activate");
    const b = systemOf("new", "b");
    await world.give(b, "prepare", "activate");
    // Another commit with the same system.
    const { links } = world;
    world.add("again", {});
    const [path, again] = [systemPath("other"), systemPath("again")];
    world.onEffect = () => links.forEach((to, link) => to === again && links.set(link, path));
    await world.give(systemOf("again", "c"), "prepare");
    await world.give(b, "roll_back");
    expect([said(world), world.report()?.failure]).to.deep.equal(["rolled_back", undefined]);
    expect(world.state).to.include({ current: "other", profile: "other" });
  });

  describe("a runtime on trial", () => {
    const [old, tried, next] = ["0.1.0", "0.2.0", "0.3.0"];
    const later = { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" };
    let world: UpdateWorld;
    const look = (): unknown => ({
      runs: [...new Set([...world.units.values()].map(({ program }) => program))].map((path) =>
        path.slice(pathOf("").length),
      ),
      lasts: [profile, `${profile}-updater`].map((name) => world.at(name)?.slice(pathOf("").length)),
    });
    const isTried = { runs: [tried], lasts: [old, old] };
    beforeEach(async () => {
      world = new UpdateWorld(old);
      await world.give(statementOf(tried, { ...quick, ...trial }), "prepare", "activate");
      expect(look()).to.deep.equal(isTried);
      expect(world.report()?.lasting).to.deep.equal({ id: pathOf(old), version: old, generation: 1 });
    });

    it("stays on trial when another trial does not hold", async () => {
      await world.give(statementOf(next, { ...quick, ...trial, ...fails }, later), "prepare", "activate");
      expect([said(world), look()]).to.deep.equal(["failed", isTried]);
    });

    it("does not come back once it is collected", async () => {
      const other = statementOf(next, quick, later);
      await world.give(other, "prepare", "activate");
      expect(look()).to.deep.equal({ runs: [next], lasts: [next, next] });
      world.store.delete(pathOf(tried));
      await world.give(other, "roll_back");
      expect([said(world), look()]).to.deep.equal(["rolled_back", { runs: [old], lasts: [old, old] }]);
    });
  });

  it("a runtime that another update brings, too, is kept by taking that one back", async () => {
    const world = new UpdateWorld("0.1.0");
    await world.give(statementOf("0.2.0", quick), "prepare", "activate");
    const again = statementOf("0.2.0", quick, { name: "u2", signedAt: "2026-02-01T00:00:00.000Z" });
    await world.give(again, "prepare", "activate", "roll_back");
    expect([said(world), world.report()?.failure, world.version()]).to.deep.equal(["rolled_back", undefined, "0.2.0"]);
  });
});
