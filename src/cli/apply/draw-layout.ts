import { padColumns, takeColumns, widthOf } from "#base/text.ts";
import { formatBinary } from "#base/units.ts";
import { visible } from "#errors/draw.ts";
import { diskName } from "#engine/step/disk-names.ts";
import { wrapPainted } from "#tui/draw-digest.ts";
import type { DiskPlan, LayoutPlan, Slice } from "#engine/layout/plan-layout.ts";

export interface Canvas {
  /** Columns of the terminal. */
  readonly columns: number;
  readonly color?: boolean;
  /** Plain ASCII, for a terminal without UTF-8. */
  readonly ascii?: boolean;
}

/** With fewer columns there is no room for boxes, and each slice gets a line. */
const narrowest = 40;
/** The columns before a box: `  before  `. */
const margin = 10;

const colors: Readonly<Record<Slice["fate"], string>> = { free: "2", lost: "31", kept: "36", made: "32" };
const verdicts: Readonly<Record<DiskPlan["verdict"], readonly [string, string]>> = {
  safe: ["32", "SAFE: it is blank"],
  ours: ["36", "SAFE: kcore made it"],
  "holds data": ["33", "HOLDS DATA: it goes only as granted (--grant)"],
  refused: ["31", "REFUSED"],
};

/** Each disk before and after, boxes as wide as the partitions are large: lines of text, without a final line break. */
export function drawLayoutPlan({ node, disks, refusals }: LayoutPlan, canvas: Canvas): string {
  return disks
    .map((disk) => {
      const codes = refusals.flatMap((one) => (one.disk === disk.name ? [`${one.code}, ${one.reason ?? ""}`] : []));
      return drawDisk(node, disk, [...new Set(codes)], canvas);
    })
    .join("\n");
}

function drawDisk(node: string, disk: DiskPlan, codes: readonly string[], canvas: Canvas): string {
  const { kind, value } = diskName(disk.id);
  const { color = false, columns } = canvas;
  const paint = painter(color);
  const about = [
    `${disk.name} of ${node}:`,
    disk.model === "" ? "" : `${disk.model},`,
    `${kind} ${value},`,
    `${shortSize(disk.size)},`,
    `${disk.device} now`,
  ];
  const holders = disk.holders.length === 0 ? [] : [visible(`  in use: ${disk.holders.join("; ")}`)];
  const [shade, words] = verdicts[disk.verdict];
  const why = disk.verdict === "refused" ? ` (${codes.join("; ")})` : "";
  return [
    ...wrapPainted(visible(about.filter((word) => word !== "").join(" ")), columns).map((line) => paint("1", line)),
    ...(isSame(disk)
      ? drawRow("stays", disk.after, canvas)
      : [...drawRow("before", disk.before, canvas), ...drawRow("after", disk.after, canvas)]),
    ...holders.flatMap((line) => wrapPainted(line, columns)),
    ...wrapPainted(`  ${words}${why}`, columns).map((line) => paint(shade, line)),
  ].join("\n");
}

/** A disk that stays as it is gets one drawing. */
function isSame({ before, after }: DiskPlan): boolean {
  const text = (slices: readonly Slice[]): string =>
    slices.map((slice) => `${sliceTitle(slice)} ${slice.holds} ${slice.fate}`).join("\n");
  return text(before) === text(after);
}

function drawRow(title: string, slices: readonly Slice[], { columns, color = false, ascii = false }: Canvas): string[] {
  const paint = painter(color);
  const room = Math.min(columns, 120) - margin;
  const head = padColumns(`  ${title}`, margin);
  // Each box has its left side, the last one its right side too.
  if (room < narrowest || slices.length * 7 + 1 > room)
    return slices.map((slice, index) => {
      const text = `${index === 0 ? head : " ".repeat(margin)}${[sliceTitle(slice), slice.holds].filter(Boolean).join(" ")}`;
      return paint(colors[slice.fate], fitText(text, columns, ascii));
    });
  const widths = widthsOf(slices, room - slices.length - 1);
  const line = (left: string, middle: string, right: string, dash: string): string =>
    `${left}${widths.map((width) => dash.repeat(width)).join(middle)}${right}`;
  const side = ascii ? "|" : "│";
  const cells = (texts: readonly string[]): string =>
    `${side}${texts.map((text, index) => paint(colors[slices[index]?.fate ?? "free"], padColumns(fitText(` ${text}`, widths[index] ?? 0, ascii), widths[index] ?? 0))).join(side)}${side}`;
  const blank = " ".repeat(margin);
  return [
    `${blank}${ascii ? line("+", "+", "+", "-") : line("┌", "┬", "┐", "─")}`,
    `${head}${cells(slices.map(sliceTitle))}`,
    `${blank}${cells(slices.map(({ holds }) => holds))}`,
    `${blank}${ascii ? line("+", "+", "+", "-") : line("└", "┴", "┘", "─")}`,
  ];
}

/** Widths in proportion to the sizes; a box too small for its text gets the text's width, and other boxes share the remaining columns. */
function widthsOf(slices: readonly Slice[], room: number): readonly number[] {
  const wanted = [
    slices.map((slice) => Math.max(widthOf(sliceTitle(slice)), widthOf(slice.holds)) + 2),
    slices.map((slice) => widthOf(sliceTitle(slice)) + 2),
    slices.map(() => 6),
  ];
  const least = wanted.find((list) => sum(list) <= room) ?? [];
  const shared = new Set(slices.keys());
  const shareOf = (index: number): number => {
    const fixed = sum(least.filter((_, one) => !shared.has(one)));
    const total = sum([...shared].map((one) => slices[one]?.size ?? 0)) || 1;
    return ((room - fixed) * (slices[index]?.size ?? 0)) / total;
  };
  for (;;) {
    const narrow = [...shared].filter((index) => shareOf(index) < (least[index] ?? 0));
    if (narrow.length === 0) break;
    for (const index of narrow) shared.delete(index);
  }
  const widths = slices.map((_, index) => (shared.has(index) ? Math.floor(shareOf(index)) : (least[index] ?? 0)));
  // The columns that rounding leaves; if no box shares, the last box gets them.
  const rest = room - sum(widths);
  const takers = shared.size > 0 ? [...shared] : [slices.length - 1];
  for (let cell = 0; cell < rest; cell++) {
    const index = takers[cell % takers.length] ?? 0;
    widths[index] = (widths[index] ?? 0) + 1;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

function sliceTitle({ name, size }: Slice): string {
  return [name, shortSize(size)].filter(Boolean).join(" ");
}

/** A size like `512M` or `1.8T`, in the largest binary unit that leaves a whole part. */
export function shortSize(bytes: number): string {
  return formatBinary(bytes).replace(/ (.).*/, "$1");
}

/** The text cut to the width, without control characters, which a name from a node may have (S-4). */
function fitText(raw: string, width: number, ascii: boolean): string {
  const text = ascii
    ? visible(raw)
        .replaceAll(/[\u201c\u201d]/g, '"')
        .replaceAll(/[^ -~]/g, "?")
    : visible(raw);
  return widthOf(text) <= width ? text : `${takeColumns(text, width - 1)}${ascii ? "~" : "…"}`;
}

function painter(color: boolean): (code: string, text: string) => string {
  return (code, text) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
}
