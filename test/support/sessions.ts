import { readdirSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import type { RunEventBody } from "#engine/events/event.ts";
import type { Step } from "#engine/step/define.ts";
import { sh, type Sh } from "#engine/step/sh.ts";
import { openSession } from "#engine/session/open-session.ts";
import type { NodeSession, OpenSession, SessionOptions, WorkResult } from "#engine/session/session.ts";
import type { LateScope, PlannedStep, UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Connect, Endpoint } from "#engine/transport/host.ts";
import { createTransport } from "#engine/transport/connect.ts";
import type { StepResults, TransitionContext } from "#engine/session/session-events.ts";
import { hangLimit } from "./limit.ts";
import { nodeEntry } from "./runs.ts";
import { plannedStep } from "./steps.ts";
import { noTables } from "./tables.ts";

/** The context of a transition of node n1 in run r1, at time 0, without results of steps. */
export const transitionContext: TransitionContext = {
  node: "n1",
  runId: "r1",
  resumed: false,
  waitForLock: false,
  retryDelays: [0],
  results: {} as StepResults,
  now: 0,
  chance: 0.5,
};

/** An unresolved step; by default it needs no late value. */
export function draftOf(
  id: string,
  step: Step | ((late: LateScope) => Step),
  extra: Partial<PlannedStep> & { readonly needs?: UnresolvedStep["needs"] } = {},
): UnresolvedStep {
  const { needs = { facts: false, steps: [] }, ...more } = extra;
  const at = { file: "states/test.yaml", line: 1, column: 1 };
  const base = { id: `test/${id}`, title: id, state: "test", module: "test.step", at };
  const plan = (late: LateScope): PlannedStep =>
    plannedStep(typeof step === "function" ? step(late) : step, { ...base, ...more });
  return {
    ...base,
    needs,
    tags: [],
    require: more.require ?? [],
    watches: [...(more.restartOn ?? []), ...(more.onChanges ?? [])],
    answers: more.onFailure ?? [],
    ...(more.register !== undefined && { register: more.register }),
    render: (late) => ({ kind: "step", plan: plan(late) }),
  };
}

/** A step that always runs this text. */
export function commandStep(apply: Sh, more: Partial<Step> = {}): Step {
  return { want: {}, probe: sh``, apply, always: true, ...more };
}

/** The output of all steps, in order. */
export function printedIn({ events }: Pick<TestSession, "events">): string[] {
  return events.flatMap((event) => (event.type === "step.output" ? [event.text] : []));
}

export interface TestSession {
  readonly session: NodeSession;
  readonly events: RunEventBody[];
  /** `STEP OUTCOME`, in order. */
  readonly outcomes: () => string[];
  /** Resolves with the first event that satisfies the test, emitted already or later. */
  readonly seen: (test: (event: RunEventBody) => boolean) => Promise<RunEventBody>;
}

/** A session with this machine (local transport), or with `endpoint`. */
export function sessionOn(
  stateDir: string,
  options: Partial<SessionOptions> & { readonly endpoint?: Endpoint; readonly connect?: Connect } = {},
  open: OpenSession = openSession,
): TestSession {
  const events: RunEventBody[] = [];
  const waiting = new Set<(event: RunEventBody) => void>();
  const node = nodeEntry("n1", {
    address: options.endpoint?.address ?? "127.0.0.1",
    port: options.endpoint?.port ?? 22,
    user: options.endpoint?.user ?? "root",
    transport: options.endpoint?.transport ?? "local",
    stateDir,
  });
  const session = open({
    node,
    endpoint: { name: "n1", transport: "local", address: "localhost", port: 22, user: "root", hostKeys: [], jump: [] },
    connect: createTransport({ home: stateDir }).connect,
    runId: `test-${randomBytes(4).toString("hex")}`,
    attempt: 1,
    nonce: randomBytes(16).toString("hex"),
    who: "tester@bastion",
    dryRun: false,
    grants: [],
    tables: noTables,
    sudoPassword: () => Promise.resolve(undefined),
    recorded: new Map(),
    resumed: false,
    waitForLock: false,
    connectTimeout: hangLimit,
    connectSlot: () => Promise.resolve(() => undefined),
    ...options,
    emit: (event) => {
      events.push(event);
      for (const tell of waiting) tell(event);
    },
  });
  return {
    session,
    events,
    outcomes: () =>
      events.flatMap((event) => (event.type === "step.finished" ? [`${event.title} ${event.outcome}`] : [])),
    seen: (test) => {
      const found = events.find(test);
      if (found) return Promise.resolve(found);
      return new Promise((resolve) => {
        const tell = (event: RunEventBody): void => {
          if (!test(event)) return;
          waiting.delete(tell);
          resolve(event);
        };
        waiting.add(tell);
      });
    },
  };
}

/** A session in one stage of these steps, from its beginning to its end. */
export async function performOn(
  stateDir: string,
  drafts: readonly UnresolvedStep[],
  options: Parameters<typeof sessionOn>[1] = {},
  open?: OpenSession,
): Promise<TestSession & WorkResult> {
  const run = sessionOn(stateDir, options, open);
  const result = await run.session.perform([{ stage: "s", drafts }]);
  await run.session.finish(result.outcome, result.problem);
  return { ...run, ...result };
}

/** The files that a node keeps of a run, without the mark of its attempt, which outlives each run (docs/runner.md, Attempts). */
export function keptOfRun(stateDir: string, run: string): string[] {
  return readdirSync(join(stateDir, "runs", run)).filter((name) => !/^job\.\d{16}$/.test(name));
}
