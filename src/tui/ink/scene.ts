import type { Question } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import type { NodeRow } from "../node-row.ts";
import type { PlayerState } from "../player.ts";
import type { WorkItem } from "../work-item.ts";
import type { OutputPlace, PagedOutput } from "./output-pager.ts";
import type { Pace } from "../time-left.ts";
import type { Foretold } from "../what-follows.ts";
import type { RunUi } from "./run-ui.ts";
import type { Size } from "./screen.ts";
import type { Line } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface SceneProps {
  readonly model: RunModel;
  readonly ui: RunUi;
  readonly size: Size;
  readonly theme: Theme;
  /** Milliseconds since the epoch: the run's clock, and that of the person before the screen. */
  readonly now: number;
  readonly real: number;
  readonly project: string;
  readonly usual?: ReadonlyMap<string, number>;
  readonly paces?: readonly Pace[];
  /** What a dry run of the same said, as soon as that is known. */
  readonly foretold?: () => Foretold | undefined;
  readonly player?: PlayerState;
  /** All that one step printed; of any other the model's last lines are shown. */
  readonly output?: PagedOutput;
  /** What is wanted of it is still being read. */
  readonly isReading?: boolean;
}

/** A frame and what the keys need to know of it. */
export interface Scene {
  /** From top to bottom; together exactly as high as the terminal. */
  readonly parts: readonly Part[];
  /** What the user made of the view, with scroll positions that fit. */
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
  /** All stages stand beside the nodes. */
  readonly showsStages: boolean;
  readonly page: Page;
}

export interface Page {
  /** Rows that the list and the body show. */
  readonly list: number;
  readonly body: number;
  /** Rows of all that the body scrolls through, and those of them in which a match begins, when that is known. */
  readonly count: number;
  readonly matches?: readonly number[] | undefined;
  /** What whole output would be of use in the body. */
  readonly output?: OutputPlace;
}

export interface Part {
  readonly name: "header" | "stages" | "main" | "warnings" | "panel" | "player" | "footer";
  readonly lines: readonly Line[];
}
