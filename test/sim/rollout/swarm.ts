import type { Random } from "#support/random.ts";

/** The faults of a seed, and the shape of its rollouts. */
export type RolloutSwarm = Readonly<ReturnType<typeof draw>>;

/** One update, and no faults but failing steps and hooks: for tests that kill the owner. */
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

/** A worker without power holds up the rollout, since only one node may be down. */
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
  return { ...draw(random), ...(random.chance(0.07) ? missing : {}) };
}

function draw(random: Random) {
  const sometimes = (share = 0.5): boolean => random.chance(share);
  const drawn = {
    controllers: 3 + random.below(3),
    /** Nodes besides those with a controller. */
    workers: random.below(5),
    /** Whether the controllers' machines are updated too. */
    withControllers: sometimes(0.7),
    /** The time with faults, in virtual ms. */
    duration: 300_000 + random.below(500_000),
    maxUnavailable: random.pick([1, 1, 2, 3]),
    batchSize: random.pick([1, 2, 4]),
    strategy: random.pick(["canary", "one-at-a-time", "batch", "batch", "per-dc"] as const),
    approval: random.pick(["manual", "auto-non-disruptive", "auto", "auto"] as const),
    automatic: sometimes(),
    drain: sometimes(0.2),
    /** Whether the bastion drains nodes, and gives their work back. */
    hooks: sometimes(0.25),
    /** Whether a gate on the bastion must hold. */
    gates: sometimes(0.25),
    /** The chance that a hook or gate fails. */
    badHooks: sometimes() ? random.between(0, 0.3) : 0,
    bastionCrashes: sometimes(),
    /** Whether two bastions run an update's hooks: the first answer counts. */
    twoBastions: sometimes(0.3),
    drop: sometimes() ? random.between(0, 0.3) : 0,
    duplicate: sometimes() ? random.between(0, 0.2) : 0,
    slow: sometimes() ? random.between(0, 0.1) : 0,
    partitions: sometimes(),
    cutNodes: sometimes(),
    crashes: sometimes(),
    nodeCrashes: sometimes(0.4),
    /** Whether a worker has no power until all faults are over. */
    switchesOff: false,
    jumps: sometimes(0.3),
    slowNodes: sometimes(0.3),
    /** The chance that a step of a node fails. */
    bad: sometimes() ? random.between(0, 0.3) : 0,
    /** The chance that a node is lost for ever at a switch. */
    deadly: sometimes(0.2) ? random.between(0, 0.1) : 0,
    takeovers: sometimes(0.6) ? 1 + random.below(3) : 0,
    cancels: sometimes(0.3),
    rollbacks: sometimes(0.4),
    manifests: sometimes(0.3),
    second: sometimes(0.15),
    /** Whether a controller in wrong hands sends orders of unsigned epochs. */
    forges: sometimes(0.1),
  };
  return {
    ...drawn,
    /** Whether controllers take over during hooks, whose answers come late. */
    lateAnswers: drawn.hooks && drawn.twoBastions,
    /** Whether owners and operators remove ended updates. */
    removes: drawn.second,
  };
}
