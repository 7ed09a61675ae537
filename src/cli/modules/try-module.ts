import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "#base/process.ts";
import type { RunTasks } from "#base/tasks.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { openLab, type Lab, type NodeSpec } from "#lab/lab.ts";

/** The outcomes of the step's dry runs and runs, on a machine whose /bin/sh is this shell. */
export interface Trial {
  readonly shell: string;
  readonly outcomes: readonly string[];
  /** Whether the outcomes show that the module converges. */
  readonly isGood: boolean;
  /** The first problem that a run reported. */
  readonly problem?: string;
}

const labName = "modules-test";

/** The lab's nodes by the shell that is their /bin/sh. */
const nodes = { dash: "m1", bash: "m2", busybox: "b1" } as const;

/** The runs of one trial, in this order. */
export const trialStages = ["dry run", "run", "again", "dry run"] as const;
/** The outcomes of {@link trialStages} for a module that converges. */
const convergingOutcomes = ["would-change", "changed", "ok", "ok"];

export interface TrialOptions {
  readonly project: string;
  readonly module: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** BusyBox has no systemd, no apt, no bash: a module that needs one of them is tried without it. */
  readonly withBusybox: boolean;
  readonly tasks: RunTasks;
}

/** Tries a module with these arguments on new machines of a lab, one for each shell, and takes them away. */
export async function tryModule(options: TrialOptions): Promise<readonly Trial[]> {
  const lab = await openLab({ name: labName, tasks: options.tasks });
  const folder = await mkdtemp(join(tmpdir(), "kcore-module-"));
  try {
    // A killed trial leaves its machines.
    await (await openLab({ name: labName })).down();
    const project = await prepare(lab, folder, options);
    const recordings: (readonly RunEvent[])[] = [];
    for (const stage of trialStages) recordings.push(await applyState(project, stage === "dry run"));
    return Object.entries(nodes)
      .filter(([shell]) => options.withBusybox || shell !== "busybox")
      .map(([shell, node]) =>
        judgeTrial(
          shell,
          recordings.map((events) => trialEnd(events, node)),
        ),
      );
  } finally {
    await lab.down();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Starts the machines, and makes a project of them, the module and one state. */
async function prepare(
  lab: Lab,
  project: string,
  { module, args, withBusybox, ...from }: TrialOptions,
): Promise<string> {
  const specs: NodeSpec[] = [
    { name: nodes.dash, kind: "debian", disks: [] },
    { name: nodes.bash, kind: "debian", disks: [] },
    ...(withBusybox ? [{ name: nodes.busybox, kind: "busybox", disks: [] } as const] : []),
  ];
  await lab.up(specs);
  const { code, stderr } = await (await lab.node(nodes.bash)).exec("ln -sfn bash /bin/sh");
  if (code !== 0)
    throw new KcoreError({ code: "LAB_NODE_FAILED", message: `bash cannot be made the shell: ${stderr}` });
  for (const name of ["modules", "templates", "packs"])
    if (existsSync(join(from.project, name)))
      await cp(join(from.project, name), join(project, name), { recursive: true });
  for (const name of ["roster", "states", "orchestrate"]) await mkdir(join(project, name));
  await writeFile(join(project, "roster/lab.yaml"), await lab.roster(), { mode: 0o600 });
  await writeFile(join(project, "states/try.yaml"), printYaml({ steps: [{ id: module, [module]: args }] }));
  return project;
}

/** Runs the state over all machines; returns the run's events. @throws KcoreError MODULE_INVALID when it does not begin */
async function applyState(project: string, dryRun: boolean): Promise<readonly RunEvent[]> {
  const words = ["--project", project, "--on", "*", "--output", "json", ...(dryRun ? ["--dry-run"] : [])];
  const { stdout, stderr } = await run([join(shippedRoot(), "bin/kcore"), "state", "apply", "try", ...words]);
  const events = stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as RunEvent);
  if (events.length > 0) return events;
  throw new KcoreError({ code: "MODULE_INVALID", message: `the module cannot be tried:\n${stderr.trim()}` });
}

interface TrialEnd {
  readonly outcome: string;
  readonly problem?: string;
}

/** The end of the step on a node, or of the node itself if it did not come to the step. */
function trialEnd(events: readonly RunEvent[], node: string): TrialEnd {
  for (const event of events) {
    if (event.type === "step.finished" && event.node === node)
      return { outcome: event.outcome, ...(event.problem && { problem: event.problem.message }) };
    if (event.type === "node.finished" && event.node === node)
      return { outcome: event.outcome, ...(event.problem && { problem: event.problem.message }) };
  }
  return { outcome: "nothing" };
}

function judgeTrial(shell: string, ends: readonly TrialEnd[]): Trial {
  const outcomes = ends.map(({ outcome }) => outcome);
  const problem = ends.find((end) => end.problem !== undefined)?.problem;
  const isGood = outcomes.every((outcome, index) => outcome === convergingOutcomes[index]);
  return { shell, outcomes, isGood, ...(problem !== undefined && { problem }) };
}

/** Refuses a module that does not converge in every trial. @throws KcoreError MODULE_INVALID, exit code 1 */
export function requireGood(module: string, trials: readonly Trial[]): void {
  const bad = trials.filter(({ isGood }) => !isGood);
  if (bad.length === 0) return;
  throw new KcoreError(
    bad.map(({ shell, problem }) => ({
      code: "MODULE_INVALID" as const,
      message: `${module} does not converge on ${shell}${problem === undefined ? "" : `: ${problem}`}`,
      hint: `wanted: ${trialStages.map((stage, index) => `${stage} ${convergingOutcomes[index] ?? ""}`).join(", ")}`,
    })),
    { exitCode: exitCodes.failed },
  );
}
