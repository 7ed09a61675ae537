import type { StepData } from "#engine/step/define.ts";
import { isAccountId, modeNumber } from "#engine/step/fields.ts";
import { asAssignment, type Blob, blobOf } from "#engine/step/blob.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { shippedText } from "./texts.ts";

/**
 * Only paths of plain characters take part in the evidence and in batches: they need no quoting and make no line
 * ambiguous.
 */
const plainPath = /^\/[A-Za-z0-9._/+@:,=-]*$/;

export function isPlainPath(path: string): boolean {
  return plainPath.test(path);
}

/** The data of a step if the evidence can prove it: with plain names, and owners by name as `stat` prints them. */
export function provableData({ step, sensitive, runAs, unless, onlyIf }: PlannedStep): StepData | undefined {
  const { data } = step;
  if (!data || sensitive || step.sensitive || runAs !== undefined) return undefined;
  if (unless !== undefined || onlyIf !== undefined || !isPlainPath(data.path)) return undefined;
  if (data.kind === "symlink") return isPlainPath(`/${data.target}`) ? data : undefined;
  if (data.kind === "absent") return data;
  return isAccountId(data.owner) || isAccountId(data.group) ? undefined : data;
}

/**
 * The library of batches, sent when the node asks for it: the runner's half (apply.sh), then files.sh and batch.sh for the batch's
 * shell. A dry run adds foresee.sh.
 */
export function batchLibrary(dryRun: boolean): Blob {
  return blobOf(
    [
      shippedText("apply"),
      "k_whole=1",
      `[ -n "$b_data" ] || return 0`,
      shippedText("files"),
      ...(dryRun ? [shippedText("foresee")] : []),
      shippedText("batch"),
    ].join("\n"),
  );
}

/** In bytes. Larger contents stay files of their own: a shell holds an assignment in its memory. */
const wordLimit = 64 << 10;

/** In bytes. The proof of a batch does not read larger contents again. */
const rereadLimit = 1 << 20;

/** Whether a batch gets the content as an assignment to `b_text`: then its shell writes the file without another process. */
function isWordOfShell({ bytes }: Blob): boolean {
  return bytes !== undefined && bytes.length <= wordLimit && !bytes.includes(0);
}

/** A file's content in the form for a batch. */
export function batchBlob(blob: Blob): Blob {
  return isWordOfShell(blob) ? asAssignment(blob) : blob;
}

/** Whether a batch can apply the step: the step has no key that batches do not support. */
export function isBatched(plan: PlannedStep): boolean {
  if (plan.retry !== undefined || plan.step.retry !== undefined || plan.creates !== undefined) return false;
  if (plan.risk !== undefined) return false;
  return (
    plan.restartOn.length + plan.onChanges.length + plan.onFailure.length === 0 && provableData(plan) !== undefined
  );
}

/** A step's place: whether it begins a new batch, and its wave in the batch. */
export interface BatchPlace {
  readonly opens: boolean;
  readonly wave: number;
}

/** Most steps of a batch: a shell is slow to search the text of a longer one. */
const longestBatch = 200;

/**
 * Cuts consecutive steps into batches and waves. All steps of a batch are probed before the first of them is applied. So
 * only folders may lie above other paths of a batch, and no path comes twice. The steps of a wave are of one kind.
 */
export class BatchPlanner {
  #paths = new Map<string, StepData["kind"]>();
  #waveKind: StepData["kind"] | undefined;
  #wave = 0;
  #open = false;

  /** Ends the batch before a step that is not batched. */
  close(): void {
    this.#open = false;
  }

  /** The place of the next step. */
  place({ kind, path }: StepData): BatchPlace {
    const opens = !this.#open || this.#paths.size >= longestBatch || this.#collides(path);
    if (opens) {
      this.#paths.clear();
      this.#wave = 0;
      this.#waveKind = undefined;
      this.#open = true;
    }
    if (kind !== this.#waveKind) {
      this.#wave += 1;
      this.#waveKind = kind;
    }
    this.#paths.set(path, kind);
    return { opens, wave: this.#wave };
  }

  #collides(path: string): boolean {
    const beneath = `${path === "/" ? "" : path}/`;
    for (const known of this.#paths.keys()) if (known === path || known.startsWith(beneath)) return true;
    return foldersAbove(path).some((folder) => (this.#paths.get(folder) ?? "directory") !== "directory");
  }
}

/** A step's place in its batch, and the step's keys beside its data. */
interface BatchKeys {
  readonly key: string;
  readonly wave: number;
  readonly seconds: number;
  readonly owes: string;
  readonly shows: boolean;
}

const noKeys: BatchKeys = { key: "-", wave: 0, seconds: 0, owes: "", shows: false };

/**
 * A step as a line of words for the runner and batch.sh: `TYPE WAVE KEY SECONDS OWES PATH …`. `-` stands for an owner or a group that is
 * not managed.
 */
export function batchLine(data: StepData, { key, wave, seconds, owes, shows } = noKeys): string {
  const type = data.kind === "symlink" ? "l" : data.kind[0];
  return [type, wave, key, seconds, owes || "-", data.path, ...ownWords(data, shows)].join(" ");
}

function ownWords(data: StepData, shows: boolean): (string | number)[] {
  const bit = (claim: boolean): number => (claim ? 1 : 0);
  switch (data.kind) {
    case "absent":
      return [bit(data.recurse)];
    case "symlink":
      return [data.target, bit(data.force), bit(data.makeDirs)];
    case "directory":
    case "file": {
      const words = [statMode(data), data.owner ?? "-", data.group ?? "-", bit(data.makeDirs)];
      if (data.kind === "directory") return words;
      const { blob } = data;
      return [...words, blob.sha256, bit(shows) + 2 * bit(isWordOfShell(blob)) + 4 * bit(blob.size > rereadLimit)];
    }
  }
}

const typeDigit = { directory: "4", file: "8" } as const;

/** The mode as `stat -c %f` prints it; if the step manages no mode, only the first digit, the type. */
function statMode({ kind, mode }: Extract<StepData, { kind: "directory" | "file" }>): string {
  if (mode === undefined) return typeDigit[kind];
  return ((kind === "file" ? 0o100000 : 0o040000) | modeNumber(mode)).toString(16);
}

/** The folders above a path, the nearest first; without the root. */
export function foldersAbove(path: string): string[] {
  const folders: string[] = [];
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) folders.push(path.slice(0, end));
  return folders;
}
