import type { RunModel } from "#engine/events/run-model.ts";

/** A run as a terminal recording (asciicast v2): the texts of the lines view at their times. Pure. */
export function drawCast(model: RunModel, written: readonly { readonly at: number; readonly text: string }[]): string {
  const start = written[0]?.at ?? 0;
  const head = {
    version: 2,
    width: 120,
    height: 40,
    timestamp: Math.floor(start / 1000),
    title: `${model.title} ${model.runId}`,
  };
  const lines = written
    .filter(({ text }) => text !== "")
    .map(({ at, text }) => [Math.max(0, at - start) / 1000, "o", text.replaceAll("\n", "\r\n")]);
  return [head, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}
