import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { parseDuration } from "#base/units.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { Drain, hooksOf, type ProjectHook } from "#engine/orchestrate/project-hooks.ts";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { readSource } from "#engine/yaml/read.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { KcoreError } from "#errors/problem.ts";
import { Queue, type QueueSettings } from "#queue/queue-settings.ts";
import { isClusterName } from "#pki/identity.ts";
import { MaintenanceWindow } from "#rollout/spec.ts";

/** The file with the settings of a project. */
export const projectFile = "kcore.yaml";

const Name = z.string().min(1);
const Count = z.int().positive();

const Reconcile = z.strictObject({
  branch: Name.default("main").describe("The branch of origin that the nodes follow."),
  run: z
    .strictObject({
      orchestrate: Name.optional().describe("An orchestration."),
      state: z.array(Name).min(1).optional().describe("Instead: states."),
      params: z.record(z.string(), z.unknown()).default({}).describe("Their parameters."),
    })
    .refine((run) => (run.orchestrate === undefined) !== (run.state === undefined), "needs orchestrate, or state")
    .describe("The work that each node shall have."),
  on: Name.optional().describe("The nodes; by default those of the orchestration, or all nodes."),
  maxChanges: Count.optional().describe("The most changed steps of a pass; more wait for an operator."),
  maxNodes: Count.optional().describe("The most changed nodes of a pass; more wait for an operator."),
  windows: z.array(MaintenanceWindow).default([]).describe("Times in which nodes may be changed; none: always."),
  interval: Name.default("10m")
    .refine((text) => (parseDuration(text) ?? 0) >= 1, "must be a duration, such as 10m")
    .describe("The time between two passes of the timer."),
});
export type ReconcileSettings = z.output<typeof Reconcile>;

/** The keys of `kcore.yaml`. */
export const Settings = z.strictObject({
  cluster: z
    .string()
    .refine(isClusterName, "must be a cluster's name, as kcore config get-contexts lists it")
    .optional()
    .describe("The context of the cluster that the project's machines belong to."),
  runs: z
    .strictObject({
      requireClean: z.boolean().default(false).describe("Refuses runs with files that differ from the commit."),
      requireSigned: z
        .boolean()
        .default(false)
        .describe("Refuses runs of a commit whose signature git does not trust."),
    })
    .prefault({})
    .describe("Demands on each run that may change a node."),
  reconcile: Reconcile.optional().describe("The work of kcore reconcile (docs/gitops.md)."),
  queue: Queue.optional().describe("A Redis over which several machines share the nodes of a run (docs/scale.md)."),
  drain: Drain.optional().describe("How work leaves a node and comes back (docs/removal.md)."),
});

/** The settings in a project's `kcore.yaml` (docs/gitops.md, docs/removal.md); the defaults without that file. @throws KcoreError with every problem of the file */
export function readSettings(project: string): z.output<typeof Settings> {
  const path = join(project, projectFile);
  if (!existsSync(path)) return Settings.parse({});
  const check = checkOf(trustOfProcess(process.env));
  const source = readSource(path, { name: projectFile, check });
  return validateValue(plainOf(source) ?? {}, source, Settings);
}

/** The queue to which a run goes, if it goes to one. @throws KcoreError QUEUE_UNSET; with every problem of the file */
export function queueOf(project: string, { queue, what }: RunRequest): QueueSettings | undefined {
  if (queue === false || (what.kind !== "orchestration" && what.kind !== "state")) return undefined;
  const { queue: settings } = readSettings(project);
  if (settings) return { ...settings, ...(queue !== undefined && { url: queue }) };
  if (queue === undefined) return undefined;
  throw new KcoreError({
    code: "QUEUE_UNSET",
    message: "kcore.yaml does not say which machines share the queue",
    hint: "queue: { url: …, members: […] }; docs/scale.md",
  });
}

/** The hooks for a node's work, of `drain`; none without `drain`. @throws KcoreError with every problem of the file */
export function projectHooks(project: string): readonly ProjectHook[] {
  const { drain } = readSettings(project);
  return drain === undefined ? [] : hooksOf(drain);
}

/** The settings of `kcore reconcile`, with the demand for signed commits. @throws KcoreError RECONCILE_UNSET; for a wrong file every problem */
export function reconcileSettings(project: string): ReconcileSettings & { readonly signed: boolean } {
  const { reconcile, runs } = readSettings(project);
  if (reconcile) return { ...reconcile, signed: runs.requireSigned };
  const hint = "reconcile: { run: { state: [web] } } in kcore.yaml, or { run: { orchestrate: site } }; docs/gitops.md";
  throw new KcoreError({ code: "RECONCILE_UNSET", message: "kcore.yaml has no work for reconcile", hint });
}
