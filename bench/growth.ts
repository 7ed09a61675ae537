import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quoteBytes } from "#base/quote.ts";
import { findRuns } from "#cli/records/run-summary.ts";
import { drawRuns } from "#cli/runs/list-runs.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { registry } from "#engine/modules/registry.ts";
import { runnerCommand, type RunVariables } from "#engine/program/bootstrap.ts";
import { compileStep, stepKey } from "#engine/program/compile-step.ts";
import { lookAt, lookText } from "#engine/program/look.ts";
import { blobsOf, segmentText, type SegmentStep } from "#engine/program/segment.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { runFolder, writeHeader } from "#engine/run/run-folder.ts";
import { nextBatch } from "#engine/session/next-segment.ts";
import { StepReport } from "#engine/session/step-report.ts";
import { statesOf } from "#engine/states/open-states.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { makeCpuGroup } from "#support/cpu-group.ts";
import { childCpuClock, cpuClock } from "#support/cpu.ts";
import { withExpandedSteps } from "#support/expanded-steps.ts";
import { runRequest } from "#support/runs.ts";
import { wideRun } from "#support/wide-run.ts";

/**
 * How the cost of one item grows with their number: `node bench/growth.ts [NAME]…`, as root. Milliseconds of CPU; the factors compare the
 * cost of an item at the largest number with that at each smaller one, without the cost of no item. Goal: 1.15.
 */
const wanted = process.argv.slice(2);
const counts = [100, 1_000, 10_000];
const folder = mkdtempSync(join(tmpdir(), "kcore-growth-"));
const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
const at = (...names: readonly string[]): string => join(folder, ...names);

const run: RunVariables = {
  nonce: "a".repeat(32),
  stateDir: at("state"),
  runId: "20261130-000000-0000",
  attempt: 1,
  who: "bench@here",
  node: "n1",
  dryRun: false,
  grants: [],
  login: "root",
};

/** Prepares so many items, and returns the work with them: its milliseconds of CPU. */
type Measurement = (count: number) => Promise<() => Promise<number> | number>;

const measurements: Readonly<Record<string, { readonly measure: Measurement; readonly counts?: readonly number[] }>> = {
  "steps in order: the look": { measure: looks },
  "steps in order: the runner": { measure: (count) => runs(count, true), counts: [0, ...counts] },
  "steps from scratch: the runner": { measure: (count) => runs(count, false), counts: [0, 100, 1_000, 4_000] },
  "loop items: expanded": { measure: inProcess(loopItems, (work) => work()) },
  "steps: rendered, compiled, written": { measure: inProcess(draftsOf, writeSteps) },
  "nodes: the roster": { measure: inProcess(roster, () => void loadRoster(folder)), counts: [100, 1_000, 5_000] },
  "files: states listed": {
    measure: inProcess(stateFiles, () => void statesOf({ project: folder, shipped: at("none") }).list()),
  },
  "recorded runs: listed": {
    measure: inProcess(recordedRuns, async () => void drawRuns(await findRuns(folder, { limit: Infinity }), 0, false)),
  },
  "registers: applied": { measure: inProcess((count) => changes(count, ["a"]), applyAll) },
  "conflicts: applied and listed": {
    measure: inProcess(
      (count) => changes(count, ["a", "b"]),
      (records) => void applyAll(records).conflicts(),
    ),
  },
  "events: reduced": {
    measure: inProcess(
      (count) => wideRun({ nodes: Math.ceil(count / 100), steps: 30 }),
      (events) => {
        const fold = new RunFold();
        for (const event of events) fold.add(event);
      },
    ),
  },
};

try {
  for (const [name, { measure, counts: own = counts }] of Object.entries(measurements)) {
    if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
    const figures: (readonly [number, number])[] = [];
    for (const count of own) figures.push([count, await steady(measure, count)]);
    const none = figures.find(([count]) => count === 0)?.[1] ?? 0;
    const some = figures.filter(([count]) => count > 0);
    const each = some.map(([count, ms]) => (ms - none) / count);
    const factors = each.slice(0, -1).map((one) => ((each.at(-1) ?? NaN) / one).toFixed(2));
    const shown = some.map(([count, ms]) => `${count}: ${ms.toFixed(ms < 10 ? 2 : 0)} ms`).join("  ");
    process.stdout.write(`${name.padEnd(38)} ${shown.padEnd(56)} × ${factors.join(", × ")}\n`);
  }
} finally {
  rmSync(folder, { recursive: true });
}

/** The least of several measurements, since a busy machine only adds: for a second, at least two and at most twelve. */
async function steady(measure: Measurement, count: number): Promise<number> {
  const work = await measure(count);
  let [least, spent] = [Infinity, 0];
  for (let round = 0; round < 2 || (round < 12 && spent < 1_000); round++) {
    const ms = await work();
    least = Math.min(least, ms);
    spent += ms;
  }
  return least;
}

/** Measures work of this process, which compiles it first. */
function inProcess<Items>(
  make: (count: number) => Items | Promise<Items>,
  work: (items: Items) => unknown,
): Measurement {
  return async (count) => {
    const small = await make(100);
    for (let round = 0; round < 50; round++) await work(small);
    const items = await make(count);
    return async () => {
      const spent = cpuClock();
      await work(items);
      return spent();
    };
  };
}

// ---- steps on a node ---------------------------------------------------------------------------------------------------

function stateText(count: number): string {
  return `steps:
  - id: file
    file.managed: { path: "${at("out")}/{{item}}", content: "text {{item}}\\n", mode: "0644" }
    each: [${numbers(count).join(", ")}]
`;
}

function draftsOf(count: number): Promise<readonly UnresolvedStep[]> {
  return withExpandedSteps({ "states/s.yaml": stateText(count) }, registry, (drafts) => drafts);
}

async function loopItems(count: number): Promise<() => Promise<unknown>> {
  return () => draftsOf(count);
}

function compiledSteps(drafts: readonly UnresolvedStep[]): readonly SegmentStep[] {
  const queue = drafts.map((draft) => ({ draft, key: stepKey(draft.id) }));
  const known = {
    drafts: new Map(queue.map(({ key, draft }) => [key, draft])),
    registered: new Map(),
    facts: undefined,
  };
  const results = new StepReport({ node: "n1", emit: () => undefined, recorded: new Map() });
  return nextBatch(queue, known, results, false).steps.map(({ plan, owes }) => ({
    plan,
    compiled: compileStep(plan, { owes, randomName: () => "x" }),
  }));
}

function writeSteps(drafts: readonly UnresolvedStep[]): string {
  return segmentText({ steps: compiledSteps(drafts), facts: false });
}

async function looks(count: number): Promise<() => number> {
  const steps = compiledSteps(await draftsOf(count));
  const look = lookAt(steps.map(({ plan, compiled: { key } }) => ({ key, plan })));
  if (!look) throw new Error("these steps need a runner");
  const spend = await runs(count, true);
  await spend();
  return () => spentBy(lookText(run, look, { now: 0, shell: new Set() }).replace(/^[^]*?\n/, ""), "look in-order");
}

/** A runner with these steps, as the follower starts it. */
async function runs(count: number, isInOrder: boolean): Promise<() => Promise<number>> {
  const steps = compiledSteps(await draftsOf(count));
  const home = at("state/runs", run.runId);
  const command = runnerCommand(run, {
    segment: 1,
    changed: [],
    text: `k_fin=done\n${segmentText({ steps, facts: false })}`,
  });
  const text = command.slice(command.indexOf("\n") + 1, -run.nonce.length - 1);
  const once = async (): Promise<number> => {
    rmSync(at("state"), { recursive: true, force: true });
    for (const name of [
      "lock",
      "owed",
      ...["blobs", "out", "tmp", "followers"].map((one) => `runs/${run.runId}/${one}`),
    ])
      mkdirSync(at("state", name), { recursive: true, mode: 0o700 });
    spawnSync("mkfifo", [join(home, "ctl")]);
    writeFileSync(join(home, "attached"), `${process.pid}\n`);
    writeFileSync(join(home, "launched"), `${Math.floor(Date.now() / 1000)} 0\n`);
    for (const [name, blob] of blobsOf(steps)) {
      const bytes = await blob.read();
      const content = blob.form === "assignment" ? Buffer.concat([Buffer.from("b_text="), quoteBytes(bytes)]) : bytes;
      writeFileSync(join(home, "blobs", name), content);
    }
    return spentBy(`${text}\n`, undefined);
  };
  const empty = (): void => {
    rmSync(at("out"), { recursive: true, force: true });
    mkdirSync(at("out"));
  };
  empty();
  if (!isInOrder) return () => (empty(), once());
  for (const { plan } of steps) {
    const { data } = plan.step;
    if (data?.kind === "file") writeFileSync(data.path, await data.blob.read(), { mode: 0o644 });
  }
  return once;
}

/** Milliseconds of CPU of a shell with this text, and of all that it starts. */
function spentBy(text: string, said: string | undefined): number {
  writeFileSync(at("program"), text);
  const group = makeCpuGroup();
  const spent = childCpuClock();
  const started = `${group?.enter ?? ""}exec dash '${at("program")}'`;
  const { status, stdout } = spawnSync("dash", ["-c", started], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const ms = group ? group.cpuSeconds() * 1000 : spent();
  void group?.remove();
  if (said === undefined ? status !== 0 : !stdout.includes(said))
    throw new Error(`the shell ended with ${status}: ${stdout}`);
  return ms;
}

// ---- files of a project ------------------------------------------------------------------------------------------------

function roster(count: number): void {
  const nodes = numbers(count).map(
    (n) =>
      `  n${n}: { address: 10.0.${n >> 8}.${n & 255}, roles: [worker], labels: { rack: r${n % 40} }, vars: { rack: ${n % 40} } }\n`,
  );
  mkdirSync(at("roster"), { recursive: true });
  writeFileSync(at("roster/nodes.yaml"), `nodes:\n${nodes.join("")}`);
}

function stateFiles(count: number): void {
  rmSync(at("states"), { recursive: true, force: true });
  mkdirSync(at("states"));
  for (const n of numbers(count)) writeFileSync(at(`states/s${n}.yaml`), `description: State ${n}\nsteps: []\n`);
}

function recordedRuns(count: number): void {
  rmSync(at(".kcore"), { recursive: true, force: true });
  for (const n of numbers(count)) {
    const id = `20261121-061500-${n.toString(16).padStart(4, "0")}`;
    const record = runFolder(folder, id);
    mkdirSync(record.path, { recursive: true });
    writeHeader(record, { version: 1, id, nonce: "0", who: "w@h", created: n, attended: false, request: runRequest() });
    const events = wideRun({ nodes: 1, steps: 1 }).map((event) => JSON.stringify(event));
    writeFileSync(record.events, `${events.join("\n")}\n`);
  }
}

// ---- a controller's state ----------------------------------------------------------------------------------------------

/** Writes of so many keys, by each of the writers, none of which had seen another one's. */
function changes(count: number, writers: readonly string[]): readonly JournalRecord[] {
  const text = JSON.stringify({ hostname: "node-0123456789", cpu: 16, dc: "DC1" });
  return writers.flatMap((writer, order) =>
    numbers(count).map((n): JournalRecord => {
      const origin = `kcore-controller-${writer}#0123abcd`;
      const key = `node/00000000-0000-4000-8000-${String(n).padStart(12, "0")}/reg`;
      const value = text.replace("16", String(order));
      return {
        t: "apply",
        page: { origins: [origin], contexts: [[]], registers: [[key, value, 1_750_000_000_000 + n, 0, 0, n + 1, 0]] },
        upto: [[origin, n + 1]],
      };
    }),
  );
}

function applyAll(records: readonly JournalRecord[]): ClusterState {
  const state = new ClusterState(keyRules);
  for (const record of records) state.apply(record);
  return state;
}
