import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { diskInventoryText, readDiskInventory, type DiskInventory } from "#engine/program/disk-inventory.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { exitCodes, KcoreError, type ExitCode, type Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { collectSteps, tellWait } from "../watch/step-results.ts";
import { drawLayoutPlan } from "./draw-layout.ts";
import { layoutParams } from "#engine/layout/layout-params.ts";
import { insideOf, type Layout } from "#engine/layout/layout-schema.ts";
import { withRefusals, planLayout, type LayoutPlan } from "#engine/layout/plan-layout.ts";
import { withReason } from "#engine/layout/reasons.ts";
import type { Manifest } from "#manifests/read-manifests.ts";
import { findProject } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { viewFromFlags } from "../terminal/choose-view.ts";
import { requestOf } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { askForGrants, grantsWanted, ungranted } from "../watch/typed-grants.ts";
import type { ManifestChange, ManifestDifference, ApplyFlags } from "./change.ts";

type LayoutManifest = Extract<Manifest, { kind: "DiskLayout" }>;

/**
 * Plans a `DiskLayout`: reads the node's disks, then checks the layout and finds the changes by a dry run of its steps.
 * @throws KcoreError for a node that is not in the roster, cannot be reached or lists no disks
 */
export async function planDiskLayout(manifest: LayoutManifest, flags: ApplyFlags): Promise<ManifestChange> {
  const node = findLayoutNode(manifest, flags);
  const layout = manifest.layout as Layout;
  const inventory = await listDisksByRun(node, flags);
  const found = planLayout(node, layout, inventory);
  const isNew = found.disks.every(({ verdict }) => verdict !== "ours");
  const pins = new Map(found.disks.map(({ name, id }) => [name, id]));
  const request: RunRequest | undefined =
    found.refusals.length > 0
      ? undefined
      : requestOf(
          { ...flags, on: [node.name] },
          { kind: "state", names: ["kcore/disk-layout"] },
          { params: layoutParams({ name: manifest.name, node: node.id }, layout, pins), dryRun: false },
        );
  const dry = request && (await runQuietly(flags, { ...request, dryRun: true }));
  const withRefusalsOf = (model: RunModel): LayoutPlan => withRefusals(found, refusedSteps(model), inventory);
  const plan = dry ? withRefusalsOf(dry) : found;
  const { refusals } = plan;
  const differences = dry ? changesOfSteps(dry) : [];
  const whenGranted = isNew ? "created" : "updated";
  const outcome = refusals.length > 0 ? "refused" : differences.length === 0 ? "unchanged" : whenGranted;
  return {
    outcome,
    differences,
    notes: outcome === "unchanged" ? [] : notesOf(layout),
    whenGranted,
    picture: (canvas) => drawLayoutPlan(plan, canvas),
    refusals,
    // `-o json` prints the plan that the picture draws.
    data: { ...plan },
    perform: async () => {
      if (!request || !dry) throw new KcoreError(refusals, { exitCode: exitCodes.failed });
      const granted = await withGrants(flags, request, dry, withRefusalsOf);
      if (flags.result !== "table")
        return (await startRun(flags, granted, { output: "quiet", onEvent: tellWait })).exitCode;
      return (await startRun(flags, granted, viewFromFlags(flags))).exitCode;
    },
  };
}

/**
 * The request with all grants that it needs. At a terminal the operator grants disks by typing their names; then another dry run judges
 * the layout with these grants. @throws KcoreError with the refusals that stand
 */
async function withGrants(
  flags: ApplyFlags,
  request: RunRequest,
  dry: RunModel,
  withRefusalsOf: (dry: RunModel) => LayoutPlan,
): Promise<RunRequest> {
  const { refusals } = withRefusalsOf(dry);
  if (refusals.length === 0) return request;
  // The operator is asked only about refusals that a grant overrides.
  const isGrantable =
    ungranted(
      refusals,
      grantsWanted(dry).map((one) => one.grant),
    ).length === 0;
  const grants = flags.result === "table" && isGrantable ? await askForGrants(dry) : [];
  const standing = ungranted(refusals, grants);
  if (standing.length > 0) throw new KcoreError(standing, { exitCode: exitCodes.failed });
  const granted = { ...request, grants: [...request.grants, ...grants] };
  return withGrants(flags, granted, await runQuietly(flags, { ...granted, dryRun: true }), withRefusalsOf);
}

function notesOf({ disks }: Layout): readonly string[] {
  return disks.some(({ gpt }) => gpt.partitions.some((one) => insideOf(one).encrypted))
    ? ["the keys of encrypted partitions are on the node's system disk alone, in /etc/kcore/luks: keep a second way in"]
    : [];
}

function findLayoutNode({ node: { name, at } }: LayoutManifest, { project }: ApplyFlags): NodeEntry {
  const { nodes } = ownRoster(findProject(project));
  const found = nodes.get(name) ?? [...nodes.values()].find(({ id }) => id === name);
  if (found) return found;
  throw new KcoreError({
    code: "ROSTER_NODE_UNKNOWN",
    message: `no node “${name}” in the roster, by name or id`,
    at,
    hint: suggestHint(name, nodes.keys(), "kcore roster list") as string,
  });
}

/** The disks of the node, listed by a run. @throws KcoreError DISK_LAYOUT_PROBE_FAILED, and for a node that a run does not reach */
async function listDisksByRun({ name }: NodeEntry, flags: ApplyFlags): Promise<DiskInventory> {
  const steps = collectSteps();
  const request = requestOf(
    { ...flags, on: [name] },
    { kind: "exec", argv: [diskInventoryText()], shell: true },
    { dryRun: false },
  );
  const { model, leftEarly, exitCode } = await startRun(flags, request, {
    output: "quiet",
    onEvent: (event) => {
      steps.take(event);
      tellWait(event);
    },
  });
  const [result] = steps.results(model);
  const inventory = result?.exitCode === 0 ? readDiskInventory(result.stdout) : undefined;
  if (inventory) return inventory;
  if (leftEarly || result?.exitCode === undefined) throw runFailure(model, exitCode);
  const message = `the disks of ${name} could not be listed`;
  throw new KcoreError(withReason({ code: "DISK_LAYOUT_PROBE_FAILED", message, detail: result.stderr.trim() }), {
    exitCode: exitCodes.failed,
  });
}

/** Starts a run that shows only its questions and waits. @throws KcoreError if the operator left it, or the run did not reach the node */
async function runQuietly(flags: ApplyFlags, request: RunRequest): Promise<RunModel> {
  const { model, leftEarly, exitCode } = await startRun(flags, request, { output: "quiet", onEvent: tellWait });
  const [node] = model.nodes.values();
  const hasResult = node?.outcome === "done" || node?.steps.some(({ outcome }) => outcome === "failed") === true;
  if (leftEarly || !hasResult) throw runFailure(model, exitCode);
  return model;
}

function runFailure({ problems, nodes }: RunModel, exitCode: ExitCode): KcoreError {
  const found = [...problems, ...[...nodes.values()].flatMap(({ problem }) => problem ?? [])];
  const [first = { code: "STEP_FAILED", message: "the run was left before it ended" } satisfies Problem, ...more] =
    found;
  return new KcoreError([first, ...more], { exitCode: exitCode === exitCodes.done ? exitCodes.failed : exitCode });
}

/** The failed steps and their problems, without source positions, which lie in a state of kcore and not in the operator's files. */
function refusedSteps({ nodes }: RunModel): readonly { readonly step: string; readonly problem: Problem }[] {
  return [...nodes.values()].flatMap(({ steps }) =>
    steps.flatMap(({ title, outcome, problem }) =>
      outcome === "failed" && problem ? [{ step: title, problem: { ...problem, at: undefined } }] : [],
    ),
  );
}

function changesOfSteps({ nodes }: RunModel): readonly ManifestDifference[] {
  return [...nodes.values()].flatMap(({ steps }) =>
    steps.flatMap(({ title, outcome, changes }): readonly ManifestDifference[] => {
      if (outcome !== "would-change" && outcome !== "unknown") return [];
      if (changes.length === 0) return [{ in: "node", field: title, have: undefined, want: "made" }];
      return changes.map(({ name, have, want }) => ({ in: "node", field: `${title}: ${name}`, have, want }));
    }),
  );
}
