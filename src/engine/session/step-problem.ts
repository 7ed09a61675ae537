import { formatBytes } from "#base/units.ts";
import type { Problem } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Change } from "#engine/events/event.ts";
import { timeoutOf } from "#engine/program/compile-step.ts";
import { MASK } from "#engine/step/secret.ts";
import type { StepFacts } from "#engine/step/define.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { refusalHint } from "./problems.ts";
import { truncate, type StepRecord } from "./step-record.ts";

/** Characters of a found value that an event holds at most. */
const maxValue = 4096;

/** Why a step failed, by the status in its `end` frame; of a check with its reason and remedy. */
export function stepProblem(record: StepRecord, rc: string): Problem {
  const problem = causeOf(record, rc);
  const { severity, reason, remedy } = record.plan ?? {};
  if (severity === undefined) return problem;
  const detail = [problem.detail, reason].filter(Boolean).join("\n");
  return { ...problem, ...(detail !== "" && { detail }), ...omitUndefined({ hint: remedy ?? problem.hint }) };
}

/** The message of a check that does not hold: its title and the values that were found. */
function foundText({ draft }: StepRecord, differing: readonly Change[], errors: string): string {
  const own = differing.filter(({ name }) => name !== "check");
  const found = own.map(
    ({ name, have = "nothing", want }) => `${name}: ${have}${want === "ok" ? "" : `, not ${want}`}`,
  );
  const said = (found.length > 0 ? found : errors.split("\n").slice(-3)).join("; ") || "does not hold";
  // The title of an item of `each` ends with the item.
  return said.startsWith(draft.title.replace(/\[[^]*\]$/, "")) ? said : `${draft.title}: ${said}`;
}

function causeOf(record: StepRecord, rc: string): Problem {
  const { draft, plan, problem } = record;
  const errors = isHidden(plan) ? "" : record.stderrEnd.trimEnd();
  const said = problem ? `${problem.message}\n${problem.detail ?? ""}` : errors;
  // The lines of a sensitive step can hold a secret.
  const at = !isHidden(plan) ? { at: draft.argumentAt?.(said) ?? draft.at } : { at: draft.at, conceal: true as const };
  if (problem) return { ...at, ...omitUndefined({ hint: refusalHint(problem, draft.module) }), ...problem };
  const detail = errors === "" ? {} : { detail: errors };
  const title = `“${draft.title}” (${draft.module})`;
  const differing = changesOf({ ...record, have: Object.keys(record.now).length > 0 ? record.now : record.have });
  const list = differing
    .map(({ name, have, want }) => `${name}: wanted ${want}, found ${have ?? "nothing"}`)
    .join("\n");
  if (rc === "timeout")
    return {
      code: "STEP_TIMEOUT",
      message: `${title} took longer than ${plan ? timeoutOf(plan) : 60} s`,
      ...at,
      ...detail,
      hint: "set timeout: on the step if it needs more",
    };
  const [, silent, kilobytes] = /^stalled:(\d{1,9}):(\d{1,15})$/.exec(rc) ?? [];
  if (silent !== undefined)
    return {
      code: "STEP_STALLED",
      message: `${title} moved nothing for ${silent} s, after ${formatBytes(Number(kilobytes) * 1000)}`,
      ...at,
      ...detail,
      hint: "the cause may be a mirror that does not answer, a disk that hangs, or a question without a terminal",
    };
  if (rc === "15")
    return {
      code: "STEP_NOT_CONVERGED",
      message: `${title} was applied but is not in order`,
      ...at,
      detail: [list, errors].filter(Boolean).join("\n"),
    };
  const hint = hintOf(errors);
  if (rc === "16")
    return { code: "PROBE_FAILED", message: `${title} could not be looked at`, ...at, ...detail, ...hint };
  if (rc === "17")
    return {
      code: "ASSERTION_FAILED",
      message:
        plan?.severity === undefined || isHidden(plan)
          ? `${title} does not hold`
          : foundText(record, differing, errors),
      ...at,
      detail: [list, errors].filter(Boolean).join("\n"),
    };
  const status =
    record.rc === 0 ? "" : record.rc > 128 ? ` (killed by signal ${record.rc - 128})` : ` with exit code ${record.rc}`;
  return { code: "STEP_FAILED", message: `${title} failed${status}`, ...at, ...detail, ...hint };
}

/** Messages of programs that do not name their cause, each with a hint. */
const hints: readonly (readonly [said: RegExp, hint: string])[] = [
  [
    /Operation not permitted/,
    "the file may be immutable (lsattr FILE shows i or a; chattr -i FILE), the step's user not root, or the machine a container without that right",
  ],
  [
    /\\r'|\^M|\n: (?:command )?not found/,
    "CR LF ends the lines of a script, and a shell takes the CR for part of a word: sed -i 's/\\r$//' FILE",
  ],
];

function hintOf(errors: string): { readonly hint?: string } {
  return omitUndefined({ hint: hints.find(([said]) => said.test(errors))?.[1] });
}

/** The wanted facts that the node does not have. */
export function changesOf({ plan, have }: { plan?: PlannedStep | undefined; have: StepFacts }): Change[] {
  if (!plan) return [];
  const mask = (value: string): string => (isHidden(plan) ? MASK : cleanText(truncate(value, maxValue)));
  return Object.entries(plan.step.want)
    .filter(([name, want]) => have[name] !== want)
    .map(([name, want]) => ({
      name,
      want: mask(want),
      ...(have[name] !== undefined && { have: mask(have[name]) }),
    }));
}

/** Whether values and output of the step must not be shown. A step without a plan counts as sensitive. */
export function isHidden(plan: PlannedStep | undefined): boolean {
  return plan === undefined || plan.sensitive || plan.step.sensitive === true;
}
