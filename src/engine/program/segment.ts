import { createHash } from "node:crypto";
import { quote } from "#engine/step/quote.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { type CompiledStep, stepKey } from "./compile-step.ts";
import { shippedText } from "./texts.ts";

/** A step of a segment. */
export interface SegmentStep {
  readonly plan: PlannedStep;
  readonly compiled: CompiledStep;
}

export interface SegmentOptions {
  readonly steps: readonly SegmentStep[];
  /** Gather the node's facts after the steps. */
  readonly facts: boolean;
  /** When it ends in order the runner ends too, without being asked. */
  readonly isLast?: boolean;
  /** The bastion's time when the segment is sent, in seconds since 1970; absent: steps do not know it. */
  readonly now?: number;
}

/** Seconds a step may take when neither it nor its module says otherwise. */
const defaultTimeout = 60;

/** The text of one segment, as runner.sh sources it. */
export function segmentText({ steps, facts, isLast = false, now }: SegmentOptions): string {
  const quick = steps.flatMap(({ compiled }) => compiled.quick ?? []);
  const stat = unique(quick.flatMap((lines) => lines.stat));
  const sums = unique(quick.flatMap((lines) => lines.sha256));
  return [
    // Steps that run later in the segment reckon from here, by the node's uptime.
    ...(now === undefined
      ? []
      : [`k_epoch=${now}`, "read -r k_epoch_up k_idle </proc/uptime", "k_epoch_up=${k_epoch_up%%.*}"]),
    ...(isLast ? ["k_last=done"] : []),
    ...(quick.length > 0 ? [`k_look_at ${[...stat, "--", ...sums].map(quote).join(" ")}`] : []),
    ...wantedBlobs(steps),
    ...steps.map(stepText),
    ...(facts ? [`k_facts ${quote(`kt_facts=${quote(shippedText("facts"))}\nk_text facts; k_read fact`)}`] : []),
    "",
  ].join("\n");
}

/** How long the step may run, all its attempts together, in seconds. */
export function timeoutOf({ timeout, retry, step }: PlannedStep): number {
  const attempts = retry ?? step.retry;
  const once = step.timeout ?? defaultTimeout;
  return Math.ceil(timeout ?? (attempts ? Math.max(once, attempts.attempts * (attempts.interval + 5)) : once));
}

function stepText({ plan, compiled }: SegmentStep): string {
  const keys = (ids: readonly string[]): string => ids.map(stepKey).join(" ");
  const variables: Readonly<Record<string, string>> = {
    i: compiled.key,
    title: plan.title.replace(/[^\x20-\x7e]/g, "?"),
    q: compiled.quick?.lines.join("\n") ?? "",
    early: compiled.early.join(" "),
    late: compiled.late.join(" "),
    rs: keys(plan.restartOn),
    ch: keys(plan.onChanges),
    fo: keys(plan.onFailure),
    to: String(timeoutOf(plan)),
    live: plan.step.quiet ? "" : "1",
    rg: plan.register === undefined ? "" : "1",
    ms: plan.milestone ?? "",
    tx: compiled.text,
  };
  const words = Object.entries(variables).map(([name, value]) => `${name}=${value === "" ? "" : quote(value)}`);
  return `${words.join("\n")}\nk_step`;
}

/**
 * All blobs that the segment is sure or likely to need are asked for at once, before its first step: those of steps
 * whose quick lines do not hold, and small ones of steps that have none. The others are asked for when it is their turn.
 */
function wantedBlobs(steps: readonly SegmentStep[]): string[] {
  const lines = steps.flatMap(({ compiled: { quick, blobs, early, late } }) => {
    const small = [...early, ...late].filter((name) => quick || (blobs.get(name)?.size ?? 0) <= 65_536);
    if (small.length === 0) return [];
    const ask = `k_wanted="$k_wanted ${small.join(" ")}"`;
    return [quick ? `k_quick ${quote(quick.lines.join("\n"))} || ${ask}` : ask];
  });
  if (lines.length === 0) return [];
  return ["k_wanted=", ...lines, '[ -n "$K_DRY$k_stop$k_failed" ] || k_need $k_wanted'];
}

function unique(words: readonly string[]): string[] {
  return [...new Set(words)];
}

export function sha256Of(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
