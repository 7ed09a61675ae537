import { Box } from "ink";
import { createElement as h, type ReactElement } from "react";
import { Lines } from "./lines.ts";
import type { Scene } from "./scene.ts";
import type { Size } from "./screen.ts";
import type { Theme } from "./theme.ts";

/** The whole frame: each part of the scene, one below the other. */
export function RunScreen({
  scene,
  size,
  theme,
}: {
  readonly scene: Scene;
  readonly size: Size;
  readonly theme: Theme;
}): ReactElement {
  return h(
    Box,
    { flexDirection: "column", width: size.columns },
    ...scene.parts
      .filter(({ lines }) => lines.length > 0)
      .map(({ name, lines }) => h(Lines, { key: name, lines, width: size.columns, theme })),
  );
}
