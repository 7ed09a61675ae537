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
export type Facts = Readonly<Record<string, string>>;

/** Mode, owner and group as a module's arguments give them; an absent one is not managed. */
export interface Ownership {
  readonly mode?: string | undefined;
  readonly owner?: string | undefined;
  readonly group?: string | undefined;
}

/**
 * A step that is pure data (docs/runner.md, Evidence). One `stat` and one `sha256sum` show whether all such steps of a
 * segment are in order, without their probes. One shell applies the others, batch by batch (program/batch.sh), unless a
 * step uses a key that this shell lacks. Its texts for a shell of its own are made from the same data
 * (fragments/files.ts).
 */
export type StepData =
  | ({ readonly kind: "directory"; readonly path: string; readonly makeDirs: boolean } & Ownership)
  | ({ readonly kind: "file"; readonly path: string; readonly blob: Blob; readonly makeDirs: boolean } & Ownership)
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
 * A module's answer to its arguments. All sh runs on the node, as root (or as `runAs`), on dash, bash and BusyBox,
 * with `LC_ALL=C`, `umask 022`, stdin `/dev/null`, not under `set -e`: join with `&&` or `|| exit`.
 * The functions that the texts may call are documented in `src/engine/program/step.sh`.
 */
export interface Step {
  /** The facts that must hold. Empty only together with `always`. */
  readonly want: Facts;
  /**
   * Prints facts with `fact NAME VALUE`. An absent thing is a value, never an error; it fails only if it cannot tell.
   */
  readonly probe: Sh;
  /** Closes the gap. Absent: an assertion, or under `retry` a wait. */
  readonly apply?: Sh;
  /**
   * Before apply, once, never in dry runs: finds, without changing anything, which of `offers` apply wants. It prints
   * them, a line each: name (blobName), size in bytes, and words for apply. Only those are sent. Apply runs once for
   * each portion of them. Then `$k_asked` is a file with its lines, `$k_more` is not empty while others follow, and the
   * blobs lie in `"$K_RUN"/blobs`.
   */
  readonly asks?: Sh;
  /** The blobs that `asks` may name; not sensitive. */
  readonly offers?: readonly Blob[];
  /** The meaning of `want`, `probe`, `guard` and `apply`, as data. */
  readonly data?: StepData | undefined;
  /** The resources that the step may write, and those that its probe and its apply depend on, for dry runs. Absent: anything. */
  readonly effects?: Effects;
  /** Runs when want and have differ, before apply, in dry runs too: `refuse CODE TEXT` stops the step. */
  readonly guard?: Sh;
  /** In dry runs, behind the guard: fails, without changing anything, where apply would fail; see foresee.sh. */
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
   * Missing ones end the step: TOOL_MISSING. They are looked for before anything is applied, if no earlier step may
   * bring them, and at the step's turn.
   */
  readonly tools?: readonly Tool[];
  /** The step may bring programs that a later step needs. */
  readonly brings?: true;
  /** Never in order before it ran: views show “always changes”, and shipped states refuse it. */
  readonly always?: true;
  /**
   * With `always`: apply can report no change, by the word `same` behind its command's code; see reported-change.sh.
   */
  readonly tells?: true;
  /** The step ends the boot: the segment ends here and the bastion waits for a new boot_id. */
  readonly ends?: "boot";
  /** The step's facts and output are never shown or recorded. */
  readonly sensitive?: boolean;
  /** Prints a few lines at most, so that its output needs no reader of its own: saves processes on the node. */
  readonly quiet?: true;
  /** Seconds that probe and apply may take together; 60 unless told otherwise. The step key `timeout` wins. */
  readonly timeout?: number;
  /**
   * Seconds for which the step, with all its processes, may neither read nor write a byte: for steps that move many
   * bytes, even slowly. `timeout` is then the hard limit.
   */
  readonly stall?: number;
  /** An assertion or wait that is tried again: the step key `retry` wins. */
  readonly retry?: Retry;
}

export interface Retry {
  readonly attempts: number;
  /** Seconds between two attempts. */
  readonly interval: number;
}

/** The engine's knowledge of the node and the run when it makes a step; plain values, the same for each attempt. */
export interface StepContext {
  /** The roster's name of the node. */
  readonly node: string;
  /** The node's UUID in the roster; modules mark with it the things that they make on disks. */
  readonly nodeId?: string;
  /** Where kcore keeps its things on the node (`stateDir` of the roster). */
  readonly stateDir: string;
  /** True when the step has the key `sensitive`: nothing of it may be shown, not even its hash. */
  readonly sensitive?: boolean;
  /** The user that the step runs as, by its key `runAs`; absent: root, or the login user. */
  readonly runAs?: string;
  /** True when the step has the key `risk`: the node reverts a change that locks the operator out. */
  readonly onTrial?: boolean;
  /** Reads a file of the project or the shipped ones (`source:` arguments), as a blob. Relative to the project. */
  readonly readFile: (path: string) => Blob;
  /** A content that the bastion fetches when a node asks for it, as a blob to be offered (`offers`): see {@link remoteBlob}. */
  readonly remote: (content: RemoteContent) => Blob;
  /** Renders a template under `templates/` with the step's scope; `vars` are added as names of their own. */
  readonly renderTemplate: (name: string, vars?: Readonly<Record<string, unknown>>) => string;
}

export interface ModuleDefinition<Schema extends z.ZodType = z.ZodType> {
  /** As written in states: `service.running`. */
  readonly name: string;
  /** One sentence: the thing that the module keeps in order. */
  readonly summary: string;
  /** Other names for `kcore modules --search`: those of Ansible, Salt and pyinfra, and of the program behind it. */
  readonly alsoKnownAs?: readonly string[];
  /**
   * A `z.strictObject`; every field has a `.describe()` in one short sentence, those of maps in it, too. Such a map has
   * `.meta({ examples })` that show each of its fields. Fields that a shell reads are `shellText` or `shellWords` (shell-text.ts).
   */
  readonly args: Schema;
  /** Codes that its texts may `refuse` with, those of the library and of fragments included. */
  readonly refusals?: readonly ErrorCode[];
  /** Pure: the same arguments and context give the same step. Throws KcoreError for arguments that cannot work. */
  readonly step: (args: z.output<Schema>, context: StepContext) => Step;
}

/** Declares a module: arguments in; want, probe and apply out. */
export function defineModule<Schema extends z.ZodType>(definition: ModuleDefinition<Schema>): ModuleDefinition<Schema> {
  return definition;
}
