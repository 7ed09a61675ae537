import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { usageError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { quoteWord } from "#tui/repeat-command.ts";
import type { CommonFlags, FactFlags } from "../options.ts";

/** Flags of every command that starts a run. */
export interface RunFlags extends CommonFlags, FactFlags {
  readonly on?: readonly string[];
  readonly refreshFacts?: boolean;
  readonly dryRun?: boolean;
  readonly grant?: readonly string[];
  readonly skipHealth?: boolean;
  readonly wait?: boolean;
  readonly yes?: boolean;
  readonly concurrency?: number;
  readonly feed?: "bastion" | "nodes";
  readonly queue?: string | boolean;
  readonly detach?: boolean;
  readonly passphraseFile?: string;
  readonly report?: readonly string[];
  readonly failOnChange?: boolean;
  readonly plan?: string;
  readonly requireClean?: boolean;
  readonly requireSigned?: boolean;
  readonly only?: readonly string[];
  readonly from?: string;
  readonly tags?: readonly string[];
  readonly limit?: string;
  readonly batch?: number | string;
}

/** The request that the flags describe. */
export function requestOf(flags: RunFlags, what: RunRequest["what"], more: Partial<RunRequest> = {}): RunRequest {
  const {
    on,
    dryRun = false,
    grant = [],
    skipHealth = false,
    wait = false,
    yes = false,
    concurrency,
    context,
    factsAge,
  } = flags;
  return {
    what,
    params: {},
    dryRun,
    grants: grant,
    skipHealth,
    waitForLock: wait,
    yes,
    command: typedCommand(),
    ...(on === undefined || on.length === 0
      ? {}
      : { on: on.length === 1 ? (on[0] as string) : on.map((one) => `(${one})`).join(" or ") }),
    ...(flags.feed === "nodes" && { feed: "nodes" }),
    ...(typeof flags.queue === "string" && { queue: flags.queue }),
    ...(flags.queue === false && { queue: false }),
    ...(flags.requireClean && { requireClean: true }),
    ...(flags.requireSigned && { requireSigned: true }),
    ...omitUndefined({ concurrency, context, part: partOf(flags), batch: flags.batch }),
    ...(factsAge !== undefined && { factsSince: Date.now() - factsAge }),
    ...(flags.unknownFacts === "skip" && { unknownFacts: "skip" }),
    ...more,
  };
}

/** The part of the run that the flags choose; undefined: all of it. */
export function partOf({ only, from, tags, limit }: RunFlags): RunRequest["part"] {
  const words = tags?.flatMap((list) => list.split(",")).filter((tag) => tag !== "");
  const part = omitUndefined({ only, from, tags: words, limit });
  return Object.keys(part).length === 0 ? undefined : part;
}

/** The command line of this process, to show and to repeat. */
export function typedCommand(): string {
  return ["kcore", ...process.argv.slice(2)].map(quoteWord).join(" ");
}

/** Refuses a command without a target, which never means all nodes (S-25). @throws KcoreError USAGE */
export function requireTarget({ on = [] }: RunFlags, name: string): void {
  if (on.length > 0) return;
  throw usageError(
    `kcore ${name}: no nodes are named`,
    `kcore ${name} --on 'n1' …, or --on '*' for all; kcore roster list shows them`,
  );
}
