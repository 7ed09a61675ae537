import { sh } from "#engine/step/sh.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { SessionOptions } from "#engine/session/session.ts";
import { commandStep, draftOf, sessionOn } from "./sessions.ts";

/** A session that {@link longWork} is done in, as data for a process of its own. */
export type SessionPlan = Pick<SessionOptions, "endpoint" | "runId" | "nonce" | "attempt" | "resumed"> & {
  readonly folder: string;
};

/** A step that lasts until the file `release` is there, and a step behind it; both write to `log`. */
export function longWork(folder: string): UnresolvedStep[] {
  const long = sh`until [ -e ${`${folder}/release`} ]; do sleep 0.05; done; echo long >>${`${folder}/log`}`;
  return [draftOf("long", commandStep(long)), draftOf("next", commandStep(sh`echo next >>${`${folder}/log`}`))];
}

// As a program: prints each event, then the result, as a line of JSON.
if (import.meta.main) {
  const { folder, ...plan } = JSON.parse(process.argv[2] ?? "") as SessionPlan;
  const run = sessionOn(`${folder}/state`, plan);
  const print = (value: unknown): void => console.log(JSON.stringify(value));
  void run.seen((event) => (print(event), false));
  const { outcome, problem } = await run.session.perform([{ stage: "s", drafts: longWork(folder) }]);
  await run.session.finish(outcome, problem);
  print({ type: "result", outcome, problem });
}
