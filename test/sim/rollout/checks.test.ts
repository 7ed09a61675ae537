import { expect } from "chai";
import type { Fence, NodePhase, Row } from "#rollout/records.ts";
import { Violation } from "../violation.ts";
import { undisturbed } from "./swarm.ts";
import { RolloutWorld } from "./world.ts";

const ordered = { epoch: 1, owner: "c1", generation: 1, seq: 4 };
const rowIn = (phase: NodePhase): Row => ({ ...ordered, phase, since: 0 });

/** c1, who owned epoch 1, takes a node down that took this order before; the one node that may be down has been silent for long. */
function takeDown(from: NodePhase, to: NodePhase, taken: Omit<Fence, "name">): () => void {
  const world = new RolloutWorld(1, { ...undisturbed, workers: 1, maxUnavailable: 1 });
  const controller = world.controller("c1");
  const progress = { ...ordered, phase: "rolling_out", since: 0, waves: [["w2"]], started: ["w2"], canaries: 0 };
  const written = [
    ["update/u/progress", progress],
    ["update/u/node/w2", rowIn(from)],
  ] as const;
  controller.registers.write(written, 0);
  const silent = world.machine("w1");
  silent.isUp = false;
  silent.lastUp = -1_000_000;
  world.machine("w2").take({ fence: { name: "u", ...taken }, step: "fence", target: "g1" });
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
    it(`counts a node that goes from ${from} to ${to}`, () => {
      expect(takeDown(from, to, own)).to.throw(Violation, "(b) u: w2 goes down, with w1, w2, and 1 may be");
    });

    it(`does not count one whose order to go from ${from} to ${to} it refuses for ever`, () => {
      for (const later of [{ epoch: 2, owner: "c2" }, { owner: "c2" }, { generation: 2 }])
        expect(takeDown(from, to, { ...own, ...later })).not.to.throw();
    });
  }
});
