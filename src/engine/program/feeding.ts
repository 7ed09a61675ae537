import { quote } from "#engine/step/quote.ts";
import { wholeText, type RunVariables } from "./bootstrap.ts";
import { shippedText } from "./texts.ts";

/** What a node runs that feeds others and is fed; `id`: hexadecimal, of this process. feed.sh says what it understands and answers. */
export function feedText(run: Pick<RunVariables, "nonce" | "stateDir" | "runId">, id: string): string {
  const text = [
    `k_nonce=${run.nonce}`,
    `K_STATE=${quote(run.stateDir)}`,
    `K_RUNID=${quote(run.runId)}`,
    `k_id=${id}`,
    shippedText("feed"),
    "",
  ].join("\n");
  return wholeText(run, text);
}
