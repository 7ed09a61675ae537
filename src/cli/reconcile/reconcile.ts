import { readFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFileSync } from "#base/file.ts";
import { lockFolder } from "#base/lock-folder.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { readNotices } from "#engine/orchestrate/notices.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { Notifier } from "#engine/run/notify.ts";
import { makeIgnoredFolder } from "#engine/run/run-folder.ts";
import { recordRuns } from "#engine/run/run-trail.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { namesOf } from "../drift/look-for-drift.ts";
import { whoAmI } from "../process/who.ts";
import { findProject } from "../project/find-project.ts";
import { reconcileSettings } from "../project/project-settings.ts";
import { printResult } from "../terminal/format-result.ts";
import { toStderr } from "../terminal/say.ts";
import { applyDifferences, type Applied, type FailedRun, type Had, type ReconcileFlags } from "./apply-differences.ts";
import { failureOf, isAway, type PassNotice } from "./decide.ts";
import { followBranch, problemsIn } from "./follow-branch.ts";

/** A pass of `kcore reconcile`, as `-o json` prints it and the audit trail keeps it. */
interface Pass {
  readonly outcome: Applied["outcome"] | "refused";
  readonly revision?: string;
  /** By node, the steps that differed before the pass. */
  readonly differs: Readonly<Record<string, readonly string[]>>;
  /** Nodes that were down, or that another run held. */
  readonly away: readonly string[];
  readonly run?: string;
  /** The reasons why the pass did not do all, and the messages for a person. */
  readonly reasons: readonly string[];
}

/** The memory of passes, `.kcore/reconcile.json`. */
interface Memory {
  /** The last commit that passed all checks. */
  readonly vetted?: string;
  /** The notices that stand and were sent. */
  readonly told: readonly string[];
  readonly failed?: FailedRun;
  readonly had: Had;
  readonly last?: Pass;
  /** The number of passes after the last entry of the audit trail, which found the same. */
  readonly repeats?: number;
}

/**
 * `kcore reconcile`: one pass. It follows the branch, compares the nodes and applies the differences within the limits; one pass at a time for a
 * project. @throws KcoreError RECONCILE_UNSET, RECONCILE_BUSY
 */
export async function reconcile(flags: ReconcileFlags): Promise<void> {
  const project = findProject(flags.project);
  const { branch, signed } = reconcileSettings(project);
  const release = await lockFolder(makeIgnoredFolder(project, "reconcile"));
  if (!release) {
    const hint = "wait for its end: systemctl status 'kcore-reconcile-*'";
    throw new KcoreError({ code: "RECONCILE_BUSY", message: "another pass is at work in this project", hint });
  }
  try {
    const file = join(project, ".kcore", "reconcile.json");
    const before = readMemory(file);
    const { vetted, failed, had } = before;
    const { revision, refused } = await followBranch(project, { branch, signed, vetted });
    const made =
      revision === undefined
        ? { ...nothing, outcome: "refused" as const, failed, had }
        : await applyDifferences(project, flags, { revision, failed, had }).catch((error: unknown) => {
            return { ...nothing, outcome: "failed" as const, failed, had, notices: problemsIn(error).map(failureOf) };
          });
    const { drifts, exitCode, waits, run } = { waits: undefined, run: undefined, ...made };
    const notices = [...refused.map(failureOf), ...made.notices];
    const pass: Pass = {
      outcome: made.outcome,
      ...omitUndefined({ revision, run }),
      differs: namesOf(drifts),
      away: drifts.filter(isAway).map(({ node }) => node),
      reasons: [...(waits === undefined ? [] : [waits]), ...notices.map(({ text }) => text)],
    };
    const told = await tell(project, notices, before.told);
    const repeats = record(project, pass, before);
    const memory = { vetted: revision ?? vetted, told, failed: made.failed, had: made.had, last: pass, repeats };
    replaceFileSync(file, `${JSON.stringify(memory, undefined, 2)}\n`);
    process.exitCode = refused.length > 0 && exitCode !== exitCodes.unreachable ? exitCodes.failed : exitCode;
    printResult(pass, flags.output, () => draw(pass));
  } finally {
    release();
  }
}

const nothing = { drifts: [], notices: [], exitCode: exitCodes.failed };

/** The memory of the last pass; an empty one without a readable file: then each notice is sent once more. */
function readMemory(file: string): Memory {
  try {
    return { told: [], had: {}, ...(JSON.parse(readFileSync(file, "utf8")) as Partial<Memory>) };
  } catch {
    return { told: [], had: {} };
  }
}

/** Sends the notices that were not sent in an earlier pass; returns those that stand and were sent. */
async function tell(project: string, notices: readonly PassNotice[], told: readonly string[]): Promise<string[]> {
  const ways = readNotices(project, trustOfProcess(process.env));
  const notifier = new Notifier(ways, { project, command: "kcore reconcile", who: whoAmI() });
  const sent: string[] = [];
  for (const { event, text } of notices) {
    const content = { event, ...(event === "question" ? { question: text } : { problem: text }) };
    const warnings = told.includes(text) ? [] : await notifier.send(content);
    for (const warning of warnings) toStderr(warning);
    // The next pass sends a notice again that failed.
    if (warnings.length === 0) sent.push(text);
  }
  return sent;
}

/** Writes a pass into the audit trail; a pass that made no run and found the same as the last one only counts. */
function record(project: string, pass: Pass, { last, repeats = 0 }: Memory): number {
  if (pass.run === undefined && JSON.stringify(pass) === JSON.stringify(last)) return repeats + 1;
  const common = { type: "reconcile.pass", who: whoAmI(), command: "kcore reconcile" } as const;
  recordRuns(project, Date.now(), { ...common, ...pass, ...(repeats > 0 && { repeats }) });
  return 0;
}

function draw({ outcome, revision = "", away, run, reasons }: Pass): string {
  const head = [outcome, revision.slice(0, 12), run === undefined ? "" : `kcore runs show ${run}`].join("  ");
  const later = away.map((node) => `${node} is down, or another run holds it: a later pass catches it up`);
  return [head.trimEnd(), ...[...later, ...reasons].map((line) => `  ${line}`), ""].join("\n");
}
