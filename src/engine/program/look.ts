import { quote } from "#base/quote.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { runAssignments, type RunVariables, stepEnvironment, wholeText } from "./bootstrap.ts";
import { evidenceOf, exportLines, timeoutOf, toolWords, wantLines, WordNames } from "./compile-step.ts";
import type { Frame } from "./frames.ts";
import { evidenceFlags, sha256OfBytes, usesFiles } from "./segment.ts";
import { shippedText } from "./texts.ts";

/** A look at some steps (look.sh): it finds out whether all of them are in order, and changes nothing. */
export interface Look {
  /** The function `k_steps`. */
  readonly steps: string;
  /** SHA-256 of `steps`, in hex: equal looks have equal answers on an unchanged node. */
  readonly hash: string;
  /** Some steps have a probe or a condition, which needs the environment of steps. */
  readonly hasTexts: boolean;
  /** Some steps have a probe or need tools, so look.sh needs the functions for texts of modules. */
  readonly hasProbes: boolean;
  /** Milliseconds that all probes together may take. */
  readonly limit: number;
}

interface LookedStep {
  readonly key: string;
  readonly plan: PlannedStep;
}

/** Most steps of one `stat` and one `sha256sum`: a shell is slow to collect the paths of more. */
const longestEvidence = 200;
/** Milliseconds for all probes together, beside the limits of their steps. */
const ownLimit = 5_000;
/** Matches variables of the runner that a look does not have. */
const usesRunner = /\bK_(?:TMP|RUN|GRANTED)\b|\bk_unique\b/;

/** The look at these steps; undefined if only a runner can tell whether they are in order. */
export function lookAt(steps: readonly LookedStep[]): Look | undefined {
  const needed = steps
    .filter(({ plan }) => !isUnneeded(plan))
    .map((step) => ({ ...step, evidence: evidenceOf(step.plan) }));
  const proved = needed.flatMap(({ evidence }) => (evidence === "" ? [] : shortWords(evidence)));
  const probed = needed.filter(({ evidence }) => evidence === "");
  if (!probed.every(({ plan }) => canProbe(plan))) return undefined;
  const milestones = needed.flatMap(({ plan }) => (plan.milestone === undefined ? [] : JSON.stringify(plan.milestone)));
  const text = [
    "k_steps() {",
    ":",
    ...(proved.length > 0 ? evidenceFlags(needed) : []),
    ...portions(proved).map((words) => `k_prove ${words.map(quote).join(" ")} || return 1`),
    ...(probed.length > 0 ? ["k_begin_probes", ...probeLines(probed)] : []),
    ...(milestones.length > 0 ? [`k_reached ${milestones.map(quote).join(" ")} || return 1`] : []),
    "}",
  ].join("\n");
  const limit = ownLimit + 1000 * probed.reduce((sum, { plan }) => sum + timeoutOf(plan), 0);
  return {
    steps: text,
    hash: sha256OfBytes(text),
    hasTexts: probed.length > 0,
    hasProbes: probed.some(({ plan }) => !plan.step.always || toolWords(plan).length > 0),
    limit,
  };
}

/** The program of a look, for the node's shell. `now`: seconds since 1970. */
export function lookText(run: RunVariables, { steps, hasTexts, hasProbes }: Look, now: number): string {
  const text = [
    ...runAssignments(run),
    `K_NOW=${now}`,
    shippedText("state-folder"),
    shippedText("evidence"),
    ...(hasProbes ? [shippedText("step-functions")] : []),
    steps,
    shippedText("look"),
  ].join("\n");
  return `${hasTexts ? stepEnvironment(run) : ""}${wholeText(run, text)}`;
}

/** The frames that a runner would have sent for steps in order. `skipped`: keys of those that `onlyIf` skips. */
export function framesInOrder(steps: readonly LookedStep[], skipped: ReadonlySet<string>): readonly Frame[] {
  return steps.flatMap(({ key, plan }) => {
    if (plan.onFailure.length > 0) return { type: "end", rest: `${key} skipped 0 nothing failed` };
    if (plan.onChanges.length > 0) return { type: "end", rest: `${key} skipped 0 nothing it watches changed` };
    const end = skipped.has(key) ? { type: "end", rest: `${key} skipped 12` } : { type: "quick", rest: key };
    return plan.milestone === undefined ? end : [end, { type: "milestone", rest: `${key} ${plan.milestone}` }];
  });
}

/** The words of a step's evidence, without those between type and path, which only a runner needs. */
function shortWords(evidence: string): string {
  const [type, _wave, _key, _seconds, _owes, ...rest] = evidence.split(" ");
  return [type, ...rest].join(" ");
}

/** Whether the step has nothing to do where no earlier step changed or failed. */
function isUnneeded({ onChanges, onFailure }: PlannedStep): boolean {
  return onChanges.length + onFailure.length > 0;
}

/** Whether look.sh can tell if the step is in order, without an apply and without the runner's variables, contents and secrets. */
function canProbe({ step, runAs, creates, unless, onlyIf, environment }: PlannedStep): boolean {
  const conditions = [creates, unless, onlyIf].filter((condition) => condition !== undefined);
  if (runAs !== undefined || usesRunner.test([...conditions, exportLines(environment)].join("\n"))) return false;
  if (step.always) return conditions.length > 0;
  const { probe } = step;
  return (
    probe.blobs.length + probe.secrets.length === 0 && ![usesRunner, usesFiles].some((one) => one.test(probe.masked))
  );
}

function probeLines(steps: readonly LookedStep[]): string[] {
  const probes = new Map<string, string>();
  return steps.flatMap(({ key, plan }) => {
    const { step, creates, unless, onlyIf, environment, register } = plan;
    const words = new WordNames();
    const probe = step.always ? "" : step.probe.render({ secret: String, blob: String, word: words.nameOf });
    const name = probes.get(probe) ?? `kx_${probes.size + 1}`;
    const values = {
      k_always: step.always ? "1" : "",
      k_creates: creates ?? "",
      k_tools: toolWords(plan).join(" "),
      k_want: wantLines(step.want),
      k_env: exportLines(environment),
      k_registers: register === undefined ? "" : "1",
      kt_unless: unless ?? "",
      kt_onlyif: onlyIf ?? "",
      ...(probes.has(probe) ? {} : { [name]: probe }),
    };
    probes.set(probe, name);
    return [
      `k_step ${key}`,
      ...Object.entries(values).flatMap(([variable, value]) => (value === "" ? [] : [`${variable}=${quote(value)}`])),
      ...words.assignments(),
      ...(probe === "" ? [] : [`kt_probe=$${name}`]),
      "k_probe || return 1",
    ];
  });
}

function portions(words: readonly string[]): (readonly string[])[] {
  return Array.from({ length: Math.ceil(words.length / longestEvidence) }, (_, at) =>
    words.slice(at * longestEvidence, (at + 1) * longestEvidence),
  );
}
