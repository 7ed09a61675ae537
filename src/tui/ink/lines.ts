import { Box, Text } from "ink";
import { createElement as h, memo, type ReactElement } from "react";
import { paintLine, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** One row, drawn again only when its text changes; an empty text would have no height. */
const Row = memo(function Row({ text }: { readonly text: string }): ReactElement {
  return h(Text, { wrap: "truncate" }, text === "" ? " " : text);
});

/** A frame: rows of the terminal, one below the other. */
export function Lines({
  lines,
  width,
  theme,
}: {
  readonly lines: readonly Line[];
  readonly width: number;
  readonly theme: Theme;
}): ReactElement {
  return h(
    Box,
    { flexDirection: "column", width, height: lines.length, flexShrink: 0 },
    ...lines.map((line, index) => h(Row, { key: index, text: paintLine(line, width, theme) })),
  );
}
