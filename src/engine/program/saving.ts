import { areaFunctions } from "#engine/step/fragments/areas.ts";
import { diskFunctions } from "#engine/step/fragments/disk.ts";
import { quote } from "#base/quote.ts";
import { wholeText, type RunVariables } from "./bootstrap.ts";
import { shippedText } from "./texts.ts";

/** Asks a node for the tables, headers and labels of what has these names; save.sh says how it answers. */
export function savingText(run: Pick<RunVariables, "nonce" | "stateDir" | "runId">, names: readonly string[]): string {
  const text = [
    `k_nonce=${run.nonce}`,
    `K_STATE=${quote(run.stateDir)}`,
    `K_RUNID=${quote(run.runId)}`,
    `k_names=${quote(names.join("\n"))}`,
    ...[diskFunctions, areaFunctions].map((functions) => functions.render({ secret: String, blob: String })),
    shippedText("save"),
    "",
  ].join("\n");
  return wholeText(run, text);
}
