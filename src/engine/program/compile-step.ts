import { createHash } from "node:crypto";
import type { Facts, QuickLine } from "#engine/step/define.ts";
import type { Blob } from "#engine/step/blob.ts";
import { quote } from "#engine/step/quote.ts";
import type { Secret } from "#engine/step/secret.ts";
import { rawSh, type Sh } from "#engine/step/sh.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { blobOf } from "#engine/step/blob.ts";
import { escapeLine } from "./escape.ts";
import { shippedText } from "./texts.ts";

/** The name of a step in frames and file names on the node: 12 hex digits of its id's SHA-256. */
export function stepKey(id: string): string {
  return createHash("sha256").update(id).digest("hex").slice(0, 12);
}

/** A step as the runner wants it: the text of its shell, and what must be there before. */
export interface CompiledStep {
  readonly key: string;
  readonly text: string;
  /** Names of blobs that already the probe needs, and of those only apply needs. */
  readonly early: readonly string[];
  readonly late: readonly string[];
  /** By name on the node. */
  readonly blobs: ReadonlyMap<string, Blob>;
  readonly quick?: {
    readonly lines: readonly string[];
    readonly stat: readonly string[];
    readonly sha256: readonly string[];
  };
}

export interface CompileOptions {
  /** Keys of the steps that watch this one (`restartOn`, `onChanges`). */
  readonly owes: readonly string[];
  /** Hex digits that nobody can guess, for the names of sensitive blobs. */
  readonly randomName: () => string;
}

/** Compiles one step. Pure but for the random names of sensitive blobs. */
export function compileStep(plan: PlannedStep, { owes, randomName }: CompileOptions): CompiledStep {
  const { step } = plan;
  const blobs = new Map<string, Blob>();
  const names = new Map<Blob, string>();
  const secrets = new Map<Secret, string>();
  const nameOf = (blob: Blob): string => {
    let name = names.get(blob);
    if (name === undefined) {
      name = blob.sensitive ? randomName() : blob.sha256;
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
  const render = (text: Sh | undefined): string =>
    text === undefined ? "" : text.render({ secret: secretOf, blob: (blob) => `"$K_RUN/blobs/${nameOf(blob)}"` });

  const probeTexts = [step.probe, step.guard, plan.sensitive || step.sensitive ? undefined : step.show];
  const [probe, guard, show] = probeTexts.map(render) as [string, string, string];
  const early = [...blobs.keys()];
  const [apply, react] = [step.apply, step.react].map(render) as [string, string];
  const late = [...blobs.keys()].filter((name) => !early.includes(name));

  const lines = [
    assign({
      k_i: stepKey(plan.id),
      k_as: plan.runAs ?? "",
      k_always: step.always ? "1" : "",
      k_ends: step.ends ?? "",
      k_creates: plan.creates ?? "",
      k_late: late.join(" "),
      k_owes: owes.join(" "),
      k_attempts: String((plan.retry ?? step.retry)?.attempts ?? 1),
      k_interval: String((plan.retry ?? step.retry)?.interval ?? 1),
      k_want: wantLines(step.want),
      k_secrets: "",
    }),
    assign({
      kt_probe: probe,
      kt_apply: apply,
      kt_guard: guard,
      kt_react: react,
      kt_show: show,
      kt_onlyif: plan.onlyIf ?? "",
      kt_unless: plan.unless ?? "",
    }),
  ];
  if (secrets.size > 0) {
    const values = [...secrets].map(([secret, name]) => `${name}=${quote(secret.reveal())}`).join("\n");
    const name = nameOf(blobOf(`${values}\n`, { sensitive: true }));
    early.push(name);
    lines.push(`k_secrets=$(cat "$K_RUN/blobs/${name}") && eval "$k_secrets"`);
  }
  if (plan.runAs !== undefined) lines.push(`K_LIB=${quote(shippedText("step"))}`);
  lines.push("k_main");

  return { key: stepKey(plan.id), text: lines.join("\n"), early, late, blobs, ...quickOf(plan) };
}

/** The wanted facts, one `NAME=VALUE` a line, as the step's shell compares them. */
function wantLines(want: Facts): string {
  return Object.entries(want)
    .map(([name, value]) => `${name}=${escapeLine(value)}`)
    .join("\n");
}

function assign(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value === "" ? "" : quote(value)}`)
    .join("\n");
}

/** Only paths of plain characters take part in the evidence: there, nothing is quoted and no line is ambiguous. */
const plain = /^\/[A-Za-z0-9._/+@:,=-]*$/;

function quickOf(plan: PlannedStep): Pick<CompiledStep, "quick"> {
  if (plan.sensitive || plan.step.sensitive || plan.runAs !== undefined) return {};
  if (plan.unless !== undefined || plan.onlyIf !== undefined) return {};
  // The step key `creates` decides alone: what exists is in order.
  const quick: readonly QuickLine[] =
    plan.creates !== undefined ? [{ kind: "exists", path: plan.creates }] : (plan.step.quick ?? []);
  if (quick.length === 0 || !quick.every(isPlain)) return {};
  return {
    quick: {
      lines: quick.map(quickText),
      stat: [...new Set(quick.filter(({ kind }) => kind !== "sha256").map(({ path }) => path))],
      sha256: [...new Set(quick.filter(({ kind }) => kind === "sha256").map(({ path }) => path))],
    },
  };
}

function isPlain(line: QuickLine): boolean {
  return plain.test(line.path) && (line.kind !== "symlink" || plain.test(`/${line.target}`));
}

/** The very line that `stat -c` or `sha256sum` prints (runner.sh, k_look_at); `+` and `-`: path there, not there. */
function quickText(line: QuickLine): string {
  switch (line.kind) {
    case "mode":
      return `m ${((line.type === "file" ? 0o100000 : 0o040000) | line.mode).toString(16)} ${line.path}`;
    case "owner":
      return `u ${line.owner} ${line.path}`;
    case "group":
      return `g ${line.group} ${line.path}`;
    case "sha256":
      return `${line.sha256}  ${line.path}`;
    case "symlink":
      return `l '${line.path}' -> '${line.target}'`;
    case "exists":
      return `+${line.path}`;
    case "absent":
      return `-${line.path}`;
  }
}

/** The whole input of a step's shell: the library, what the runner would set, the step's text. For tests as well. */
export function standaloneText(step: CompiledStep, variables: Readonly<Record<string, string>>): Sh {
  return rawSh([shippedText("step"), assign(variables), step.text].join("\n"));
}
