import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import type { DryRunStep, DryRunPlan } from "#tui/dry-run-plan.ts";
import { gitState } from "../process/git-state.ts";
import type { RecordedDigest } from "../records/print-digest.ts";

/** The most differences that the error names one by one. */
const maxNamed = 10;

const foreseen = z.object({
  stage: z.string(),
  title: z.string(),
  module: z.string(),
  nodes: z.array(z.string()),
  changes: z.array(z.object({ name: z.string(), have: z.string().optional(), want: z.string() })),
  diff: z.string().optional(),
  reason: z.string().optional(),
});

/** A plan is the digest of a dry run, as `--report FILE.json` writes it; only these parts count. */
const RecordedPlan = z.object({
  id: z.string(),
  title: z.string(),
  state: z.literal("done"),
  dryRun: z.literal(true),
  revision: z.string(),
  dirty: z.literal(false),
  asked: z.object({
    params: z.record(z.string(), z.unknown()),
    skipHealth: z.boolean(),
    context: z.string().optional(),
  }),
  nodes: z.array(z.object({ name: z.string(), place: z.string().optional() })),
  foresight: z.object({ changes: z.array(foreseen), unknown: z.array(foreseen) }),
});
export type RecordedPlan = z.infer<typeof RecordedPlan>;

/**
 * Reads the plan that a run is held to, and compares its commit with the project's.
 * @throws KcoreError FILE_UNREADABLE, PLAN_INVALID, PLAN_OUTDATED
 */
export async function readPlan(file: string, project: string): Promise<RecordedPlan> {
  const plan = parsePlan(file, await readPlanFile(file));
  const { revision, dirty = true } = await gitState(project);
  if (revision !== plan.revision || dirty) {
    const now = revision === undefined ? "not at a commit" : `at ${revision.slice(0, 12)}`;
    throw outdated([
      `the plan ${file} was made at commit ${plan.revision.slice(0, 12)}, and the project is ${now}${dirty ? " with uncommitted changes" : ""}`,
    ]);
  }
  return plan;
}

async function readPlanFile(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const message = `cannot read the plan ${file}: ${(cause as Error).message}`;
    throw new KcoreError({ code: "FILE_UNREADABLE", message }, { cause });
  }
}

function parsePlan(file: string, text: string): RecordedPlan {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new KcoreError(noPlan(file, "it is no JSON"), { cause });
  }
  const { data, error } = RecordedPlan.safeParse(value);
  if (data) return data;
  const key = error.issues[0]?.path[0];
  const reasons: Readonly<Record<string, string>> = {
    state: "its dry run did not come to a good end",
    dryRun: "it is that of a run, not of a dry run",
    revision: "its project is not under git, so it says of no commit what would be done",
    dirty: "files were not committed when it was made, so it says of no commit what would be done",
  };
  throw new KcoreError(noPlan(file, reasons[String(key)] ?? `“${String(key)}” is missing or wrong in it`));
}

function noPlan(file: string, why: string): Problem {
  return {
    code: "PLAN_INVALID",
    message: `${file} is no plan: ${why}`,
    hint: "make one of all that is committed: the same command with --dry-run --report plan.json",
  };
}

/** Compares a plan with a new dry run. @throws KcoreError PLAN_OUTDATED, with the reasons if the dry run failed */
export function holdToPlan(plan: RecordedPlan, now: RecordedDigest): void {
  if (now.state !== "done") {
    // Problems that stopped the run itself were shown when it stopped.
    const problems = now.failures.filter(({ nodes }) => nodes.length > 0).map(({ problem }) => problem);
    const exitCode = now.state === "unreachable" ? exitCodes.unreachable : exitCodes.failed;
    throw new KcoreError([outdatedPlan(["the dry run before the run failed"]), ...problems], { exitCode });
  }
  const names = (nodes: readonly { readonly name: string }[]) => nodes.map(({ name }) => name).join(", ");
  const heads = [
    ...(now.title === plan.title ? [] : [`it is a plan for “${plan.title}”, not for “${now.title}”`]),
    ...(names(now.nodes) === names(plan.nodes) ? [] : [`it is for ${names(plan.nodes)}, not for ${names(now.nodes)}`]),
    ...movedNodes(plan.nodes, now.nodes),
    ...requestDifferences(plan.asked, now.asked),
  ];
  const differences = heads.length > 0 ? heads : foresightDifferences(plan.foresight, now.foresight);
  if (differences.length > 0) throw outdated(differences);
}

/**
 * Nodes with another address than in the plan. A name can mean another machine at the same commit, because a roster may
 * come from a URL, a program, or another user's files.
 */
function movedNodes(then: RecordedPlan["nodes"], now: RecordedDigest["nodes"]): readonly string[] {
  const places = new Map(now.map(({ name, place }) => [name, place]));
  return then.flatMap(({ name, place = "an unknown address" }) => {
    const found = places.get(name);
    return found === undefined || found === place
      ? []
      : [`${name} is ${found} now, and the plan was made for ${place}`];
  });
}

/** Compares the parameters themselves, as steps can look alike for different values, and flags that steps do not show. */
function requestDifferences(then: RecordedPlan["asked"], now: RecordedDigest["asked"]): readonly string[] {
  const params = [...new Set([...Object.keys(then.params), ...Object.keys(now.params)])].filter(
    (name) => !isDeepStrictEqual(then.params[name], now.params[name]),
  );
  return [
    ...(params.length === 0 ? [] : [`it was made with other parameters: ${params.join(", ")}`]),
    ...(then.context === now.context ? [] : ["it was made for another --context"]),
    ...(then.skipHealth === now.skipHealth
      ? []
      : [`it was made ${then.skipHealth ? "with" : "without"} --skip-health`]),
  ];
}

/** Compares steps by name and nodes, with all that the dry run foresees of them. */
function foresightDifferences(then: RecordedPlan["foresight"], now: DryRunPlan | undefined): readonly string[] {
  const [before, after] = [stepsByLabel(then), stepsByLabel(now)];
  const missing = [...before].filter(([key]) => !after.has(key)).map(([key]) => `${key}: no longer`);
  const other = [...after].flatMap(([key, one]) => {
    const known = before.get(key);
    if (known === undefined) return [`${key}: not in the plan`];
    // JSON leaves out undefined values, so the parsed form is compared.
    return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), known) ? [] : [`${key}: otherwise than planned`];
  });
  return [...missing, ...other];
}

function stepsByLabel(foresight: RecordedPlan["foresight"] | DryRunPlan | undefined): ReadonlyMap<string, unknown> {
  const { changes = [], unknown = [] } = foresight ?? {};
  const stepLabel = ({ stage, title, nodes }: Pick<DryRunStep, "stage" | "title" | "nodes">): string =>
    `${stage === title ? title : `${stage}: ${title}`} on ${nodes.join(", ")}`;
  return new Map([
    ...changes.map((one) => [`would change ${stepLabel(one)}`, one] as const),
    ...unknown.map((one) => [`cannot tell ${stepLabel(one)}`, one] as const),
  ]);
}

function outdated(differences: readonly string[]): KcoreError {
  return new KcoreError(outdatedPlan(differences));
}

function outdatedPlan(differences: readonly string[]): Problem {
  const rest = differences.length - maxNamed;
  const named = [...differences.slice(0, maxNamed), ...(rest > 0 ? [`and ${rest} more`] : [])];
  return {
    code: "PLAN_OUTDATED",
    message: `the plan does not hold any more, and nothing was changed: ${named.join("; ")}`,
    hint: "make a new plan and have it looked at: the same command with --dry-run --report plan.json",
  };
}
