import type { Problem } from "#errors/problem.ts";
import type { StepRun } from "./steps.ts";

/** The grant in a refusal's message. @throws Error if there is none */
export function grantOf({ problem }: { readonly problem?: Problem | undefined }): string {
  const [, grant] = /--grant (\S+:[0-9a-f]{16})/.exec(problem?.message ?? "") ?? [];
  if (grant === undefined) throw new Error(`no grant is named: ${JSON.stringify(problem)}`);
  return grant;
}

/** Runs a step that must be refused, then again with the grant that the refusal names. */
export async function runGranted(run: (granted: readonly string[]) => StepRun | Promise<StepRun>): Promise<StepRun> {
  return run([grantOf(await run([]))]);
}
