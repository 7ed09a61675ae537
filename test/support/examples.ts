import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";

const examples = join(import.meta.dirname, "../../examples");

/** The whole projects of examples/. */
export const exampleNames: readonly string[] = readdirSync(examples);

export function exampleFolder(name: string): string {
  return join(examples, name);
}

/** The texts of an example's states. */
export function statesOf(name: string): readonly string[] {
  const folder = join(exampleFolder(name), "states");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".yaml"))
    .map((file) => readFileSync(join(folder, file), "utf8"));
}

/** The titles of the steps that were neither in order nor skipped. */
export function stepsNotInOrder(events: readonly RunEvent[]): readonly string[] {
  return events.flatMap((event) =>
    event.type === "step.finished" && !["ok", "skipped"].includes(event.outcome) ? [event.title] : [],
  );
}
