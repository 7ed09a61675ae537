import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { quote } from "#base/quote.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { ErrorCode } from "#errors/codes.ts";
import type { Outcome } from "#engine/events/event.ts";
import { blobOf } from "#engine/step/blob.ts";
import { remoteBlob } from "#engine/step/remote.ts";
import type { StepFacts, ModuleDefinition, Step, StepContext } from "#engine/step/define.ts";
import { compileAlone } from "#engine/program/compile-step.ts";
import { unescapeLine } from "#engine/program/frames.ts";
import { shippedText } from "#engine/program/texts.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { readSourceFolder } from "#engine/states/source-folder.ts";
import { hangLimit } from "./limit.ts";
import { refusalsOf } from "./refusals.ts";

const root = join(import.meta.dirname, "../..");

/** The shells on which every step must run. */
export const shells = ["dash", "bash", "busybox sh"] as const;

/** The context of a step under test; unknown templates and files are refused. Folders are those of this repository. */
export function contextOf(
  overrides: Partial<StepContext> & { readonly files?: Readonly<Record<string, string | Uint8Array>> } = {},
): StepContext {
  return {
    node: "n1",
    stateDir: "/var/lib/kcore",
    readFile: (path) => {
      const text = overrides.files?.[path];
      if (text === undefined) throw new Error(`the test gave no file ${path}`);
      return blobOf(text);
    },
    readFolder: (path, exclude) => readSourceFolder([{ path: root, shown: ".", origin: "shipped" }], path, exclude),
    remote: (content) => remoteBlob(content, () => Promise.reject(new Error(`the test fetches no ${content.label}`))),
    renderTemplate: (name) => {
      throw new Error(`the test gave no template ${name}`);
    },
    ...overrides,
  };
}

/** The module's step for arguments, which are parsed as a state's. @throws Error if the step can refuse with a code that the module does not declare */
export function stepOf(module: ModuleDefinition, args: unknown, context: StepContext = contextOf()): Step {
  const step = module.step(module.args.parse(args), context);
  const declared: readonly string[] = module.refusals ?? [];
  const silent = [...refusalsOf(step)].filter((code) => !declared.includes(code));
  if (silent.length > 0)
    throw new Error(`${module.name} can refuse with ${silent.join(", ")}, but does not declare it`);
  return step;
}

export interface StepRun {
  readonly outcome: Exclude<Outcome, "interrupted">;
  /** Exit status of the step's shell, see step.sh. */
  readonly status: number;
  /** The facts of the first probe. */
  readonly have: StepFacts;
  /** The facts of the probe after apply. */
  readonly now: StepFacts;
  readonly stdout: string;
  readonly stderr: string;
  readonly notes: readonly string[];
  /** The exit code of apply. */
  readonly rc?: string;
  readonly shown?: string;
  readonly problem?: Problem;
}

export interface StepRunOptions {
  readonly dryRun?: boolean;
  readonly granted?: readonly string[];
  /** Stand-ins for programs, first on PATH; they must refuse calls without a prepared answer. */
  readonly bin?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly plan?: Partial<PlannedStep>;
  /** Whether a watched step changed, or a reaction is owed. */
  readonly due?: boolean;
  /** A state folder that outlives the step. */
  readonly stateDir?: string;
  /** Keys of the steps that watch this one. */
  readonly owes?: readonly string[];
  /** The boot in which the run began; by default this machine's boot. */
  readonly bootId?: string;
  /** Whether an earlier step would change something, in a dry run. */
  readonly unsure?: boolean;
}

const outcomes: Record<number, StepRun["outcome"]> = {
  0: "ok",
  10: "changed",
  11: "would-change",
  12: "skipped",
  14: "unknown",
};

/** A step with these keys, as a draft renders it. */
export function plannedStep(step: Step, keys: Partial<PlannedStep> = {}): PlannedStep {
  const at = { file: "test.yaml", line: 1, column: 1 };
  const lists = { require: [], onChanges: [], restartOn: [], onFailure: [] };
  return {
    id: "test/step",
    title: "step",
    state: "test",
    module: "test",
    at,
    step,
    ...lists,
    sensitive: false,
    ...keys,
  };
}

/** Runs a step exactly as the runner does: in one of {@link shells}, or on a lab node with `ssh:COMMAND` (an ssh command line). */
export async function runStepOn(shell: string, step: Step, options: StepRunOptions = {}): Promise<StepRun> {
  const folder = mkdtempSync(join(tmpdir(), "kcore-step-"));
  try {
    const plan = plannedStep(step, options.plan);
    const earlierChanges = options.dryRun ? { earlierChanges: { isFolderMade: false, made: [] } } : {};
    const compiled = compileAlone(plan, {
      owes: options.owes ?? [],
      randomName: () => randomBytes(16).toString("hex"),
      ...earlierChanges,
    });
    for (const name of ["tmp", "blobs", "bin", "owed"]) mkdirSync(join(folder, name), { mode: 0o700 });
    for (const [name, blob] of compiled.blobs)
      writeFileSync(join(folder, "blobs", name), await blob.read(), { mode: 0o600 });
    for (const [name, text] of Object.entries(options.bin ?? {})) {
      writeFileSync(join(folder, "bin", name), text.startsWith("#!") ? text : `#!/bin/sh\n${text}\n`);
      chmodSync(join(folder, "bin", name), 0o755);
    }
    const remote = shell.startsWith("ssh:");
    const library = (["step-functions", "step", "files", "foresee"] as const).map(shippedText).join("\n");
    const variables = {
      K_LIB: library,
      k_nonce: "NONCE",
      k_due: options.due ? "1" : "",
      k_unsure: options.unsure ? "1" : "",
      k_unique: "1-1",
      K_DRY: options.dryRun ? "1" : "",
      K_RUN: remote ? "/tmp/kcore-step" : folder,
      K_STATE: options.stateDir ?? (remote ? "/tmp/kcore-step" : folder),
      K_TMP: remote ? "/tmp/kcore-step/tmp" : join(folder, "tmp"),
      K_NODE: "n1",
      K_BOOT_ID: options.bootId ?? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
      K_GRANTED: (options.granted ?? []).join("\n"),
    };
    const given = Object.entries(variables).map(([name, value]) => `${name}=${quote(value)}`);
    const text = [library, ...given, compiled.skeleton, compiled.text].join("\n");
    const journal = join(folder, "journal");
    const command = remote
      ? `${shell.slice(4)} 'mkdir -p -m 700 /tmp/kcore-step/tmp /tmp/kcore-step/owed /tmp/kcore-step/blobs; setsid sh 5>/tmp/kcore-step/journal; s=$?; echo; echo ===JOURNAL; cat /tmp/kcore-step/journal; rm -rf /tmp/kcore-step; exit $s'`
      : `exec ${shell} 5>'${journal}'`;
    const child = spawnSync("/bin/sh", ["-c", command], {
      input: `${remote ? sendBlobs(join(folder, "blobs")) : ""}${text}\n`,
      encoding: "utf8",
      timeout: remote ? 300_000 : hangLimit,
      maxBuffer: 64 << 20,
      env: {
        PATH: `${join(folder, "bin")}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
        LC_ALL: "C",
        ...options.env,
      },
    });
    const [stdout = "", journalText] = remote
      ? child.stdout.split("\n===JOURNAL\n")
      : [child.stdout, readFileSync(journal, "utf8")];
    return { ...readJournal(journalText ?? ""), ...outcomeOf(child.status ?? 255), stdout, stderr: child.stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A sh text that makes the blobs on another machine. */
function sendBlobs(folder: string): string {
  return readdirSync(folder)
    .map(
      (name) => `printf %s ${readFileSync(join(folder, name), "base64")} | base64 -d >/tmp/kcore-step/blobs/${name}\n`,
    )
    .join("");
}

function outcomeOf(status: number): Pick<StepRun, "outcome" | "status"> {
  return { outcome: outcomes[status] ?? "failed", status };
}

function readJournal(text: string): Pick<StepRun, "have" | "now" | "notes" | "rc" | "shown" | "problem"> {
  const have: Record<string, string> = {};
  const now: Record<string, string> = {};
  const notes: string[] = [];
  let more: Partial<Pick<StepRun, "rc" | "shown" | "problem">> = {};
  for (const line of text.split("\n")) {
    const [, type, rest = ""] = /^NONCE (\S+) \S+ ?(.*)$/s.exec(line) ?? [];
    if (type === "have" || type === "now") {
      const at = rest.indexOf("=");
      (type === "have" ? have : now)[rest.slice(0, at)] = unescapeLine(rest.slice(at + 1));
    } else if (type === "rc") more = { ...more, rc: rest };
    else if (type === "note") notes.push(unescapeLine(rest));
    else if (type === "show") more = { ...more, shown: unescapeLine(rest) };
    else if (type === "refused") {
      const [code = "", ...words] = rest.split(" ");
      const [message = "", ...detail] = unescapeLine(words.join(" ")).split("\n");
      more = {
        ...more,
        problem: { code: code as ErrorCode, message, ...(detail.length > 0 ? { detail: detail.join("\n") } : {}) },
      };
    }
  }
  return { have, now, notes, ...more };
}

/** The problems of a call that must fail with a KcoreError. */
export async function problemsOf(call: () => unknown): Promise<readonly Problem[]> {
  try {
    await call();
  } catch (error) {
    if (error instanceof KcoreError) return error.problems;
    throw error;
  }
  throw new Error("nothing was thrown");
}
