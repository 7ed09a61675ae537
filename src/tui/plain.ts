import { ListrLogger, ListrLogLevels, ProcessOutput, SimpleRenderer } from "listr2";
import { RunFold } from "#engine/events/reduce.ts";
import { describeEvent } from "./describe-event.ts";
import type { RunDrawing } from "./drawing.ts";
import type { PlainLine } from "./line.ts";

export interface PlainOptions {
  readonly out: NodeJS.WriteStream;
  readonly color: boolean;
  /** Events up to this number are known already and only kept in mind. */
  readonly since?: number;
  /** The run before each event that is drawn, when somebody else keeps it; else the view keeps its own. */
  readonly run?: Pick<RunFold, "fleeting">;
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
 * draws: its tasks would bring an order, retries and errors of their own, and those are the engine's (ADR 0403).
 */
export function createPlainView({ out, color, since = 0, run }: PlainOptions): RunDrawing {
  const logger = new ListrLogger<ListrLogLevels>({
    useIcons: true,
    toStderr: [],
    processOutput: new ProcessOutput(out, out),
  });
  // The renderer gives the logger its icons and colours.
  new SimpleRenderer([], { logger, ...(color ? {} : { color: plainColors }) });
  const own = new RunFold();
  return {
    draw: (event) => {
      const lines = event.seq > since ? describeEvent((run ?? own).fleeting, event) : [];
      for (const { mark, text } of lines) logger.log(levels[mark], text);
      if (!run) own.add(event);
    },
  };
}

const plainColors = Object.fromEntries(
  Object.values(ListrLogLevels).map((level) => [level, (text?: string) => text ?? ""]),
);
