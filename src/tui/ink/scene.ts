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

export interface SceneProps {
  readonly model: RunModel;
  readonly ui: RunUi;
  readonly size: TerminalSize;
  readonly theme: Theme;
  /** Milliseconds since the epoch: `now` by the run's clock, which a replay sets; `real` by the operator's. */
  readonly now: number;
  readonly real: number;
  readonly project: string;
  readonly usual?: ReadonlyMap<string, number>;
  readonly paces?: readonly RunPace[];
  /** The last dry run of the same kind, once it is known. */
  readonly lastDryRun?: () => DryRunResult | undefined;
  readonly player?: PlayerState;
  /** The whole output of one step; other steps show the model's last lines. */
  readonly output?: PagedOutput;
  /** The output is still being read. */
  readonly isReading?: boolean;
}

/** A frame, and its state as the keys see it. */
export interface Scene {
  /** From top to bottom; as many as the terminal has rows. */
  readonly lines: readonly Line[];
  /** The user's settings, with scroll positions that fit. */
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

export interface Extent {
  /** Rows that the list and the body show. */
  readonly list: number;
  readonly body: number;
  /** Rows of the whole body, and those in which a match begins, once known. */
  readonly count: number;
  readonly matches?: readonly number[] | undefined;
  /** The place of the visible step, whose whole output may be read. */
  readonly output?: OutputPlace;
}
