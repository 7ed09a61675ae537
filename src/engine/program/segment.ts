import { createHash } from "node:crypto";
import { quote } from "#base/quote.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import {
  type CompiledStep,
  confirmWithin,
  defaultTimeout,
  limitOf,
  stepKey,
  timeoutOf,
  toolWords,
} from "./compile-step.ts";
import type { Blob } from "#engine/step/blob.ts";
import type { StepData } from "#engine/step/define.ts";
import { type BatchPlace, BatchPlanner, batchLibrary, batchLine, provableData } from "./batch.ts";
import type { Survivals } from "./dry-run-dependencies.ts";
import { factsText, shippedText } from "./texts.ts";

export interface SegmentStep {
  readonly plan: PlannedStep;
  readonly compiled: CompiledStep;
}

/** A dry run's knowledge of earlier steps. */
export interface Foresight {
  /** The ends of earlier steps (`k_doubt` in dry-run-verdict.sh), by key, without those that are surely in order. */
  readonly ended: ReadonlyMap<string, string>;
  readonly dependencies: ReadonlyMap<string, Survivals>;
}

export interface SegmentOptions {
  readonly steps: readonly SegmentStep[];
  /** Whether to gather the node's facts after the steps. */
  readonly facts: boolean;
  /** Present in a dry run. */
  readonly foresight?: Foresight;
  /** The bastion's time when the segment is sent, in seconds since 1970; absent: steps do not know it. */
  readonly now?: number;
}

/** Matches a function of files.sh or foresee.sh in a step's text. */
export const usesFiles = new RegExp(
  String.raw`\b(?:${[...`${shippedText("files")}\n${shippedText("foresee")}`.matchAll(/^(\w+)\(\)/gm)].map(([, name]) => name).join("|")})\b`,
);

/** By name, the runner's functions that only some segments need. */
const extraFunctions = new Map(
  (["runner-on-demand", "dry-run-verdict", "trial-runner"] as const).flatMap((file) =>
    [...shippedText(file).matchAll(/^(\w+)\(\) \{\n[^]*?\n\}$/gm)].map(([text, name = ""]) => [name, text]),
  ),
);

function extraFunction(name: string): string {
  const text = extraFunctions.get(name);
  if (text === undefined) throw new Error(`no function ${name} for segments`);
  return text;
}

/** The functions of trial-runner.sh that changes on trial need. */
const trialFunctions = ["k_trial", "k_await_revert", "k_remove_trial", "k_revert_unconfirmed"];

/** The functions that steps' shells may call beyond step-functions.sh. */
function librariesOf({ isDry, hasTrials }: { readonly isDry: boolean; readonly hasTrials: boolean }): string {
  return [
    shippedText("files"),
    ...(isDry ? [shippedText("foresee")] : []),
    ...(hasTrials
      ? [extraFunction("k_remove_trial"), shippedText("trial"), `K_REVERT=${quote(shippedText("revert"))}`]
      : []),
  ].join("\n");
}

/**
 * Steps on trial by key. Consecutive ones are confirmed together: the last one has the seconds in which a new
 * connection has to confirm them all, the others `-`.
 */
function trialsOf(steps: readonly SegmentStep[]): Map<string, string> {
  const trials = new Map<string, string>();
  let seconds = 0;
  for (const [index, { plan, compiled }] of steps.entries()) {
    if (plan.risk === undefined) continue;
    seconds = Math.max(seconds, confirmWithin(plan));
    const isLast = steps[index + 1]?.plan.risk === undefined;
    trials.set(compiled.key, isLast ? String(seconds) : "-");
    if (isLast) seconds = 0;
  }
  return trials;
}

/** The text of one segment, as runner.sh sources it: its steps declared one by one, then run. */
export function segmentText({ steps, facts, now, foresight }: SegmentOptions): string {
  const planner = new BatchPlanner();
  const portions = inPortions(steps);
  const shared = sharedSkeletons(steps);
  const tools = firstTools(steps);
  const trials = foresight ? new Map<string, string>() : trialsOf(steps);
  const isWatched = steps.some(({ plan }) => plan.step.stall !== undefined);
  const needed = {
    k_tools: tools.length > 0,
    k_milestone: steps.some(({ plan }) => plan.milestone !== undefined),
    k_stdout: steps.some(({ plan }) => plan.register !== undefined),
    k_watch: isWatched,
    k_forget: portions.length > 1,
    k_quote: steps.some(({ plan }) => plan.runAs !== undefined),
    k_facts: facts,
    k_doubt: foresight !== undefined,
    ...Object.fromEntries(trialFunctions.map((name) => [name, trials.size > 0])),
  };
  return [
    ...Object.entries(needed).flatMap(([name, isNeeded]) => (isNeeded ? [extraFunction(name)] : [])),
    // A running ticker is a subshell that began without these functions: the next wait starts a new one.
    ...(isWatched ? ['[ -z "$k_ticker" ] || { kill "$k_ticker" && k_ticker=; }'] : []),
    // Steps that run later in the segment add the node's uptime since here.
    ...(now === undefined
      ? []
      : [`k_epoch=${now}`, "read -r k_epoch_up k_idle </proc/uptime", "k_epoch_up=${k_epoch_up%%.*}"]),
    ...(trials.size > 0 || steps.some(({ compiled }) => usesFiles.test(compiled.skeleton))
      ? [`K_FILES=${quote(librariesOf({ isDry: foresight !== undefined, hasTrials: trials.size > 0 }))}`]
      : []),
    ...[...trials].map(([key, seconds]) => `rk_${key}=${seconds}`),
    ...(steps.some(({ compiled }) => compiled.data) ? [`K_BATCH=${batchLibrary(foresight !== undefined).sha256}`] : []),
    ...(foresight ? foresightLines(steps, foresight) : []),
    ...evidenceFlags(steps),
    ...[...shared].map(([skeleton, name]) => `kx_${name}=${quote(skeleton)}`),
    ...portions.flatMap((portion, index) => [
      ...(index === 0 ? [] : ["k_forget"]),
      ...portion.map((step) => declareStep(step, planner, shared)),
      ...(index === 0 ? tools.flatMap((tool) => toolLines(tool, portion)) : []),
      "k_go",
    ]),
    ...(trials.size > 0 ? ["k_revert_unconfirmed"] : []),
    ...(facts ? [`k_facts ${quote(`kt_facts=${quote(factsText())}\nk_text facts; k_read fact`)}`] : []),
    "",
  ].join("\n");
}

/**
 * Most steps that a runner knows at a time. A shell is slow to find one of many variables, and to lengthen long lists: the time
 * would grow with the square of the steps.
 */
const longestPortion = 200;

/** The steps in portions; a segment without steps has one portion. */
function inPortions(steps: readonly SegmentStep[]): (readonly SegmentStep[])[] {
  return Array.from({ length: Math.max(1, Math.ceil(steps.length / longestPortion)) }, (_, at) =>
    steps.slice(at * longestPortion, (at + 1) * longestPortion),
  );
}

interface FirstTools {
  readonly step: SegmentStep;
  readonly words: readonly string[];
}

/** Looks for the programs of a step; a step that is declared later gets its title here. */
function toolLines({ step, words }: FirstTools, declared: readonly SegmentStep[]): string[] {
  const { key } = step.compiled;
  const title = declared.includes(step) ? [] : [`title_${key}=${quote(asciiTitle(step.plan))}`];
  return [...title, `k_tools ${key} ${words.join(" ")}`];
}

/**
 * Programs to look for before anything is applied, by the first step that needs them, unless an earlier step can bring
 * them. A step that may not run at all, or whose evidence may hold, looks for its programs only at its turn.
 */
function firstTools(steps: readonly SegmentStep[]): FirstTools[] {
  const known = new Set<string>();
  const end = steps.findIndex(({ plan }) => plan.step.brings);
  return steps.slice(0, end === -1 ? undefined : end + 1).flatMap((step) => {
    const { plan, compiled } = step;
    const { onlyIf, unless, creates, onChanges, onFailure, severity } = plan;
    // A check without its program fails alone, at its turn.
    const mayNotRun = [onlyIf, unless, creates, severity].some((key) => key !== undefined);
    if (mayNotRun || onChanges.length + onFailure.length > 0 || compiled.evidence !== "") return [];
    const words = toolWords(plan).filter((word) => !known.has(word));
    for (const word of words) known.add(word);
    return words.length === 0 ? [] : [{ step, words }];
  });
}

/**
 * `o_KEY`: the ends of earlier steps, where they matter; `a_KEY`: a step's dependencies, each with the verdicts that
 * survive it.
 */
function foresightLines(steps: readonly SegmentStep[], { ended, dependencies }: Foresight): string[] {
  const here = new Set(steps.map(({ compiled }) => compiled.key));
  const lists = steps.map(({ compiled: { key } }) => ({
    key,
    on: [...(dependencies.get(key) ?? [])].filter(([earlier]) => here.has(earlier) || ended.has(earlier)),
  }));
  return [
    ...(ended.size > 0 ? ["k_unsure=1"] : []),
    ...[...ended].map(([key, word]) => `o_${key}=${word}`),
    ...lists
      .filter(({ on }) => on.length > 0)
      .map(({ key, on }) => `a_${key}='${on.map(([earlier, kept]) => `${kept}${earlier}`).join(" ")}'`),
  ];
}

/** The blobs that the segment may ask for, by name on the node. */
export function blobsOf(steps: readonly SegmentStep[], { dryRun = false } = {}): Map<string, Blob> {
  const blobs = new Map(steps.flatMap(({ compiled }) => [...compiled.blobs]));
  const library = batchLibrary(dryRun);
  if (steps.some(({ compiled }) => compiled.data)) blobs.set(library.sha256, library);
  return blobs;
}

/** Names for texts that several steps share, so that they are sent once. */
function sharedSkeletons(steps: readonly SegmentStep[]): ReadonlyMap<string, number> {
  const uses = new Map<string, number>();
  for (const { compiled } of steps) uses.set(compiled.skeleton, (uses.get(compiled.skeleton) ?? 0) + 1);
  const shared = [...uses].filter(([skeleton, count]) => skeleton !== "" && count > 1);
  return new Map(shared.map(([skeleton], index) => [skeleton, index + 1]));
}

/** The line that says whether the evidence needs names of owners (`k_names`), and targets of links (`k_links`). */
export function evidenceFlags(steps: readonly Pick<SegmentStep, "plan">[]): string[] {
  const data = steps.flatMap(({ plan }) => provableData(plan) ?? []);
  const hasOwner = data.some((one) => "owner" in one && (one.owner ?? one.group) !== undefined);
  const hasLink = data.some(({ kind }) => kind === "symlink");
  return [`k_names=${hasOwner ? "1" : ""} k_links=${hasLink ? "1" : ""}`];
}

/** Chunks of at most 1 MiB of each stream's end that stay on the node when output comes faster than it can be sent. */
const outputChunks = 2;
/** Chunks of an answer to `kcore exec --lock` that stay: as many as the run records (src/engine/run/output-cap.ts). */
const answerChunks = 64;

function declareStep(step: SegmentStep, planner: BatchPlanner, shared: ReadonlyMap<string, number>): string {
  const { data } = step.compiled;
  if (data) return declareBatchStep(step, data, planner.place(data));
  planner.close();
  return declareStepAlone(step, shared);
}

function declareBatchStep({ plan, compiled }: SegmentStep, data: StepData, { opens, wave }: BatchPlace): string {
  const { key, owes } = compiled;
  const line = batchLine(data, { key, wave, seconds: timeoutOf(plan), owes: owes.join(","), shows: hasDiff(plan) });
  const variables = assignments({ nb: opens ? "1" : "", ms: plan.milestone ?? "" });
  return [...variables, `k_data ${quote(asciiTitle(plan))} ${line}`].join("\n");
}

function declareStepAlone({ plan, compiled }: SegmentStep, shared: ReadonlyMap<string, number>): string {
  const keys = (ids: readonly string[]): string => ids.map(stepKey).join(" ");
  const { key, early, late, blobs } = compiled;
  // The evidence alone never ends the last step of a trial: earlier ones may have changed something.
  const evidence = plan.risk === undefined ? compiled.evidence : "";
  const limit = limitOf(plan);
  const sizeOf = (name: string): number => blobs.get(name)?.size ?? 0;
  const variables = assignments({
    i: key,
    title: asciiTitle(plan),
    q: evidence,
    to: limit === String(defaultTimeout) ? "" : limit,
    early: early.join(" "),
    late: late.join(" "),
    // Large blobs wait for the step's turn if it has no evidence, and so do those from which the step chooses itself.
    big: evidence !== "" ? "" : [...early, ...late].filter((name) => plan.step.asks || sizeOf(name) > 65_536).join(" "),
    as: plan.runAs === undefined ? "" : "1",
    rs: keys(plan.restartOn),
    ch: keys(plan.onChanges),
    fo: keys(plan.onFailure),
    live: plan.step.quiet ? "" : String(plan.exact ? answerChunks : outputChunks),
    look: mayBeInOrder(plan, evidence !== "") ? "1" : "",
    rg: plan.register === undefined ? "" : "1",
    ck: plan.severity ?? "",
    rq: plan.severity === undefined ? "" : keys(plan.require),
    ms: plan.milestone ?? "",
    sk: String(shared.get(compiled.skeleton) ?? ""),
    tx: shared.has(compiled.skeleton) ? compiled.text : `${compiled.skeleton}\n${compiled.text}`,
  });
  return [...variables, "k_add"].join("\n");
}

function assignments(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).flatMap(([name, value]) => (value === "" ? [] : [`${name}=${quote(value)}`]));
}

function asciiTitle({ title }: PlannedStep): string {
  return title.replace(/[^\x20-\x7e]/g, "?");
}

/** Whether a first pass without readers pays: the step may be in order, and its probe prints nothing to show. */
function mayBeInOrder({ step, creates, unless, onlyIf, register }: PlannedStep, hasEvidence: boolean): boolean {
  if (step.quiet || !step.apply || onlyIf !== undefined || register !== undefined) return false;
  // The evidence alone decides about `creates`, and has shown that its path is absent.
  if (step.always && creates !== undefined && hasEvidence) return false;
  return !step.always || creates !== undefined || unless !== undefined;
}

function hasDiff({ step, sensitive }: PlannedStep): boolean {
  return step.show !== undefined && !sensitive && step.sensitive !== true;
}

export function sha256OfBytes(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
