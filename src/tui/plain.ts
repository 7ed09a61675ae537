import { LISTR_LOGGER_STYLE, ListrLogger, ListrLogLevels, ProcessOutput } from "listr2";
import type { RunEvent } from "#engine/events/event.ts";
import { RunFold } from "#engine/events/reduce.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { BriefLines, longMs, type Detail, type EventLines } from "./brief.ts";
import { escapeForCi, foldOf, type Ci } from "./ci.ts";
import { describeEvent, type PlainLine } from "./describe-event.ts";

/** A view: draws events as they come. */
export interface RunDrawing {
  draw(event: RunEvent): void;
}

export interface PlainOptions {
  readonly out: NodeJS.WriteStream;
  readonly color: boolean;
  /** By default `verbose`. */
  readonly detail?: Detail;
  /** Each line has its time, in UTC. */
  readonly times?: boolean;
  /** The CI that shows the lines: long details of a change are folded there. */
  readonly ci?: Ci | undefined;
  /** Events up to this number were shown before, and only update the model. */
  readonly since?: number;
  /** The run's model before each drawn event; without it the view reduces the events itself. */
  readonly run?: Pick<RunFold, "borrowedModel">;
  /** The clock, in milliseconds since the epoch, for tests. */
  readonly timers?: { readonly now: () => number; readonly after: (milliseconds: number, call: () => void) => unknown };
}

const levels: Readonly<Record<PlainLine["mark"], ListrLogLevels>> = {
  started: ListrLogLevels.STARTED,
  done: ListrLogLevels.COMPLETED,
  failed: ListrLogLevels.FAILED,
  skipped: ListrLogLevels.SKIPPED,
  output: ListrLogLevels.OUTPUT,
  title: ListrLogLevels.TITLE,
  warning: ListrLogLevels.RETRY,
};

const wallTimers = {
  now: Date.now,
  after: (milliseconds: number, call: () => void) => setTimeout(call, milliseconds).unref(),
};

/** The view for logs, pipes and plain terminals: lines for each event, as `detail` asks, with listr2's icons and colours. */
export function createPlainView(options: PlainOptions): RunDrawing {
  const { out, color, since = 0, run, detail = "verbose", times = false, ci, timers = wallTimers } = options;
  const { color: _, ...icons } = LISTR_LOGGER_STYLE;
  const logger = new ListrLogger<ListrLogLevels>({
    ...(color ? LISTR_LOGGER_STYLE : icons),
    useIcons: true,
    toStderr: [],
    processOutput: new ProcessOutput(out, out),
  });
  const own = new RunFold();
  const brief = detail === "verbose" ? undefined : new BriefLines({ detail, folds: ci !== undefined });
  return {
    draw: (event) => {
      const before = (run ?? own).borrowedModel;
      const eventLines: EventLines = brief ? brief.linesOf(before, event) : { lines: describeEvent(before, event) };
      const { lines, folded } = eventLines;
      if (!run) own.add(event);
      // The lines of a later event may depend on this event.
      if (event.seq <= since) return;
      const write = (some: readonly PlainLine[], at = event.at) => {
        const when = times ? `${new Date(at).toISOString().slice(11, 19)}  ` : "";
        for (const { mark, text } of some) logger.log(levels[mark], when + escapeForCi(ci, text));
      };
      write(lines);
      // A timer prints held-back notes, because no event may follow until an operator acts on the note.
      if (brief && event.type.endsWith(".note") && timers.now() - event.at < longMs)
        timers.after(longMs, () => write(brief.overdue(timers.now()), timers.now()));
      if (!folded || ci === undefined) return;
      const title = escapeForCi(ci, folded.title);
      const [open, close] = foldOf(ci, { title, id: `kcore_${event.seq}`, since: folded.since, until: event.at });
      out.write(`${open}\n`);
      write(folded.lines);
      out.write(`${close}\n`);
    },
  };
}

/** A run as a terminal recording (asciicast v2). `written`: the texts of the plain view and their times in milliseconds. Pure. */
export function drawCast(model: RunModel, written: readonly { readonly at: number; readonly text: string }[]): string {
  const start = written[0]?.at ?? 0;
  const head = {
    version: 2,
    width: 120,
    height: 40,
    timestamp: Math.floor(start / 1000),
    title: `${model.title} ${model.runId}`,
  };
  const lines = written
    .filter(({ text }) => text !== "")
    .map(({ at, text }) => [Math.max(0, at - start) / 1000, "o", text.replaceAll("\n", "\r\n")]);
  return [head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}
