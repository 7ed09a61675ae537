import { detectTheme } from "#tui/ink/theme.ts";
import { fleetTables } from "#tui/ink/fleet/section-rows.ts";
import type { FleetSnapshot } from "#tui/ink/fleet/snapshot.ts";
import { formatTable } from "../terminal/format-table.ts";

/** The whole dashboard as text: each section under its name. */
export function drawOnce(snapshot: FleetSnapshot): string {
  const theme = detectTheme({ ...process.env, NO_COLOR: "1" });
  const { context, asked, at } = snapshot;
  const sections = fleetTables(snapshot, { theme, now: at }).map(({ title, emptyText, headings, rows }) => {
    // A column of symbols repeats the words beside it.
    const wordsOf = <Cell>(cells: readonly Cell[]) => cells.filter((_, index) => headings[index] !== "");
    const texts = rows.map(({ cells }) => wordsOf(cells).map((cell) => cell.map(({ text }) => text).join("") || "-"));
    return `\n${title}: ${rows.length}\n${rows.length === 0 ? `${emptyText}\n` : formatTable(wordsOf(headings), texts)}`;
  });
  return `context ${context}, as reported by ${asked} at ${new Date(at).toISOString()}\n${sections.join("")}`;
}
