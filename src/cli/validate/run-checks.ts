import type { RunModel } from "#engine/events/run-model.ts";
import type { RunFolder } from "#engine/run/run-folder.ts";
import { KcoreError, type ExitCode } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { loadContext } from "#pki/contexts.ts";
import { contextHome } from "../process/kcore-home.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { tellWait } from "../watch/step-results.ts";
import { rowsOf, type CheckRow } from "./check-rows.ts";

export interface MadeChecks {
  readonly rows: readonly CheckRow[];
  readonly exitCode: ExitCode;
  readonly model: RunModel;
  readonly folder: RunFolder;
}

/** Runs orchestrate/validate.yaml as a dry run, which no check can get past, and gives every check. @throws KcoreError as startRun */
export async function runChecks(
  flags: RunFlags,
  { title, topics, params = {} }: { title: string; topics: readonly string[]; params?: Record<string, unknown> },
): Promise<MadeChecks> {
  const known = { topics: [...topics], ...((await hasContext(flags)) ? {} : { controllers: false }), ...params };
  const what = { kind: "orchestration", name: "validate", title } as const;
  const request = requestOf({ ...flags, dryRun: true }, what, { params: known });
  const { model, exitCode, folder } = await startRun(flags, request, { output: "quiet", onEvent: tellWait });
  return { rows: rowsOf(model), exitCode, model, folder };
}

/** Whether there is a cluster to ask; a named context that is not there is the check's own finding. */
async function hasContext({ context }: RunFlags): Promise<boolean> {
  try {
    await loadContext(contextHome(), ...(context === undefined ? [] : [context]));
    return true;
  } catch (error) {
    const isNone = error instanceof KcoreError && error.problems.every(({ code }) => code === "PKI_CONTEXT_UNKNOWN");
    return !isNone || context !== undefined;
  }
}

/** A row as JSON prints it, with the keys in a fixed order. */
export function rowAsData({ topic, check, node, result, found, detail, remedy, code }: CheckRow): object {
  return { topic, check, result, ...omitUndefined({ node, found, detail, remedy, code }) };
}
