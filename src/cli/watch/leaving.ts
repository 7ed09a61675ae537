import type { RunModel } from "#engine/events/run-model.ts";

/** What a view says that leaves its run before the end. `asked`: what it told the run last. */
export function leavingText(
  { runId, stopping }: Pick<RunModel, "runId" | "stopping">,
  asked?: "stop" | "abort",
): string {
  const back = `kcore runs attach ${runId}`;
  const how = asked === "abort" ? asked : (stopping?.how ?? asked);
  if (how === undefined) return `The run goes on: ${back}`;
  if (how === "stop") return `The run ends after the steps that are running: ${back}`;
  return `The run is being aborted; how it ends tells ${back}`;
}
