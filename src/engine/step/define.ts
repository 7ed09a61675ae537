import type { z } from "zod";
import type { ErrorCode } from "#errors/codes.ts";
import type { Blob } from "./blob.ts";
import type { RemoteContent } from "./remote.ts";
import type { Effects } from "./effects.ts";
import type { Sh } from "./sh.ts";

/**
 * Named values that a step requires (want) or finds (have). A name is one line of printable text without `=`; a value
 * is any text without NUL. If want and have are equal, the step is in order.
 */
export type StepFacts = Readonly<Record<string, string>>;

/** Mode, owner and group as a module's arguments give them; an absent one is not managed. */
export interface FileOwnership {
  readonly mode?: string | undefined;
  readonly owner?: string | undefined;
  readonly group?: string | undefined;
}

/**
 * A step that is pure data (docs/runner.md, Evidence). One `stat` and one `sha256sum` show which of a segment's data steps
 * are in order, without their probes. One shell applies the others, batch by batch (program/batch.sh), except steps with a
 * key that this shell does not support. The texts of such a step are made from the same data (fragments/files.ts).
 */
export type StepData =
  | ({ readonly kind: "directory"; readonly path: string; readonly makeDirs: boolean } & FileOwnership)
  | ({ readonly kind: "file"; readonly path: string; readonly blob: Blob; readonly makeDirs: boolean } & FileOwnership)
  | {
      readonly kind: "symlink";
      readonly path: string;
      readonly target: string;
      readonly force: boolean;
      readonly makeDirs: boolean;
    }
  | { readonly kind: "absent"; readonly path: string; readonly recurse: boolean };

/** A program that a step needs on the node beyond the baseline, and the package that brings it, for the message. */
export interface Tool {
  readonly command: string;
  readonly package: string;
}

/**
 * A module's answer to its arguments. All sh runs on the node, as root (or as `runAs`), on dash, bash and BusyBox, with
 * `LC_ALL=C`, `umask 022` and stdin `/dev/null`. It has no `set -e`: join commands with `&&` or `|| exit`.
 * The texts may call the functions of `step-functions.sh` and `files.sh` (src/engine/program).
 */
export interface Step {
  /** The facts that must hold. Empty only together with `always`. */
  readonly want: StepFacts;
  /**
   * Prints facts with `fact NAME VALUE`. Absence is a value, no error: the probe fails only if it cannot read the state.
   */
  readonly probe: Sh;
  /** Makes the facts hold. Absent: the step is an assertion, or under `retry` a wait. */
  readonly apply?: Sh;
  /**
   * Runs once before apply, never in dry runs: prints a line for each of `offers` that apply needs, and changes nothing.
   * The line has the blob's name (blobName), its size in bytes (0: unknown), and words for apply. Only these blobs are
   * sent. Apply runs once for each portion of them: `$k_portion_file` is a file with the portion's lines, `$k_more` is not
   * empty if another portion follows, and the blobs are in `"$K_RUN"/blobs`.
   */
  readonly asks?: Sh;
  /** The blobs that `asks` may name; not sensitive. */
  readonly offers?: readonly Blob[];
  /** Values in the probe that differ in each run, and decide nothing about the facts in `want`. */
  readonly fresh?: readonly string[];
  /** The meaning of `want`, `probe`, `guard` and `apply`, as data. */
  readonly data?: StepData | undefined;
  /** For dry runs: the resources that the step may write, and that its probe and apply depend on. Absent: any resource. */
  readonly effects?: Effects;
  /** Runs when want and have differ, before apply, in dry runs too: `refuse CODE TEXT` stops the step. */
  readonly guard?: Sh;
  /** In dry runs, after the guard: fails if apply would fail, and changes nothing; see foresee.sh. */
  readonly foresee?: Sh;
  /**
   * Before apply and react of a step on trial: records the present state for the revert, by `keep_path`, `keep_unit`,
   * `on_revert` (trial.sh). Absent: the step cannot have the key `risk`.
   */
  readonly keep?: Sh;
  /** The text for `restartOn` / `onChanges`, run when a watched step changed something. Absent: its apply. */
  readonly react?: Sh;
  /** Prints the present text, for a diff with `shown`; at most 64 KiB are kept; never run for sensitive steps. */
  readonly show?: Sh;
  /** The text that `show` will print once the step is in order. */
  readonly shown?: string;
  /**
   * A missing tool fails the step (TOOL_MISSING). Tools are looked up at the step's turn and, if no earlier step may
   * install them, before any step is applied.
   */
  readonly tools?: readonly Tool[];
  /** The step may install programs that a later step needs. */
  readonly brings?: true;
  /** The step is never in order before it has run; views show “always changes”. */
  readonly always?: true;
  /**
   * With `always`: apply can report “no change” by the word `same` after its exit code; see reported-change.sh.
   */
  readonly tells?: true;
  /** The step ends the boot: the segment ends here and the bastion waits for a new boot_id. */
  readonly ends?: "boot";
  /** The step's facts and output are never shown or recorded. */
  readonly sensitive?: boolean;
  /** The step prints a few lines at most, so its output needs no reader of its own, which saves processes on the node. */
  readonly quiet?: true;
  /** Seconds that probe and apply may take together; 60 by default. The step key `timeout` takes precedence. */
  readonly timeout?: number;
  /**
   * Seconds for which the step, with all its processes, may neither read nor write a byte: for steps that move many
   * bytes, even slowly. `timeout` is then the hard limit.
   */
  readonly stall?: number;
  /** For an assertion or wait: the attempts until its facts hold. The step key `retry` takes precedence. */
  readonly retry?: Retry;
}

export interface Retry {
  /** All attempts, the first one included. */
  readonly attempts: number;
  /** Seconds between two attempts. */
  readonly interval: number;
}

/** An entry of a folder of the project. `name` is its path below the folder. Only a link has a target, only a file the rest. */
export interface FolderEntry {
  readonly kind: "file" | "folder" | "link";
  readonly name: string;
  readonly target: string;
  readonly sha256: string;
  readonly size: number;
  readonly isProgram: boolean;
  readonly read: () => Uint8Array;
}

/** The node and the run as a module's `step` sees them; the same values for each attempt. */
export interface StepContext {
  /** The roster's name of the node. */
  readonly node: string;
  /** The UUID from which modules derive the ids of tables, filesystems and volumes: see `diskOwnerId` of the roster. */
  readonly nodeId?: string;
  /** kcore's own folder on the node (`stateDir` of the roster). */
  readonly stateDir: string;
  /** True when the step has the key `sensitive`: nothing of it may be shown, not even its hash. */
  readonly sensitive?: boolean;
  /** The user that the step runs as, by its key `runAs`; absent: root, or the login user. */
  readonly runAs?: string;
  /** True when the step has the key `risk`: the node reverts a change that locks the operator out. */
  readonly onTrial?: boolean;
  /** A file of the project, or a shipped file, as a blob, for `source:` arguments; the path is relative to the project. */
  readonly readFile: (path: string) => Blob;
  /** The entries below a folder, found as a file is, that no glob of `exclude` matches; one list for all nodes of a run. */
  readonly readFolder: (path: string, exclude: readonly string[]) => readonly FolderEntry[];
  /** A blob for `offers`, whose content the bastion fetches when a node asks for the blob: see {@link remoteBlob}. */
  readonly remote: (content: RemoteContent) => Blob;
  /** The text of a template under `templates/`, rendered with the step's scope and with `vars` as further names. */
  readonly renderTemplate: (name: string, vars?: Readonly<Record<string, unknown>>) => string;
}

export interface ModuleDefinition<Schema extends z.ZodType = z.ZodType> {
  /** As written in states: `service.running`. */
  readonly name: string;
  /** One sentence about the resource that the module manages. */
  readonly summary: string;
  /** Other names for `kcore modules --search`: of Ansible, Salt and pyinfra, and of the programs that the module uses. */
  readonly alsoKnownAs?: readonly string[];
  /**
   * A `z.strictObject`; every field, also of a map in it, has a `.describe()` in one short sentence. A map in it has
   * `.meta({ examples })` that show each of its fields. Fields that a shell reads are `shellText` or `shellWords`.
   */
  readonly args: Schema;
  /** The codes with which the step's texts may call `refuse`, also in fragments and in functions of files.sh. */
  readonly refusals?: readonly ErrorCode[];
  /** Pure: the same arguments and context give the same step. Throws KcoreError for arguments that cannot work. */
  readonly step: (args: z.output<Schema>, context: StepContext) => Step;
}

/** Declares a module: arguments in; want, probe and apply out. */
export function defineModule<Schema extends z.ZodType>(definition: ModuleDefinition<Schema>): ModuleDefinition<Schema> {
  return definition;
}
