import { quote } from "#base/quote.ts";
import { wholeText, type RunVariables } from "./bootstrap.ts";
import { shippedText } from "./texts.ts";

/**
 * What a node runs that feeds others and is fed; feed.sh says what it understands and answers. `id`: hexadecimal, of this process;
 * `silence`: seconds without a word from us after which it ends.
 */
export function feedText(
  run: Pick<RunVariables, "nonce" | "stateDir" | "runId">,
  { id, silence = 60 }: { readonly id: string; readonly silence?: number },
): string {
  const text = [
    `k_nonce=${run.nonce}`,
    `K_STATE=${quote(run.stateDir)}`,
    `K_RUNID=${quote(run.runId)}`,
    `k_id=${id}`,
    `k_silence=${silence}`,
    shippedText("feed"),
    "",
  ].join("\n");
  return wholeText(run, text);
}
