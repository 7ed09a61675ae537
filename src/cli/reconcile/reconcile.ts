import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { readNotices } from "#engine/orchestrate/notices.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { sendNotices } from "#engine/run/notify.ts";
import { makeIgnoredFolder } from "#engine/run/run-folder.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import { exitCodes, formatProblem, KcoreError, type ExitCode, type Problem } from "#errors/problem.ts";
import { namesOf } from "../drift/look-for-drift.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { readSettings } from "../project/project-settings.ts";
import { printResult } from "../terminal/format-result.ts";
import { toStderr } from "../terminal/say.ts";
import { applyDifferences, hashOf, type Applied, type FailedRun, type ReconcileFlags } from "./apply-differences.ts";
import { isAway, noticeOf, type PassNotice } from "./decide.ts";
import { followBranch } from "./follow-branch.ts";

/** A pass of `kcore reconcile`, as `-o json` prints it and `.kcore/reconcile.json` keeps it. */
interface Pass {
  readonly outcome: Applied["outcome"] | "refused";
  readonly revision?: string;
  /** By node, the steps that differed before the pass. */
  readonly differs: Readonly<Record<string, readonly string[]>>;
  /** Nodes that were down, or that another run held: a later pass catches them up. */
  readonly away: readonly string[];
  /** The run that the pass made. */
  readonly run?: string;
  /** The reasons why the pass did not do all, and the messages for a person. */
  readonly reasons: readonly string[];
}

/** The memory of passes, `.kcore/reconcile.json`. */
interface Memory {
  /** The last commit that passed all checks. */
  readonly vetted?: string;
  /** The keys of notices that stand and were sent. */
  readonly told: readonly string[];
  /** The last entry in the audit trail, as a hash, and the number of passes since that found the same. */
  readonly recorded?: { readonly hash: string; readonly repeats: number };
  readonly failed?: FailedRun;
  readonly last?: Pass & { readonly at: string };
}

/**
 * `kcore reconcile`: one pass. It follows the branch, compares the nodes and applies the differences within the limits; one pass at a time for a
 * project. @throws KcoreError RECONCILE_UNSET, RECONCILE_BUSY
 */
export async function reconcile(flags: ReconcileFlags): Promise<void> {
  const project = findProject(flags.project);
  settingsOf(project);
  const release = await lockFolder(makeIgnoredFolder(project, "reconcile"));
  if (!release) {
    const hint = "wait for its end: systemctl status 'kcore-reconcile-*'";
    throw new KcoreError({ code: "RECONCILE_BUSY", message: "another pass is at work in this project", hint });
  }
  try {
    const file = join(project, ".kcore", "reconcile.json");
    const before = readMemory(file);
    const { exitCode, notices, memory, ...pass } = await makePass(project, flags, before);
    const told = await tell(project, notices, before.told);
    const recorded = record(project, pass, before.recorded);
    const last = { at: new Date().toISOString(), ...pass };
    replaceFileSync(file, `${JSON.stringify({ ...memory, told, recorded, last }, undefined, 2)}\n`);
    process.exitCode = exitCode;
    printResult(pass, flags.output, () => draw(pass));
  } finally {
    release();
  }
}

function settingsOf(project: string) {
  const { reconcile: settings, runs } = readSettings(project);
  if (settings) return { settings, signed: runs.requireSigned };
  throw new KcoreError({
    code: "RECONCILE_UNSET",
    message: "kcore.yaml has no work for reconcile",
    hint: "reconcile: { run: { state: [web] } } in kcore.yaml, or { run: { orchestrate: site } }; docs/gitops.md",
  });
}

/** The memory of the last pass; an empty one without a readable file: then each notice is sent once more. */
function readMemory(file: string): Memory {
  try {
    return { told: [], ...(JSON.parse(readFileSync(file, "utf8")) as Partial<Memory>) };
  } catch {
    return { told: [] };
  }
}

interface MadePass extends Pass {
  readonly exitCode: ExitCode;
  readonly notices: readonly PassNotice[];
  readonly memory: Pick<Memory, "vetted" | "failed">;
}

async function makePass(project: string, flags: ReconcileFlags, { vetted, failed }: Memory): Promise<MadePass> {
  const problems: Problem[] = [];
  const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      problems.push(...error.problems);
      return undefined;
    }
  };
  const { settings, signed } = settingsOf(project);
  const followed = await attempt(() => followBranch({ project, branch: settings.branch, signed, vetted }));
  problems.push(...(followed?.refused ?? []));
  const revision = followed?.revision;
  const isRefused = problems.length > 0;
  const applied =
    revision === undefined
      ? undefined
      : // The settings of the commit that is applied count, not those of the commit before.
        await attempt(async () =>
          applyDifferences(project, flags, { revision, settings: settingsOf(project).settings, failed }),
        );
  const { drifts = [], exitCode = exitCodes.failed, notices: own = [], waits, run } = applied ?? {};
  const notices = [...problems.map((one) => noticeOf("failure", formatProblem(one))), ...own];
  return {
    outcome: applied?.outcome ?? (revision === undefined ? "refused" : "failed"),
    ...omitUndefined({ revision, run }),
    differs: namesOf(drifts),
    away: drifts.filter(isAway).map(({ node }) => node),
    reasons: [...(waits === undefined ? [] : [waits]), ...notices.map(({ text }) => text)],
    notices,
    exitCode: isRefused && exitCode !== exitCodes.unreachable ? exitCodes.failed : exitCode,
    memory: omitUndefined({ vetted: revision ?? vetted, failed: applied ? applied.failed : failed }),
  };
}

/** Sends the notices that were not sent in an earlier pass; returns the keys of those that stand and were sent. */
async function tell(project: string, notices: readonly PassNotice[], told: readonly string[]): Promise<string[]> {
  const ways = readNotices(project, trustOfProcess(process.env));
  const common = { command: "kcore reconcile", who: whoAmI(), host: hostname() };
  const keys: string[] = [];
  for (const { key, event, text } of notices) {
    const content = { ...common, event, ...(event === "question" ? { question: text } : { problem: text }) };
    const warnings = told.includes(key) ? [] : await sendNotices(ways, content, project);
    for (const warning of warnings) toStderr(warning);
    // The next pass sends a notice again that failed.
    if (warnings.length === 0) keys.push(key);
  }
  return keys;
}

/** Writes a pass into the audit trail; a pass that made no run and found the same as the last entry only counts. */
function record(project: string, pass: Pass, before: Memory["recorded"]): Memory["recorded"] {
  const { away: _, ...entry } = pass;
  const hash = hashOf([pass]);
  if (pass.run === undefined && before?.hash === hash) return { hash, repeats: before.repeats + 1 };
  const repeats = before?.repeats ?? 0;
  const common = { type: "reconcile.pass", who: whoAmI(), command: "kcore reconcile" } as const;
  recordRuns(project, Date.now(), { ...common, ...entry, ...(repeats > 0 && { repeats }) });
  return { hash, repeats: 0 };
}

function draw({ outcome, revision, differs, away, run, reasons }: Pass): string {
  const at = revision === undefined ? "" : ` at ${revision.slice(0, 12)}`;
  const lines = [
    ...Object.entries(differs).map(([node, steps]) => `${node} differed: ${steps.join(", ")}`),
    ...away.map((node) => `${node} is down, or another run holds it: a later pass catches it up`),
    ...reasons,
  ];
  return `${outcome}${at}${run === undefined ? "" : `  kcore runs show ${run}`}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}
