import { ListrLogger, ListrLogLevels, ProcessOutput, SimpleRenderer } from "listr2";
import type { RunEvent } from "#engine/events/event.ts";
import { RunFold } from "#engine/events/reduce.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { BriefLines, LONG, type Detail, type Told } from "./brief.ts";
import { escapeForCi, foldOf, type Ci } from "./ci.ts";
import { describeEvent } from "./describe-event.ts";
import type { RunDrawing } from "./drawing.ts";
import type { PlainLine } from "./line.ts";

export interface PlainOptions {
  readonly out: NodeJS.WriteStream;
  readonly color: boolean;
  /** `verbose` unless told otherwise. */
  readonly detail?: Detail;
  /** Each line tells when, in UTC. */
  readonly times?: boolean;
  /** Whose log it is: what tells how a change came about is folded there. */
  readonly ci?: Ci | undefined;
  /** Events up to this number are known already and only kept in mind. */
  readonly since?: number;
  /** The run before each event that is drawn, when somebody else keeps it; else the view keeps its own. */
  readonly run?: Pick<RunFold, "fleeting">;
  /** The clock, for tests. */
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

/**
 * The view for logs, pipes and plain terminals: one line for each piece of news, in listr2's simple hand. listr2 only
 * draws: its tasks would bring an order, retries and errors of their own, and those are the engine's.
 */
export function createPlainView(options: PlainOptions): RunDrawing {
  const { out, color, since = 0, run, detail = "verbose", times = false, ci } = options;
  const { now, after } = options.timers ?? realTimers;
  const logger = new ListrLogger<ListrLogLevels>({
    useIcons: true,
    toStderr: [],
    processOutput: new ProcessOutput(out, out),
  });
  // The renderer gives the logger its icons and colours.
  new SimpleRenderer([], { logger, ...(color ? {} : { color: plainColors }) });
  const own = new RunFold();
  const { tell, overdue } = tellerOf(detail, ci);
  return {
    draw: (event) => {
      const { lines, folded } = tell((run ?? own).fleeting, event);
      if (!run) own.add(event);
      // It is told all the same: what is told of the next one may depend on it.
      if (event.seq <= since) return;
      const write = (some: readonly PlainLine[], at = event.at) => {
        const when = times ? `${new Date(at).toISOString().slice(11, 19)}  ` : "";
        for (const { mark, text } of some) logger.log(levels[mark], when + escapeForCi(ci, text));
      };
      write(lines);
      // The view draws held-back notes by a timer: no event may follow until an operator acts on the note.
      if (event.type.endsWith(".note") && now() - event.at < LONG) after(LONG, () => write(overdue(now()), now()));
      if (!folded || ci === undefined) return;
      const title = escapeForCi(ci, folded.title);
      const [open, close] = foldOf(ci, { title, id: `kcore_${event.seq}`, since: folded.since, until: event.at });
      out.write(`${open}\n`);
      write(folded.lines);
      out.write(`${close}\n`);
    },
  };
}

function tellerOf(
  detail: Detail,
  ci: Ci | undefined,
): { tell: (before: RunModel, event: RunEvent) => Told; overdue: (now: number) => readonly PlainLine[] } {
  if (detail === "verbose")
    return { tell: (before, event) => ({ lines: describeEvent(before, event) }), overdue: () => [] };
  const brief = new BriefLines({ detail, folds: ci !== undefined });
  return { tell: (before, event) => brief.tell(before, event), overdue: (now) => brief.overdue(now) };
}

const realTimers = {
  now: Date.now,
  after: (milliseconds: number, call: () => void) => setTimeout(call, milliseconds).unref(),
};

const plainColors = Object.fromEntries(
  Object.values(ListrLogLevels).map((level) => [level, (text?: string) => text ?? ""]),
);
