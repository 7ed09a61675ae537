import { expect } from "chai";
import fc from "#support/properties.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { ModelNode, type ModelStep } from "#support/model-node.ts";
import { SessionWorld } from "#support/session-world.ts";
import { draftOf } from "#support/sessions.ts";

interface Planned extends ModelStep {
  readonly reboots: boolean;
  /** The dependency of the step: on the step before it, or on facts. A segment ends before a dependent step. */
  readonly rests: "nothing" | "before" | "facts";
}

/** The possible moves, each with its relative frequency. */
const moves = {
  frame: 24,
  command: 20,
  act: 24,
  connect: 14,
  wait: 4,
  next: 8,
  drop: 3,
  refuse: 1,
  refuseLate: 1,
  vanish: 0.3,
  checkHost: 2,
  checkShell: 0.1,
  reboot: 3,
  bootByItself: 0.2,
  kill: 0.7,
  release: 1,
  stop: 0.2,
  abort: 0.2,
  freeze: 1,
};
type Move = keyof typeof moves;

interface Scenario {
  readonly steps: readonly Planned[];
  /** The number of steps in the first call; `rests`: the session rests before the second call. */
  readonly first: number;
  readonly rests: boolean;
  /** Whether the last segment tells the runner that it is the last; `early`: the first call's too. */
  readonly endsItself: "never" | "last" | "early";
  readonly isHeld: boolean;
  readonly waitForLock: boolean;
  /** The number of moves after which the bastion dies, and another bastion resumes the run. */
  readonly diesAfter: number | undefined;
  readonly moves: readonly Move[];
}

const scenarios: fc.Arbitrary<Scenario> = fc.record({
  steps: fc.array(
    fc.record({
      outcome: fc.constantFrom<ModelStep["outcome"][]>("ok", "ok", "changed", "changed", "changed", "failed"),
      needsBlob: fc.boolean(),
      reboots: fc.integer({ min: 0, max: 5 }).map((one) => one === 0),
      rests: fc.constantFrom<Planned["rests"][]>("nothing", "nothing", "before", "facts"),
    }),
    { maxLength: 4, size: "max" },
  ),
  first: fc.nat(5),
  rests: fc.boolean(),
  endsItself: fc.constantFrom<Scenario["endsItself"][]>("never", "last", "early"),
  isHeld: fc.integer({ min: 0, max: 7 }).map((one) => one === 0),
  waitForLock: fc.boolean(),
  diesAfter: fc.option(fc.nat(100), { nil: undefined, freq: 3 }),
  moves: fc.array(
    fc.oneof(
      ...Object.entries(moves).map(([name, weight]) => ({ weight: weight * 10, arbitrary: fc.constant(name as Move) })),
    ),
    { maxLength: 250, size: "max" },
  ),
});

function draftsOf(steps: readonly Planned[]): UnresolvedStep[] {
  return steps.map(({ reboots, rests }, index) => {
    const step: Step = { want: {}, probe: sh`:`, ...(reboots && { ends: "boot" }) };
    const needs = { facts: rests === "facts", steps: rests === "before" && index > 0 ? [`r${index - 1}`] : [] };
    return draftOf(`s${index}`, step, { register: `r${index}`, needs });
  });
}

/** Plays one scenario to its end; throws at a broken invariant. */
function play({ steps, first, rests, endsItself, isHeld, waitForLock, diesAfter, moves: made }: Scenario): void {
  const drafts = draftsOf(steps);
  const node = new ModelNode(new Map(drafts.map(({ id }, index) => [stepKey(id), steps[index] as Planned])));
  node.isHeldByOther = isHeld;
  const options = { node, drafts, waitForLock, retryDelays: [0, 1_000, 3_000] };
  let world = new SessionWorld(options);
  let left: readonly (() => void)[] = [];
  let asked = 0;
  let dropsBefore = 0;
  const begin = (): void => {
    asked = 0;
    left = [
      () => world.perform(drafts.slice(0, first), endsItself === "early"),
      ...(rests ? [() => world.ask({ type: "rest" })] : []),
      () => world.perform(drafts.slice(first), endsItself !== "never"),
      () => {
        dropsBefore = world.drops + world.tries;
        world.ask({ type: "finish", outcome: "done" });
      },
    ];
    next();
  };
  /** Starts the next call after the one before. */
  const next = (): void => {
    const [call] = left;
    if (world.ended.length < asked || !call) return;
    asked += 1;
    left = left.slice(1);
    call();
  };
  begin();
  for (const [index, move] of made.entries()) {
    if (index === diesAfter) {
      world.link = node.follower = undefined;
      node.isFrozen = false;
      node.wasTakenOver = true;
      world = new SessionWorld({ ...options, recorded: world.recorded() });
      begin();
    }
    make(world, move, next);
    // A runner that hangs for ever may delay only the end of the session.
    if (move === "freeze" && left.length === 0) node.isFrozen = true;
  }
  // Without further disturbance, every requested step ends.
  node.isHeldByOther = false;
  world.isUndisturbed = true;
  const isOver = (): boolean => world.ended.length >= asked && !world.connecting;
  for (settle(world, isOver); left.length > 0; settle(world, isOver)) next();

  const ends = ["return", ...(rests ? ["rested"] : []), "return", "finished"];
  expect(world.ended.map((end) => end.do)).to.deep.equal(ends);
  expect([world.link, [...world.timers], world.state.connection.phase.at]).to.deep.equal([undefined, [], "none"]);
  const isSmooth = !node.isFrozen && !world.wasUnanswered && world.drops + world.tries - dropsBefore <= 1;
  if (isSmooth && world.state.queue.phase.at !== "dead") expect(node.runner).to.equal(undefined);
  if (diesAfter === undefined)
    for (const [key, times] of node.begun) expect(times).to.be.at.most(1 + (node.cutOff.get(key) ?? 0));
}

function make(world: SessionWorld, move: Move, next: () => void): void {
  const { node } = world;
  const does: Readonly<Record<Move, () => unknown>> = {
    frame: () => world.deliverFrame(),
    command: () => world.deliverCommand(),
    act: () => node.act(),
    connect: () => world.answerConnect(),
    wait: () => world.wait(),
    next,
    drop: () => world.drop(),
    refuse: () => world.refuseConnect(1),
    refuseLate: () => world.refuseConnect(2),
    vanish: () => world.vanish(),
    checkHost: () => world.checkHost(true),
    checkShell: () => world.checkHost(false),
    reboot: () => node.willReboot && world.reboot(),
    bootByItself: () => world.reboot(),
    kill: () => node.kill(),
    release: () => (node.isHeldByOther = false),
    stop: () => world.stop("stop"),
    abort: () => world.stop("abort"),
    freeze: () => undefined,
  };
  does[move]();
}

function settle(world: SessionWorld, isOver: () => boolean): void {
  for (let turn = 0; !isOver(); turn++) {
    if (turn > 2_000) throw new Error(`it does not end: ${JSON.stringify(world.state, undefined, 1)}`);
    world.checkHost(true);
    world.answerConnect();
    const moved = [world.deliverCommand(), world.node.act(), world.deliverFrame()];
    if (moved.includes(true) || world.connecting) continue;
    if (world.node.willReboot) world.reboot();
    else world.wait();
  }
}

/** The node does not answer an abort, and the operator aborts again after the session's end; no timer may remain. */
const abortedAfterEnd: Scenario = {
  steps: [{ outcome: "ok", needsBlob: false, reboots: true, rests: "nothing" }],
  first: 0,
  rests: false,
  endsItself: "never",
  isHeld: true,
  waitForLock: false,
  diesAfter: undefined,
  moves: ["connect", "connect", "frame", "frame", "frame", "next", "abort", "wait", "abort"],
};

describe("the state machines of a session", () => {
  it("end after any moves, and begin each step once unless it was cut off (F-1, F-4, F-15, F-17)", () =>
    fc.assert(fc.property(scenarios, play), { numRuns: 1_000, examples: [[abortedAfterEnd]] }));
});
