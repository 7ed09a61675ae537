import { createHash } from "node:crypto";
import type { StepFacts, Step, StepData } from "#engine/step/define.ts";
import type { Blob } from "#engine/step/blob.ts";
import { quote } from "#base/quote.ts";
import type { Secret } from "#engine/step/secret.ts";
import { sh, type Sh } from "#engine/step/sh.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { blobName, blobOf } from "#engine/step/blob.ts";
import { batchBlob, batchLine, isBatched, isPlainPath, provableData } from "./batch.ts";
import { escapeLine } from "./frames.ts";
import { shippedText } from "./texts.ts";

const stepKeys = new Map<string, string>();

/** The name of a step in frames and file names on the node: 12 hex digits of its id's SHA-256. Nodes share their steps' ids. */
export function stepKey(id: string): string {
  let key = stepKeys.get(id);
  if (key === undefined) stepKeys.set(id, (key = createHash("sha256").update(id).digest("hex").slice(0, 12)));
  return key;
}

/** A step for the runner: the text of its shell, or its data for a batch, and its blobs. */
export interface CompiledStep {
  readonly key: string;
  /** Empty for a step that batches apply. */
  readonly text: string;
  /**
   * The module's texts, with variables in their holes: equal for all steps of one module with arguments of one shape.
   * It comes before `text`, which begins with the values.
   */
  readonly skeleton: string;
  /** Names of the blobs that must be there before the probe: those of probe, guard and show, and the secrets. */
  readonly early: readonly string[];
  /** Names of the blobs that only apply, asks and react need. */
  readonly late: readonly string[];
  /** All blobs by their names on the node, `Step.offers` included. */
  readonly blobs: ReadonlyMap<string, Blob>;
  /** Words of the evidence when the step is in order; empty: the evidence proves nothing, or batches apply the step. */
  readonly evidence: string;
  /** Keys of the steps that watch this one. */
  readonly owes: readonly string[];
  readonly data?: StepData;
}

export interface CompileOptions {
  /** Keys of the steps that watch this one (`restartOn`, `onChanges`). */
  readonly owes: readonly string[];
  /**
   * For a dry run: whether an earlier step makes the folder above, and the users and groups that earlier steps make.
   */
  readonly earlierChanges?: { readonly isFolderMade: boolean; readonly made: readonly string[] };
  /** Unguessable hex digits, for the names of sensitive blobs. */
  readonly randomName: () => string;
}

/** Compiles one step, for a batch if batches support it, else for a shell of its own. Pure but for the random names of sensitive blobs. */
export function compileStep(plan: PlannedStep, options: CompileOptions): CompiledStep {
  const { isFolderMade = false, made = [] } = options.earlierChanges ?? {};
  const batchData = isBatched(plan) && made.length === 0 ? plan.step.data : undefined;
  if (!batchData) return compileAlone(plan, options);
  const data = isFolderMade && "makeDirs" in batchData ? { ...batchData, makeDirs: true } : batchData;
  const blobs = new Map(data.kind === "file" ? [[data.blob.sha256, batchBlob(data.blob)]] : []);
  return {
    key: stepKey(plan.id),
    text: "",
    skeleton: "",
    early: [],
    late: [...blobs.keys()],
    blobs,
    evidence: "",
    owes: options.owes,
    data,
  };
}

/** Compiles a step that runs in a shell of its own, also one that a batch could apply. */
export function compileAlone(plan: PlannedStep, { owes, randomName, earlierChanges }: CompileOptions): CompiledStep {
  const { step } = plan;
  const blobs = new Map<string, Blob>();
  const names = new Map<Blob, string>();
  const secrets = new Map<Secret, string>();
  const blobNameOf = (blob: Blob): string => {
    let name = names.get(blob);
    if (name === undefined) {
      name = blob.sensitive ? randomName() : blobName(blob);
      names.set(blob, name);
      blobs.set(name, blob);
    }
    return name;
  };
  const secretOf = (secret: Secret): string => {
    let name = secrets.get(secret);
    if (name === undefined) secrets.set(secret, (name = `kS_${secrets.size + 1}`));
    return `"$${name}"`;
  };
  const words = new WordNames();
  const blobPath = (blob: Blob): string =>
    `"$K_RUN"/blobs/${plan.runAs === undefined ? words.nameOf(blobNameOf(blob)) : blobNameOf(blob)}`;
  // A step that runs as another user gets the text alone, so its values stand in the text.
  const holes = { secret: secretOf, blob: blobPath, ...(plan.runAs === undefined && { word: words.nameOf }) };
  const render = (text: Sh | undefined): string => (text === undefined ? "" : text.render(holes));

  const guardText = earlierChanges ? dryRunGuard(step) : step.guard;
  const probeTexts = [step.probe, guardText, plan.sensitive || step.sensitive ? undefined : step.show];
  const [probe, guard, show] = probeTexts.map(render) as [string, string, string];
  const early = [...blobs.keys()];
  const [apply, react] = [step.apply, step.react].map((text) => render(withRecord(plan, text))) as [string, string];
  const asks = render(step.asks);
  const late = [...blobs.keys()].filter((name) => !early.includes(name));

  const lines = [
    assign({
      k_key: stepKey(plan.id),
      k_as: plan.runAs ?? "",
      k_always: step.always ? "1" : "",
      k_ends: step.ends ?? "",
      k_creates: plan.creates ?? "",
      k_late: late.join(" "),
      k_owes: owes.join(" "),
      k_attempts: (plan.retry ?? step.retry)?.attempts ?? "",
      k_interval: (plan.retry ?? step.retry)?.interval ?? "",
      k_want: wantLines(step.want),
      k_tools: toolWords(plan).join(" "),
    }),
    assign({ k_env: exportLines(plan.environment), kt_onlyif: plan.onlyIf ?? "", kt_unless: plan.unless ?? "" }),
    ...words.assignments(),
    ...(earlierChanges
      ? [assign({ k_folder_made: earlierChanges.isFolderMade ? "1" : "", k_made: earlierChanges.made.join(" ") })]
      : []),
  ];
  if (secrets.size > 0) {
    const revealed = [...secrets].map(([secret, name]) => `${name}=${quote(secret.reveal())}`).join("\n");
    const name = blobNameOf(blobOf(`${revealed}\n`, { sensitive: true }));
    early.push(name);
    lines.push(`k_secrets=$(cat "$K_RUN/blobs/${name}") && eval "$k_secrets"`);
  }
  lines.push("k_main");

  for (const blob of step.offers ?? []) blobs.set(blobName(blob), blob);
  const texts = assign({
    kt_probe: probe,
    kt_apply: apply,
    kt_guard: guard,
    kt_react: react,
    kt_show: show,
    kt_asks: asks,
  });
  const more = step.asks ? "offered-blobs" : step.tells ? "reported-change" : undefined;
  const skeleton = more ? `${shippedText(more)}\n${texts}` : texts;
  const text = lines.filter((line) => line !== "").join("\n");
  return { key: stepKey(plan.id), text, skeleton, early, late, blobs, evidence: evidenceOf(plan), owes };
}

/**
 * The lines that export the step's own variables before each of its texts. The step's PATH comes before the runner's, which kcore's texts
 * need.
 */
export function exportLines(environment: PlannedStep["environment"] = {}): string {
  return Object.entries(environment)
    .map(([name, value]) => `export ${name}=${quote(value)}${name === "PATH" ? ':"$PATH"' : ""}`)
    .join("\n");
}

/** Seconds that a step may take if neither the step nor its module sets a limit. */
export const defaultTimeout = 60;

/** Seconds that all attempts of the step may take together. */
export function timeoutOf({ timeout, retry, step }: PlannedStep): number {
  const attempts = retry ?? step.retry;
  const once = step.timeout ?? defaultTimeout;
  return Math.ceil(timeout ?? (attempts ? Math.max(once, attempts.attempts * (attempts.interval + 5)) : once));
}

/** The limit of a step in the runner's form: for a watched step, the seconds without progress follow after a slash. */
export function limitOf(plan: PlannedStep): string {
  const { stall } = plan.step;
  return stall === undefined ? String(timeoutOf(plan)) : `${timeoutOf(plan)}/${stall}`;
}

/** Seconds in which a new connection has to confirm the changes of a step on trial. */
export function confirmWithin({ confirm = 30 }: PlannedStep): number {
  return Math.ceil(confirm);
}

/** The apply or react of a step on trial, after it has recorded the present state, once for all attempts (trial.sh). */
function withRecord(plan: PlannedStep, text: Sh | undefined): Sh | undefined {
  const { risk, step } = plan;
  if (risk === undefined || text === undefined || !step.keep) return text;
  return sh`trial_open ${timeoutOf(plan) + confirmWithin(plan)} || exit 1
[ -e "$k_trial/$k_key" ] || {
${step.keep}
: >"$k_trial/$k_key" && sync
} || exit 1
${text}`;
}

/** The guard of a dry run: the step's guard, then its `foresee`. */
function dryRunGuard({ guard, foresee }: Step): Sh | undefined {
  return guard && foresee
    ? sh`${guard}
[ $? = 0 ] || exit
${foresee}`
    : (foresee ?? guard);
}

/**
 * Programs that a step needs, each with its package as one word. None for a step with a user or PATH of its own, where
 * the runner's PATH decides nothing.
 */
export function toolWords({ step: { tools = [] }, runAs, environment }: PlannedStep): string[] {
  if (runAs !== undefined || environment?.["PATH"] !== undefined) return [];
  return tools.map(({ command, package: name }) => `${command}=${name}`);
}

/** The wanted facts, one `NAME=VALUE` a line, as the step's shell compares them. */
export function wantLines(want: StepFacts): string {
  return Object.entries(want)
    .map(([name, value]) => `${name}=${escapeLine(value)}`)
    .join("\n");
}

/** Assignments of the values that are not empty; step.sh has the defaults of the others. */
function assign(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => `${name}=${quote(String(value))}`)
    .join("\n");
}

/**
 * The words of the evidence when the step is in order; empty: no evidence can prove it. The key `creates` decides alone, so its evidence is
 * that the path exists (type `e`).
 */
export function evidenceOf(plan: PlannedStep): string {
  const { creates } = plan;
  if (creates === undefined) {
    const data = provableData(plan);
    return data ? batchLine(data) : "";
  }
  const decidedInSh = plan.unless !== undefined || plan.onlyIf !== undefined || plan.runAs !== undefined;
  return decidedInSh || plan.sensitive || plan.step.sensitive || !isPlainPath(creates) ? "" : `e 0 - 0 - ${creates}`;
}

/** Variables for the quoted values in a step's texts, so that steps of one module with arguments of one shape have equal texts. */
export class WordNames {
  readonly #names = new Map<string, string>();

  /** The variable of the value, as a word of sh. */
  readonly nameOf = (quoted: string): string => {
    let name = this.#names.get(quoted);
    if (name === undefined) this.#names.set(quoted, (name = `kv_${this.#names.size + 1}`));
    return `"$${name}"`;
  };

  assignments(): string[] {
    return [...this.#names].map(([quoted, name]) => `${name}=${quoted}`);
  }
}
