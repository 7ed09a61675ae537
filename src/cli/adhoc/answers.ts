import type { RunEvent } from "#engine/events/event.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { describeEvent } from "#tui/describe-event.ts";
import type { RunDrawing } from "#tui/run-drawing.ts";

/** Where an answer goes: bytes as they are, unless somebody sees them on a screen. */
export interface AnswerStream {
  readonly write: (text: string | Uint8Array) => void;
  /** Writes kcore's own lines, which quote the output of nodes. */
  readonly tell: (text: string) => void;
  /** What a node prints must not drive the operator's terminal (S-4): there only its text is shown. */
  readonly isScreen: boolean;
}

export interface AnswerOptions {
  readonly out: AnswerStream;
  readonly err: AnswerStream;
  /** Alike answers are told at the end. */
  readonly group: boolean;
}

/** What `exec` shows while it runs: of one node what the command prints, of several each line with its node. */
export interface Answers extends RunDrawing {
  /** Gives out lines that nothing has ended. */
  flush(): void;
  /** Something that was printed did not get here. */
  readonly isCut: boolean;
}

type Output = Extract<RunEvent, { type: "step.output" }>;

/** While one waits for an answer: why it does not come. */
const news: ReadonlySet<RunEvent["type"]> = new Set([
  "node.connecting",
  "node.disconnected",
  "node.waiting",
  "node.rebooted",
  "warning",
]);

export function showAnswers({ out, err, group }: AnswerOptions): Answers {
  /** By node and stream: the start of a line. */
  const torn = new Map<string, string>();
  let [width, isAlone, isCut] = [0, false, false];
  const streams = { out, err };
  const say = (text: string) => err.tell(`${text}\n`);
  const lineOf = (node: string, line: string) => `${node.padEnd(width)}  ${line}\n`;

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
        width = Math.max(...event.nodes.map((node) => node.length), 0);
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
