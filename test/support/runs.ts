import type { RunEventBody } from "#engine/events/event.ts";
import type { Action } from "#engine/orchestrate/action.ts";
import type { RunDependencies, RunRequest } from "#engine/orchestrate/run-types.ts";
import type { PlannedStage } from "#engine/orchestrate/plan.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { FakeNodes } from "./fake-session.ts";
import { noTables } from "./tables.ts";

/** A roster entry as loading makes it. */
export function nodeEntry(name: string, fields: Partial<NodeEntry> = {}): NodeEntry {
  return {
    name,
    id: `00000000-0000-4000-8000-${Buffer.from(name).toString("hex").padStart(12, "0").slice(-12)}`,
    address: `${name}.example`,
    port: 22,
    user: "root",
    sudo: {},
    jump: [],
    hostKeys: [],
    dc: "DC1",
    roles: [],
    labels: {},
    taints: [],
    groups: [],
    disks: [],
    stateDir: "/var/lib/kcore",
    vars: {},
    transport: "ssh",
    ...fields,
  };
}

export function rosterOf(...nodes: readonly (NodeEntry | string)[]): Roster {
  const entries = nodes.map((node) => (typeof node === "string" ? nodeEntry(node) : node));
  return {
    nodes: new Map(entries.map((entry) => [entry.name, entry])),
    jumps: new Map(),
    positions: new Map(),
    files: ["roster/test.yaml"],
  };
}

export function runRequest(fields: Partial<RunRequest> = {}): RunRequest {
  return {
    what: { kind: "orchestration", name: "test" },
    params: {},
    dryRun: false,
    grants: [],
    skipHealth: false,
    waitForLock: false,
    yes: false,
    command: "kcore orchestrate test",
    ...fields,
  };
}

/** Dependencies of a run over the fake nodes; a question without a prepared answer fails the test. */
export function runDependencies(
  nodes: FakeNodes,
  events: RunEventBody[],
  fields: Partial<RunDependencies> = {},
): RunDependencies {
  return {
    runId: "r1",
    nonce: "0".repeat(32),
    who: "op@bastion",
    project: "/nowhere",
    shipped: "/nowhere",
    home: "/nowhere",
    emit: (event) => events.push(event),
    connect: () => Promise.reject(new Error("a fake node is never connected to")),
    openSession: nodes.open,
    tables: noTables,
    stop: new AbortController().signal,
    abort: new AbortController().signal,
    ask: ({ text }) => Promise.reject(new Error(`nobody answers “${text}”`)),
    actions: () => Promise.resolve(undefined),
    actionNames: [],
    readSecret: () => Promise.reject(new Error("no secrets here")),
    earlier: [],
    now: () => 0,
    ...fields,
  };
}

/** A step that the fake session knows by `id`. */
export function unresolvedStep(id: string, fields: Partial<UnresolvedStep> = {}): UnresolvedStep {
  const [state = "", title = id] = id.split("/");
  const at = { file: `states/${state}.yaml`, line: 1, column: 1 };
  return {
    id,
    title,
    state,
    module: "command.run",
    at,
    needs: { facts: false, steps: [] },
    tags: [],
    require: [],
    watches: [],
    answers: [],
    render: () => ({ kind: "skipped", id, title, reason: "the fake session does not look at it" }),
    ...fields,
  };
}

/** A stage that applies these steps. */
export function applyStage(
  id: string,
  nodes: readonly string[],
  steps: readonly (string | UnresolvedStep)[],
  fields: Partial<PlannedStage> = {},
): PlannedStage {
  const unresolved = steps.map((step) => (typeof step === "string" ? unresolvedStep(step) : step));
  return stage(id, { nodes, task: { kind: "apply", expand: () => Promise.resolve(unresolved) }, ...fields });
}

export function actionStage(id: string, action: Action, fields: Partial<PlannedStage> = {}): PlannedStage {
  return stage(id, { task: { kind: "action", action, args: () => ({}) }, ...fields });
}

function stage(id: string, fields: Partial<PlannedStage> & Pick<PlannedStage, "task">): PlannedStage {
  return {
    id,
    source: { id, order: 0, tags: [] },
    register: id,
    title: id,
    pace: {},
    dependencies: new Set(),
    onFailure: [],
    ...fields,
  };
}
