import { readFileSync } from "node:fs";
import { usageError } from "#errors/problem.ts";
import type { PlainOptions } from "#tui/plain.ts";

/** The views that an operator can choose. */
export type ViewName = "ink" | "plain" | "json";

/** The form of a run's lines. */
export type LineStyle = Pick<PlainOptions, "detail" | "times">;

/** The flags that choose and shape the view. */
export interface ViewFlags {
  readonly output?: ViewName;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  readonly times?: boolean;
  readonly stay?: boolean;
}

/** The view that the flags choose; flags for the form of lines choose lines. @throws KcoreError as {@link chooseView} */
export function viewFromFlags({ output, quiet = false, verbose = false, times = false, stay = true }: ViewFlags): {
  readonly output: ViewName;
  readonly style: LineStyle;
  readonly noStay: boolean;
} {
  const given = output ?? (quiet || verbose || times ? "plain" : undefined);
  const style = { detail: quiet ? "quiet" : verbose ? "verbose" : "brief", times } as const;
  return { output: chooseView(given), style, noStay: !stay };
}

/** The streams and environment of a command. */
export interface CommandTerminal {
  readonly stdin: { readonly isTTY?: boolean };
  readonly stdout: { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether script(1) records the output. */
  readonly recorded: () => boolean;
}

/**
 * The view to show: the requested one, else ink on a watched terminal that can draw it.
 * @throws KcoreError USAGE when ink is requested where it cannot be drawn
 */
export function chooseView(given: ViewName | undefined, terminal: CommandTerminal = ownTerminal): ViewName {
  if (given === "plain" || given === "json") return given;
  const canDraw = canDrawOn(terminal);
  if (given === "ink" && !canDraw)
    throw usageError("the live view needs a terminal for both input and output", "--output plain");
  return given ?? (canDraw && isWatched(terminal) ? "ink" : "plain");
}

/** Whether a view can take the terminal: keys come from it, and lines can be drawn anew. */
export function canDrawOn({
  stdin,
  stdout,
  env,
}: Pick<CommandTerminal, "stdin" | "stdout" | "env"> = ownTerminal): boolean {
  return Boolean(stdin.isTTY && stdout.isTTY) && !["", "dumb"].includes(env["TERM"] ?? "");
}

/** Whether a stream is a terminal that a user watches, so that its output may be coloured and redrawn. */
export function isScreen(
  stream: { readonly isTTY?: boolean; readonly columns?: number },
  terminal = ownTerminal,
): boolean {
  return Boolean(stream.isTTY) && isWatched({ ...terminal, stdout: stream });
}

/** Whether a user watches the terminal: not in CI, not without a size (as under cron), and not if script(1) keeps the output for later. */
function isWatched({ stdout, env, recorded }: CommandTerminal): boolean {
  const isCi = !["", "0", "false"].includes(env["CI"] ?? "");
  return !isCi && stdout.columns !== 0 && !recorded();
}

let isScript: boolean | undefined;

/**
 * Whether script(1) started this session: it starts its command in a new session, whose leader is a child of script's
 * process.
 */
function isUnderScript(): boolean {
  isScript ??= processName(parentOf(readProcess("self")?.session)) === "script";
  return isScript;
}

function parentOf(pid: number | undefined): number | undefined {
  return pid === undefined ? undefined : readProcess(String(pid))?.parent;
}

/**
 * The parent and session of a process (proc(5)): behind the name, whose brackets may hold anything, come state, parent,
 * group and session.
 */
function readProcess(pid: string): { readonly parent: number; readonly session: number } | undefined {
  const text = read(`/proc/${pid}/stat`);
  const [, parent, , session] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return parent === undefined || session === undefined
    ? undefined
    : { parent: Number(parent), session: Number(session) };
}

function processName(pid: number | undefined): string {
  return pid === undefined ? "" : read(`/proc/${pid}/comm`).trim();
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

const ownTerminal: CommandTerminal = {
  stdin: process.stdin,
  stdout: process.stdout,
  env: process.env,
  recorded: isUnderScript,
};
