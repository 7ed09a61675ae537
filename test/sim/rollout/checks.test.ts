import { expect } from "chai";
import { fenceOf, stepOf } from "#rollout/order.ts";
import type { FencingToken, NodePhase, NodeAssignment } from "#rollout/records.ts";
import { Violation } from "../violation.ts";
import type { Machine } from "./machine.ts";
import { undisturbed } from "./swarm.ts";
import { bundleOf, parseSpec, sign, signOwner } from "./targets.ts";
import { RolloutWorld } from "./world.ts";

const ordered = { epoch: 1, owner: "c1", generation: 1, seq: 4 };
const rowIn = (phase: NodePhase): NodeAssignment => ({ ...ordered, phase, since: 0 });

const orderOf = (name: string, row: NodeAssignment) => ({
  fence: fenceOf(name, row),
  step: stepOf(row.phase),
  signed: sign(
    { name, spec: parseSpec({ target: {}, selector: { allNodes: true } }), bundle: bundleOf(`${name}1`) },
    0,
  ),
  ownership: signOwner(name, { id: row.owner, epoch: row.epoch }, 0),
});

/** The node w2 takes the row written for it, by a signed owner. */
async function give(world: RolloutWorld, name: string, row: NodeAssignment): Promise<void> {
  world.checks.signed(name, row);
  world.checks.committing(world.controller(row.owner), [[`update/${name}/node/w2`, row]]);
  const node = world.machine("w2");
  await node.give(orderOf(name, row));
  while (node.hasOrder) await world.run(world.scheduler.now + 1);
}

/** c1, the owner of epoch 1, takes a node down that took this order before. The one node that may be down has been silent for long. */
async function takeDown(from: NodePhase, to: NodePhase, taken: Omit<FencingToken, "name">): Promise<() => void> {
  const world = new RolloutWorld(1, { ...undisturbed, workers: 1, maxUnavailable: 1 });
  const controller = world.controller("c1");
  const progress = { ...ordered, phase: "rolling_out", since: 0, waves: [["w2"]], started: ["w2"], canaries: 0 };
  await world.found();
  world.checks.signed("u", ordered);
  const signed = sign({ name: "u", spec: parseSpec({ target: {}, selector: {} }), bundle: bundleOf("u1") }, 0);
  const head = { generation: 1, signed, hash: "", createdAt: "", updatedAt: "", by: "operator" };
  controller.write([
    ["update/u/head", head],
    ["update/u/owner", { epoch: 1, owner: "c1" }],
    ["update/u/progress", progress],
    ["update/u/node/w2", rowIn(from)],
  ]);
  await world.run(5_000);
  await give(world, "u", { ...taken, phase: "pending", since: 0 });
  const silent = world.machine("w1");
  silent.crash(1_000_000);
  silent.lastUp = -1_000_000;
  return () => world.checks.committing(controller, [["update/u/node/w2", rowIn(to)]]);
}

const steps = [
  ["prepared", "activating"],
  ["prepared", "draining"],
  ["failed", "rolling_back"],
] as const;
const own = { ...ordered, seq: 3 };

describe("the check of how many nodes are down", () => {
  for (const [from, to] of steps) {
    it(`counts a node that goes from ${from} to ${to}`, async () => {
      expect(await takeDown(from, to, own)).to.throw(Violation, "(b) u: w2 goes down, with w1, w2, and 1 may be");
    });

    it(`does not count one whose order to go from ${from} to ${to} it refuses for ever`, async () => {
      for (const later of [{ epoch: 2, owner: "c2" }, { owner: "c2" }, { generation: 2 }])
        expect(await takeDown(from, to, { ...own, ...later })).not.to.throw();
    });
  }
});

describe("the check of orders", () => {
  const quiet = (hooks = false): RolloutWorld => new RolloutWorld(1, { ...undisturbed, workers: 1, bad: 0, hooks });
  const row = (phase: NodePhase, seq: number): NodeAssignment => ({ ...rowIn(phase), seq });
  /** A node that has prepared, and then got an order of another update. */
  const prepared = async (hooks = false): Promise<RolloutWorld> => {
    const world = quiet(hooks);
    await give(world, "u", row("preparing", 1));
    await world.run(30_000);
    await give(world, "v", row("pending", 1));
    return world;
  };
  /** The violation, if any, when the node takes an order. */
  const found = (giving: Promise<void>): Promise<unknown> =>
    giving.then(
      () => undefined,
      (error: unknown) => (error instanceof Violation ? error.message : error),
    );

  it("lets what is prepared be activated, whoever asked the node since", async () => {
    const world = await prepared();
    await give(world, "u", row("activating", 2));
    expect(world.machine("w2").downBy).to.equal("u");
  });

  it("finds an activation of what is not prepared", async () => {
    const world = await prepared();
    expect(await found(give(world, "v", row("activating", 2)))).to.include(
      "(f) w2 was ordered to activate what it has not",
    );
  });

  it("finds an activation of what is not drained, and lets what is", async () => {
    const activate = (world: RolloutWorld) => found(give(world, "u", row("activating", 3)));
    const undrained = "(i) w2 is to be activated by generation 1 of u, undrained";
    expect(await activate(await prepared(true))).to.equal(undrained);
    for (const isDone of [false, true]) {
      const world = await prepared(true);
      world.hooks.ended("u", { ...row("draining", 2), id: "w2", hook: "drain" }, isDone);
      expect(await activate(world)).to.equal(isDone ? undefined : undrained);
    }
  });

  it("finds an order that its owner has not written", async () => {
    const world = quiet();
    world.checks.signed("u", ordered);
    await world.machine("w2").give(orderOf("u", row("preparing", 1)));
    expect(await found(world.run(10_000))).to.include("(f) w2 took order 1 of c1");
  });
});

describe("the checks of what a controller writes", () => {
  it("find an owner, and an order of one, that the bastion did not sign for that epoch", () => {
    const world = new RolloutWorld(1, undisturbed);
    world.checks.signed("u", { epoch: 1, owner: "c1" });
    const write = (epoch: number) => () =>
      world.checks.committing(world.controller("c1"), [["update/u/owner", { epoch, owner: "c1" }]]);
    expect(write(1)).not.to.throw();
    expect(write(2)).to.throw(Violation, "(t) c1 takes c1 for the owner of u in epoch 2: that was not signed");
    const order = orderOf("u", { ...rowIn("pending"), epoch: 2 });
    const { checks, machines } = new RolloutWorld(1, undisturbed);
    expect(() => checks.accepted(machines[0] as Machine, order, undefined)).to.throw(Violation, "(t) c1 takes c1");
  });

  const answer = { generation: 1, seq: 4, epoch: 1, owner: "c1" };
  /** The bastion has done the drain for an order of this epoch. A controller notes it for epoch 1, as done or as failed. */
  const noted =
    (epoch: number, ok = true) =>
    () => {
      const world = new RolloutWorld(1, { ...undisturbed, hooks: true });
      world.hooks.ended("u", { ...answer, epoch, id: "w2", hook: "drain" }, true);
      world.checks.committing(world.controller("c1"), [["update/u/hook/w2/drain", { ...answer, ok }]]);
    };

  it("find an answer that no bastion gave, or that it gave to another order", () => {
    expect(noted(1)).not.to.throw();
    expect(noted(2)).to.throw(Violation, "(q) c1 notes drain of w2 for order 4 of c1 in epoch 1 of u as done");
    expect(noted(1, false)).to.throw(Violation, "as failed, as no bastion said");
  });

  it("find a manifest that another controller than the owner takes", async () => {
    const world = new RolloutWorld(1, undisturbed);
    await world.found();
    world.checks.signed("u", { epoch: 1, owner: "c2" });
    const signed = sign({ name: "u", spec: parseSpec({ target: {}, selector: {} }), bundle: bundleOf("u1") }, 0);
    const head = { generation: 1, signed, hash: "", createdAt: "", updatedAt: "", by: "operator" };
    world.controller("c1").write([
      ["update/u/head", head],
      ["update/u/owner", { epoch: 1, owner: "c2" }],
    ]);
    await world.scheduler.runUntil(5_000);
    const take = () => world.checks.committing(world.controller("c1"), [["update/u/head", { ...head, generation: 2 }]]);
    expect(take).to.throw(Violation, "(r) c1 takes a manifest of u, which c2 owns");
  });
});
