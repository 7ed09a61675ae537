import { readFileSync } from "node:fs";
import { usageError } from "#errors/problem.ts";
import type { PlainOptions } from "#tui/plain.ts";

/** The views that a user can ask for. */
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

/** The view of these flags; flags about the form of lines ask for lines. @throws KcoreError as {@link chooseView} */
export function viewOf({ output, quiet = false, verbose = false, times = false, stay = true }: ViewFlags): {
  readonly output: ViewName;
  readonly style: LineStyle;
  readonly noStay: boolean;
} {
  const given = output ?? (quiet || verbose || times ? "plain" : undefined);
  const style = { detail: quiet ? "quiet" : verbose ? "verbose" : "brief", times } as const;
  return { output: chooseView(given), style, noStay: !stay };
}

/** The terminal that a command was started in. */
export interface Surroundings {
  readonly stdin: { readonly isTTY?: boolean };
  readonly stdout: { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether script(1) records the terminal's output. */
  readonly recorded: () => boolean;
}

/**
 * The view to show: the requested one, else ink on a watched terminal that can draw it.
 * @throws KcoreError USAGE when ink is requested where it cannot be drawn
 */
export function chooseView(given: ViewName | undefined, around: Surroundings = here): ViewName {
  if (given === "plain" || given === "json") return given;
  const canDraw = canDrawOn(around);
  if (given === "ink" && !canDraw)
    throw usageError("the live view needs a terminal for both input and output", "--output plain");
  return given ?? (canDraw && isWatched(around) ? "ink" : "plain");
}

/** Whether a view can take the terminal: keys come from it, and lines can be drawn anew. */
export function canDrawOn({ stdin, stdout, env }: Pick<Surroundings, "stdin" | "stdout" | "env"> = here): boolean {
  return Boolean(stdin.isTTY && stdout.isTTY) && !["", "dumb"].includes(env["TERM"] ?? "");
}

/** Whether a terminal's output may be coloured: it is a terminal that a user watches. */
export function isScreen(stream: { readonly isTTY?: boolean; readonly columns?: number }, around = here): boolean {
  return Boolean(stream.isTTY) && isWatched({ ...around, stdout: stream });
}

/** A terminal of no size (cron, CI) is not watched, and the output of script(1) is read as text later. */
function isWatched({ stdout, env, recorded }: Surroundings): boolean {
  const isCi = !["", "0", "false"].includes(env["CI"] ?? "");
  return !isCi && stdout.columns !== 0 && !recorded();
}

let script: boolean | undefined;

/**
 * Whether script(1) runs above us: it starts its command in a session of its own, so the leader of our session is its
 * child.
 */
function isUnderScript(): boolean {
  script ??= processName(parentOf(fieldsOf("self")?.session)) === "script";
  return script;
}

function parentOf(pid: number | undefined): number | undefined {
  return pid === undefined ? undefined : fieldsOf(String(pid))?.parent;
}

/** proc(5): the name stands in brackets and may hold anything; state, parent, group and session follow it. */
function fieldsOf(pid: string): { readonly parent: number; readonly session: number } | undefined {
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

const here: Surroundings = { stdin: process.stdin, stdout: process.stdout, env: process.env, recorded: isUnderScript };
