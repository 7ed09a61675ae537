import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { parseDuration } from "#base/units.ts";
import { Drain } from "#engine/orchestrate/project-hooks.ts";
import { checkOf, trustOfProcess } from "#engine/project/project.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { KcoreError } from "#errors/problem.ts";
import { MaintenanceWindow } from "#rollout/spec.ts";
import { projectFile } from "./project-cluster.ts";

const Name = z.string().min(1);
const Count = z.int().positive();

const Reconcile = z.strictObject({
  branch: Name.default("main"),
  run: z
    .strictObject({
      orchestrate: Name.optional(),
      state: z.array(Name).min(1).optional(),
      params: z.record(z.string(), z.unknown()).default({}),
    })
    .refine((run) => (run.orchestrate === undefined) !== (run.state === undefined), "needs orchestrate, or state"),
  on: Name.optional(),
  maxChanges: Count.optional(),
  maxNodes: Count.optional(),
  windows: z.array(MaintenanceWindow).default([]),
  interval: Name.default("10m").refine((text) => (parseDuration(text) ?? 0) >= 1, "must be a duration, such as 10m"),
});
export type ReconcileSettings = z.output<typeof Reconcile>;

const Settings = z.strictObject({
  cluster: z.string().optional(),
  runs: z
    .strictObject({ requireClean: z.boolean().default(false), requireSigned: z.boolean().default(false) })
    .prefault({}),
  reconcile: Reconcile.optional(),
  drain: Drain.optional(),
});

/** The settings in a project's `kcore.yaml` (docs/gitops.md, docs/removal.md); the defaults without that file. @throws KcoreError with every problem of the file */
export function readSettings(project: string): z.output<typeof Settings> {
  const path = join(project, projectFile);
  if (!existsSync(path)) return Settings.parse({});
  const check = checkOf(trustOfProcess(process.env));
  const source = parseSource(projectFile, readBytes(path, { name: projectFile, check }));
  return validateValue(plainOf(source) ?? {}, source, Settings);
}

/** The settings of `kcore reconcile`, with the demand for signed commits. @throws KcoreError RECONCILE_UNSET; for a wrong file every problem */
export function reconcileSettings(project: string): ReconcileSettings & { readonly signed: boolean } {
  const { reconcile, runs } = readSettings(project);
  if (reconcile) return { ...reconcile, signed: runs.requireSigned };
  const hint = "reconcile: { run: { state: [web] } } in kcore.yaml, or { run: { orchestrate: site } }; docs/gitops.md";
  throw new KcoreError({ code: "RECONCILE_UNSET", message: "kcore.yaml has no work for reconcile", hint });
}
