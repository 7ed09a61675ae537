import { padColumns, widthOf } from "#base/text.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { describeEvent } from "#tui/describe-event.ts";
import type { RunDrawing } from "#tui/plain.ts";
import { cleanText } from "#engine/events/clean.ts";
import { formatProblem } from "#errors/problem.ts";
import type { NodeResult } from "../watch/step-results.ts";

/** stdout or stderr of `kcore exec`. */
export interface AnswerStream {
  /** Writes the answer of a single node: its bytes unchanged, to a terminal as text. */
  readonly write: (text: string | Uint8Array) => void;
  /** Writes kcore's own lines, which quote the output of nodes. */
  readonly tell: (text: string) => void;
  /** Whether the stream is a terminal: it then gets text without control characters, since a node must not control it (S-4). */
  readonly isScreen: boolean;
}

export interface AnswerOptions {
  readonly out: AnswerStream;
  readonly err: AnswerStream;
  /** Print no output as it comes: {@link drawGroups} draws equal answers once, at the end. */
  readonly group: boolean;
}

/** The view of `exec`, which prints the output of a single node unchanged, and each line of several nodes with the node's name. */
export interface Answers extends RunDrawing {
  /** Prints output that no newline has ended yet. */
  flush(): void;
  /** Whether a part of the output was dropped on its way to kcore. */
  readonly isCut: boolean;
}

type OutputEvent = Extract<RunEvent, { type: "step.output" }>;

/** Events that explain, during a wait, why an answer does not come. */
const news: ReadonlySet<RunEvent["type"]> = new Set([
  "node.connecting",
  "node.disconnected",
  "node.waiting",
  "node.rebooted",
  "warning",
]);

export function showAnswers({ out, err, group }: AnswerOptions): Answers {
  /** Output after the last newline, by stream and node. */
  const unended = new Map<string, string>();
  let [width, isAlone, isCut] = [0, false, false];
  const streams = { out, err };
  const say = (text: string) => err.tell(`${text}\n`);
  const lineOf = (node: string, line: string) => `${padColumns(node, width)}  ${line}\n`;

  const show = (event: OutputEvent) => {
    const { node, stream, text, skipped } = event;
    if (skipped) {
      isCut = true;
      say(`${node}  ${skipped} bytes of ${stream === "err" ? "stderr" : "stdout"} were left out here`);
    }
    if (isAlone) return streams[stream].write(streams[stream].isScreen ? text : outputBytes(event));
    if (group) return;
    const key = `${stream} ${node}`;
    const lines = ((unended.get(key) ?? "") + text).split("\n");
    unended.set(key, lines.pop() ?? "");
    streams[stream].tell(lines.map((line) => lineOf(node, line)).join(""));
  };
  const flush = () => {
    for (const [key, line] of unended) {
      const [, stream, node = ""] = /^(out|err) (.*)$/s.exec(key) ?? [];
      if (line !== "") streams[stream as OutputEvent["stream"]].tell(lineOf(node, line));
    }
    unended.clear();
  };

  return {
    draw: (event) => {
      if (event.type === "run.started") {
        width = Math.max(...event.nodes.map(widthOf), 0);
        isAlone = event.nodes.length === 1 && !group;
      }
      if (event.type === "warning" && event.cutsOutput) isCut = true;
      if (event.type === "step.output") show(event);
      if (news.has(event.type)) for (const { text } of describeEvent(emptyRun, event)) say(text);
    },
    flush,
    get isCut() {
      return isCut;
    },
  };
}

function outputBytes({ text, bytes }: OutputEvent): string | Uint8Array {
  return bytes === undefined ? text : Buffer.from(bytes, "base64");
}

/** The texts for stdout and stderr. */
export interface GroupedAnswers {
  readonly out: string;
  readonly err: string;
}

/** Each distinct answer (output and end) once with its nodes, the most frequent first: stdout in `out`, stderr and failures in `err`. */
export function drawGroups(results: readonly NodeResult[]): GroupedAnswers {
  const groups = [
    ...Map.groupBy(results, ({ stdout, stderr, ...end }) => JSON.stringify([stdout, stderr, failureText(end)])),
  ]
    .map(([, alike]) => alike)
    .toSorted((a, b) => b.length - a.length);
  let [out, err] = ["", ""];
  for (const alike of groups) {
    const [{ stdout, stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const [who, why] = [nodeNames(alike), failureText(end)];
    if (stdout !== "" || (why === undefined && stderr === ""))
      out += block(who, stdout === "" ? "(no output)" : stdout);
    if (why === undefined && stderr !== "") err += block(`${who}  on stderr`, stderr);
  }
  for (const alike of groups) {
    const [{ stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const why = failureText(end);
    if (why !== undefined) err += block(`${nodeNames(alike)}  ${why}`, stderr);
  }
  return { out, err };
}

/** A line for each kind of failure, with its nodes. */
export function drawFailedAnswers(results: readonly NodeResult[]): string {
  const failed = results.filter((result) => failureText(result) !== undefined);
  return [...Map.groupBy(failed, failureText)].map(([why, alike]) => `${nodeNames(alike)}  ${why}\n`).join("");
}

/** The failure of a node's command, with detail and hint if there is no exit code; undefined for success. */
function failureText({
  outcome,
  exitCode,
  problem,
}: Omit<NodeResult, "node" | "stdout" | "stderr">): string | undefined {
  if (exitCode === 0) return undefined;
  if (exitCode !== undefined) return `exit code ${exitCode}`;
  const detail = problem?.detail === undefined ? "" : `\n${problem.detail.replaceAll(/^/gm, "  | ")}`;
  const hint = problem?.hint === undefined ? "" : `\n  hint: ${problem.hint}`;
  return cleanText(
    `${outcome.replace("-", " ")}${problem ? `: ${formatProblem({ ...problem, at: undefined })}${detail}${hint}` : ""}`,
  );
}

function nodeNames(alike: readonly NodeResult[]): string {
  const names = alike.map(({ node }) => node).join(", ");
  return alike.length > 1 ? `${names} (${alike.length} nodes)` : names;
}

function block(head: string, text: string): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  return [head, ...lines.map((line) => `  ${line}`)].map((line) => `${line}\n`).join("");
}
