import type { Problem } from "#errors/problem.ts";
import type { WorkItem } from "../work-item.ts";
import { hung, itemDetails, itemHead, problemLines } from "./item-body.ts";
import type { RunUi } from "./run-ui.ts";
import { windowAround } from "./scroll.ts";
import { span, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface StepBodyProps {
  readonly ui: Pick<RunUi, "follow" | "bodyTop">;
  readonly theme: Theme;
  readonly now: number;
  readonly usual?: ReadonlyMap<string, number>;
  /** What is wrong with the node itself, or what it waits for; it comes first. */
  readonly problem?: Problem | undefined;
  readonly reason?: string | undefined;
}

/** The head of a step stays; what follows scrolls, and shows its end while the step runs and is followed. */
export function arrangeBody(
  { ui, theme, now, usual, problem, reason }: StepBodyProps,
  item: WorkItem | undefined,
  width: number,
  room: number,
): { readonly lines: readonly Line[]; readonly top: number; readonly room: number } {
  const ofNode = problem
    ? problemLines(problem, {}, theme, width)
    : reason === undefined
      ? []
      : hung(`${theme.glyphs.warning} `, reason, width, "warning");
  if (!item) return { lines: ofNode.slice(0, Math.max(0, room)), top: 0, room: 0 };
  if (room <= 0) return { lines: [], top: 0, room: 0 };
  const props = { item, theme, width, now, ...(usual ? { usual } : {}) };
  const head = [...(ofNode.length > 0 ? [...ofNode, []] : []), ...itemHead(props)].slice(0, room);
  const details = itemDetails(props);
  const left = room - head.length;
  const isFollowing = ui.follow && item.outcome === undefined;
  const { top, end } = windowAround(details.length, left, isFollowing ? details.length : ui.bodyTop);
  const lines = [...head, ...details.slice(top, end)];
  const hidden = details.length - end;
  if (hidden > 0 && left > 1)
    lines[lines.length - 1] = [span(`   ${theme.glyphs.down} ${hidden + 1} more lines`, "muted")];
  return { lines, top, room: left };
}
