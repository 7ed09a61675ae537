import type { Question } from "#engine/events/event.ts";
import type { RunModel, StageModel } from "#engine/events/run-model.ts";

/** A question that a run waits for, as data: the asking node, the text, and the command that answers. */
export interface OpenQuestion {
  readonly node?: string;
  readonly kind: Question["kind"];
  readonly text: string;
  readonly command: string;
}

/** The open question of the run with this id. */
export function openQuestion({ node, kind, text }: Question, run: string): OpenQuestion {
  return { ...(node !== undefined && { node }), kind, text, command: `kcore runs attach ${run}` };
}

/** “waits for you: n1: Passphrase?  Answer with kcore runs attach ID”. */
export function describeQuestion({ node, text, command }: OpenQuestion): string {
  return `waits for you: ${node === undefined ? "" : `${node}: `}${text}  Answer with ${command}`;
}

/** Sequences that call the operator to a terminal: the bell and a title (xterm, “window operations” 22 and 23). */
export const attention = {
  call: "\u001b[22;2t\u001b]2;kcore: waiting for you\u0007\u0007",
  /** For a further question while the title is set. */
  again: "\u0007",
  /** After the last question: restores the title. */
  over: "\u001b[23;2t",
} as const;

/** Whether a terminal knows titles; the Linux console would print the sequence as text. */
export function knowsTitles(env: Readonly<Record<string, string | undefined>>): boolean {
  return env["TERM"] !== "linux" && env["TERM"] !== "dumb";
}

/** A function that takes the number of open questions, and calls the operator when the number rises. */
export function operatorCaller(write: (text: string) => void, hasTitles: boolean): (open: number) => void {
  let before = 0;
  return (open) => {
    if (open > before) write(before === 0 && hasTitles ? attention.call : attention.again);
    if (open === 0 && before > 0 && hasTitles) write(attention.over);
    before = open;
  };
}

/** Most stages that are named one by one; the others are counted. */
const mostStages = 4;
/** Most nodes of a stage that are listed by name. */
const mostNames = 3;

/** The stages after a confirmation: “then: web on n1, n2, n3; restart on 40 nodes”; empty without any. */
export function upcomingStages({ stages }: Pick<RunModel, "stages">): string {
  const coming = stages.filter(({ state }) => state === "pending");
  if (coming.length === 0) return "";
  const texts = coming.slice(0, mostStages).map(stageText);
  const rest = coming.length - texts.length;
  return `then: ${[...texts, ...(rest > 0 ? [`${rest} more ${rest === 1 ? "stage" : "stages"}`] : [])].join("; ")}`;
}

function stageText({ title, nodes }: StageModel): string {
  if (nodes.length === 0) return title;
  return `${title} on ${nodes.length <= mostNames ? nodes.join(", ") : `${nodes.length} nodes`}`;
}

/** The result of the last dry run of the same kind. */
export interface DryRunResult {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly wouldChange: number;
  readonly unknown: number;
  readonly failed: number;
  /** The project has not changed since. */
  readonly isSame: boolean;
}

/** “the dry run 12m ago: 7 would change, 2 unknown, 0 failed”, and whether the project has changed since. */
export function describeDryRun({ wouldChange, unknown, failed, isSame }: DryRunResult, age: string): string {
  const counts = [`${wouldChange} would change`, ...(unknown > 0 ? [`${unknown} unknown`] : []), `${failed} failed`];
  return `the dry run ${age} ago: ${counts.join(", ")}${isSame ? "" : " (the project has changed since)"}`;
}
