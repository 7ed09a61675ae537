import { padColumns, widthOf } from "#base/text.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { describeEvent } from "#tui/describe-event.ts";
import type { RunDrawing } from "#tui/plain.ts";
import { cleanText } from "#engine/events/clean.ts";
import { formatProblem } from "#errors/problem.ts";
import type { NodeResult } from "../watch/step-results.ts";

/** stdout or stderr: gets the bytes of an answer unchanged, or only text if it is a terminal. */
export interface AnswerStream {
  readonly write: (text: string | Uint8Array) => void;
  /** Writes kcore's own lines, which quote the output of nodes. */
  readonly tell: (text: string) => void;
  /** Whether the stream is a terminal: it then gets text without control characters, since a node must not control it (S-4). */
  readonly isScreen: boolean;
}

export interface AnswerOptions {
  readonly out: AnswerStream;
  readonly err: AnswerStream;
  /** Print equal answers once, at the end. */
  readonly group: boolean;
}

/** The drawing of `exec`: the output of a single node as it is; of several nodes each line with its node. */
export interface Answers extends RunDrawing {
  /** Prints lines that have no end yet. */
  flush(): void;
  /** Whether output was left out on its way here. */
  readonly isCut: boolean;
}

type Output = Extract<RunEvent, { type: "step.output" }>;

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
  const torn = new Map<string, string>();
  let [width, isAlone, isCut] = [0, false, false];
  const streams = { out, err };
  const say = (text: string) => err.tell(`${text}\n`);
  const lineOf = (node: string, line: string) => `${padColumns(node, width)}  ${line}\n`;

  const show = (event: Output) => {
    const { node, stream, text, skipped } = event;
    if (skipped) {
      isCut = true;
      say(`${node}  ${skipped} bytes of ${stream === "err" ? "stderr" : "stdout"} were left out here`);
    }
    if (isAlone) return streams[stream].write(streams[stream].isScreen ? text : bytesOf(event));
    if (group) return;
    const key = `${stream} ${node}`;
    const lines = ((torn.get(key) ?? "") + text).split("\n");
    torn.set(key, lines.pop() ?? "");
    streams[stream].tell(lines.map((line) => lineOf(node, line)).join(""));
  };
  const flush = () => {
    for (const [key, line] of torn) {
      const [, stream, node = ""] = /^(out|err) (.*)$/s.exec(key) ?? [];
      if (line !== "") streams[stream as Output["stream"]].tell(lineOf(node, line));
    }
    torn.clear();
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

function bytesOf({ text, bytes }: Output): string | Uint8Array {
  return bytes === undefined ? text : Buffer.from(bytes, "base64");
}

/** Text for stdout, and text for stderr. */
export interface Drawn {
  readonly out: string;
  readonly err: string;
}

/** Prints each distinct answer (output and end) once with its nodes, the most frequent first: stdout to `out`, stderr and failures to `err`. */
export function drawGroups(results: readonly NodeResult[]): Drawn {
  const groups = [...Map.groupBy(results, ({ stdout, stderr, ...end }) => JSON.stringify([stdout, stderr, endOf(end)]))]
    .map(([, alike]) => alike)
    .toSorted((a, b) => b.length - a.length);
  let [out, err] = ["", ""];
  for (const alike of groups) {
    const [{ stdout, stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const [who, why] = [namesOf(alike), endOf(end)];
    if (stdout !== "" || (why === undefined && stderr === ""))
      out += block(who, stdout === "" ? "(no output)" : stdout);
    if (why === undefined && stderr !== "") err += block(`${who}  on stderr`, stderr);
  }
  for (const alike of groups) {
    const [{ stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const why = endOf(end);
    if (why !== undefined) err += block(`${namesOf(alike)}  ${why}`, stderr);
  }
  return { out, err };
}

/** The failed nodes: each kind of failure once, with its nodes. */
export function drawFailures(results: readonly NodeResult[]): string {
  const failed = results.filter((result) => endOf(result) !== undefined);
  return [...Map.groupBy(failed, endOf)].map(([why, alike]) => `${namesOf(alike)}  ${why}\n`).join("");
}

/** The failure of a node's command; with a hint if the command could not begin. Undefined for success. */
function endOf({ outcome, exitCode, problem }: Omit<NodeResult, "node" | "stdout" | "stderr">): string | undefined {
  if (exitCode === 0) return undefined;
  if (exitCode !== undefined) return `exit code ${exitCode}`;
  const said = problem?.detail === undefined ? "" : `\n${problem.detail.replaceAll(/^/gm, "  | ")}`;
  const hint = problem?.hint === undefined ? "" : `\n  hint: ${problem.hint}`;
  return cleanText(
    `${outcome.replace("-", " ")}${problem ? `: ${formatProblem({ ...problem, at: undefined })}${said}${hint}` : ""}`,
  );
}

function namesOf(alike: readonly NodeResult[]): string {
  const names = alike.map(({ node }) => node).join(", ");
  return alike.length > 1 ? `${names} (${alike.length} nodes)` : names;
}

function block(head: string, text: string): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  return [head, ...lines.map((line) => `  ${line}`)].map((line) => `${line}\n`).join("");
}
