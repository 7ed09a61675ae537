import type { Problem } from "#errors/problem.ts";
import type { WorkItem } from "../work-item.ts";
import { barred, hung, itemHead, itemStory, problemLines } from "./item-body.ts";
import type { PagedOutput } from "./output-pager.ts";
import type { RunUi } from "./run-ui.ts";
import { windowAround } from "./scroll.ts";
import { span, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

export interface StepBodyProps {
  readonly ui: Pick<RunUi, "follow" | "bodyTop">;
  readonly theme: Theme;
  readonly now: number;
  readonly usual?: ReadonlyMap<string, number>;
  /** All that the item printed, when that is at hand. */
  readonly output?: PagedOutput | undefined;
  /** What is wrong with the node itself, or what it waits for; it comes first. */
  readonly problem?: Problem | undefined;
  readonly reason?: string | undefined;
}

/** The head of a step stays; what follows scrolls, and shows its end while the step runs and is followed. */
export function arrangeBody(
  { ui, theme, now, usual, output, problem, reason }: StepBodyProps,
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
  const story = itemStory(props);
  const isWhole = output !== undefined || item.above === undefined;
  const title = span(`   output${isWhole ? "" : ": the last lines"}`, "muted");
  const before = story.output.length > 0 ? [...story.before, [], [title]] : story.before;
  const left = room - head.length;
  const isFollowing = ui.follow && item.outcome === undefined;
  const rows = Math.max(output?.rows ?? 0, story.output.length);
  const count = before.length + rows;
  const { top, end } = windowAround(count, left, isFollowing ? count : ui.bodyTop);
  const [from, to] = [top, end].map((at) => Math.max(0, at - before.length)) as [number, number];
  // The end is in the model, and there at once.
  const isTail = output === undefined || isFollowing;
  const [skipped, length] = [rows - story.output.length, to - from];
  const shown = isTail
    ? story.output.slice(Math.max(0, from - skipped), Math.max(0, to - skipped))
    : (output.slice(from, to) ?? []).map(({ text }) => barred(theme.glyphs.bar, text));
  // While it is being read.
  const missing = Array.from({ length: length - shown.length }, () => barred(theme.glyphs.bar, ""));
  const lines = [...head, ...before.slice(top, end), ...missing, ...shown];
  const hidden = count - end;
  if (hidden > 0 && left > 1)
    lines[lines.length - 1] = [span(`   ${theme.glyphs.down} ${hidden + 1} more lines`, "muted")];
  return { lines, top, room: left };
}
