import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import type { NodeRow } from "../node-row.ts";
import type { PlayerState } from "../player.ts";
import type { WorkItem } from "../work-item.ts";
import type { OutputPlace, PagedOutput } from "./output-pager.ts";
import type { RunPace } from "../time-left.ts";
import type { DryRunResult } from "../questions.ts";
import type { RunUi } from "./run-ui.ts";
import type { TerminalSize } from "./screen.ts";
import type { Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** All inputs of a frame of the run view. */
export interface SceneProps {
  readonly model: RunModel;
  readonly ui: RunUi;
  readonly size: TerminalSize;
  readonly theme: Theme;
  /** Milliseconds since the epoch by the run's clock, which a replay sets. */
  readonly now: number;
  /** Milliseconds since the epoch by the operator's clock. */
  readonly real: number;
  readonly project: string;
  readonly usual?: ReadonlyMap<string, number>;
  readonly paces?: readonly RunPace[];
  /** The last dry run of the same kind; undefined while it is not known. */
  readonly lastDryRun?: () => DryRunResult | undefined;
  readonly player?: PlayerState;
  /** The whole output of one step; other steps show the model's last lines. */
  readonly output?: PagedOutput;
  /** The output is still being read. */
  readonly isReading?: boolean;
}

/** A frame, and its state as the keys see it. */
export interface Scene {
  /** From top to bottom; as many as the terminal has rows, or one on a terminal that is too small. */
  readonly lines: readonly Line[];
  /** The operator's settings, with scroll positions that fit. */
  readonly ui: RunUi;
  readonly model: RunModel;
  readonly rows: readonly NodeRow[];
  readonly selected: number;
  readonly row?: NodeRow;
  readonly items: readonly WorkItem[];
  readonly itemIndex: number;
  readonly item?: WorkItem;
  /** The question that the keys answer now. */
  readonly question?: Question;
  readonly replay: boolean;
  /** Whether all stages are shown beside the nodes. */
  readonly showsStages: boolean;
  readonly page: Extent;
}

/** The numbers of rows that keys scroll by and move in. */
export interface Extent {
  /** Visible rows of the list. */
  readonly list: number;
  /** Visible rows of the body. */
  readonly body: number;
  /** Rows of the whole body. */
  readonly count: number;
  /** The rows of the body in which a match begins; undefined without a search, or while the output is being read. */
  readonly matches?: readonly number[] | undefined;
  /** The place of the visible step's whole output, if the model has only its last lines. */
  readonly output?: OutputPlace;
}
