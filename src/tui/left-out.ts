import type { LeftOut } from "#engine/events/event.ts";

/** Most stages, steps or nodes that are named; others are counted. */
const mostNamed = 5;

/** “Left out by --only web: stage drain, 2 steps (web: a, web: b), node n2”. */
export function describeLeftOut({ by, stages, steps, nodes }: LeftOut): string {
  const parts = Object.entries({ stage: stages, step: steps, node: nodes }).flatMap(([word, names]) => {
    if (names.length < 2) return names.map((name) => `${word} ${name}`);
    return `${names.length} ${word}s (${names.slice(0, mostNamed).join(", ")}${names.length > mostNamed ? " …" : ""})`;
  });
  return `Left out by ${by}: ${parts.join("; ")}`;
}
