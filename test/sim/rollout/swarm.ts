import type { Random } from "#support/random.ts";

/** The faults of a seed, and the shape of its rollouts. */
export interface RolloutSwarm {
  readonly controllers: number;
  /** Nodes besides those with a controller. */
  readonly workers: number;
  /** Whether the controllers' machines are updated too. */
  readonly withControllers: boolean;
  /** The time with faults, in virtual ms. */
  readonly duration: number;
  readonly maxUnavailable: number;
  readonly batchSize: number;
  readonly strategy: "canary" | "one-at-a-time" | "batch" | "per-dc";
  readonly approval: "manual" | "auto-non-disruptive" | "auto";
  readonly automatic: boolean;
  readonly drain: boolean;
  /** The bastion drains nodes, and gives their work back. */
  readonly hooks: boolean;
  /** A gate on the bastion must hold. */
  readonly gates: boolean;
  /** The chance that the bastion's work fails. */
  readonly badHooks: number;
  readonly bastionCrashes: boolean;
  /** Two bastions run an update's hooks: the first answer counts. */
  readonly twoBastions: boolean;
  /** Other controllers take over during a hook, whose answer comes late. */
  readonly lateAnswers: boolean;
  readonly drop: number;
  readonly duplicate: number;
  readonly slow: number;
  readonly partitions: boolean;
  readonly cutNodes: boolean;
  readonly crashes: boolean;
  readonly nodeCrashes: boolean;
  /** A worker has no power until all faults are over. */
  readonly switchesOff: boolean;
  readonly jumps: boolean;
  readonly slowNodes: boolean;
  /** The chances that an activation fails, and that a node never comes back from it. */
  readonly bad: number;
  readonly deadly: number;
  readonly takeovers: number;
  readonly cancels: boolean;
  readonly rollbacks: boolean;
  readonly manifests: boolean;
  readonly second: boolean;
  /** Owners remove ended updates, and operators remove some. */
  readonly removes: boolean;
  /** A controller invents epochs. */
  readonly forges: boolean;
}

/** Only bundles fail, and one update has the nodes: the test kills the owner. */
export const undisturbed: Partial<RolloutSwarm> = {
  drop: 0,
  duplicate: 0,
  slow: 0,
  partitions: false,
  cutNodes: false,
  crashes: false,
  nodeCrashes: false,
  bastionCrashes: false,
  lateAnswers: false,
  switchesOff: false,
  jumps: false,
  slowNodes: false,
  deadly: 0,
  takeovers: 0,
  manifests: false,
  second: false,
  forges: false,
};

/** Only a node without power delays a rollout, since no other may be down beside it. */
export const missing: Partial<RolloutSwarm> = {
  switchesOff: true,
  workers: 4,
  maxUnavailable: 1,
  approval: "auto",
  partitions: false,
  cutNodes: false,
  nodeCrashes: false,
  bad: 0,
  takeovers: 0,
  lateAnswers: false,
  cancels: false,
  rollbacks: false,
  manifests: false,
  second: false,
  forges: false,
};

export function drawRolloutSwarm(random: Random): RolloutSwarm {
  const sometimes = (share = 0.5): boolean => random.chance(share);
  const drawn: Omit<RolloutSwarm, "lateAnswers" | "removes"> = {
    controllers: 3 + random.below(3),
    workers: random.below(5),
    withControllers: sometimes(0.7),
    duration: 300_000 + random.below(500_000),
    maxUnavailable: random.pick([1, 1, 2, 3]),
    batchSize: random.pick([1, 2, 4]),
    strategy: random.pick(["canary", "one-at-a-time", "batch", "batch", "per-dc"]),
    approval: random.pick(["manual", "auto-non-disruptive", "auto", "auto"]),
    automatic: sometimes(),
    drain: sometimes(0.2),
    hooks: sometimes(0.25),
    gates: sometimes(0.25),
    badHooks: sometimes() ? random.between(0, 0.3) : 0,
    bastionCrashes: sometimes(),
    twoBastions: sometimes(0.3),
    drop: sometimes() ? random.between(0, 0.3) : 0,
    duplicate: sometimes() ? random.between(0, 0.2) : 0,
    slow: sometimes() ? random.between(0, 0.1) : 0,
    partitions: sometimes(),
    cutNodes: sometimes(),
    crashes: sometimes(),
    nodeCrashes: sometimes(0.4),
    switchesOff: false,
    jumps: sometimes(0.3),
    slowNodes: sometimes(0.3),
    bad: sometimes() ? random.between(0, 0.3) : 0,
    deadly: sometimes(0.2) ? random.between(0, 0.1) : 0,
    takeovers: sometimes(0.6) ? 1 + random.below(3) : 0,
    cancels: sometimes(0.3),
    rollbacks: sometimes(0.4),
    manifests: sometimes(0.3),
    second: sometimes(0.15),
    forges: sometimes(0.1),
  };
  const lateAnswers = drawn.hooks && drawn.twoBastions;
  return { ...drawn, lateAnswers, removes: drawn.second, ...(sometimes(0.07) ? missing : {}) };
}
