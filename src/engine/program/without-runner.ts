import { quote } from "#base/quote.ts";
import { areaFunctions } from "#engine/step/fragments/areas.ts";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { wholeText, type RunVariables } from "./bootstrap.ts";
import { factsText, shippedText } from "./texts.ts";

// Programs of a node that need no runner.

type RunName = Pick<RunVariables, "nonce" | "stateDir" | "runId">;

function programOf(run: RunName, lines: readonly string[]): string {
  const { nonce, stateDir, runId } = run;
  const given = [`k_nonce=${nonce}`, `K_STATE=${quote(stateDir)}`, `K_RUNID=${quote(runId)}`];
  return wholeText(run, [...given, ...lines, ""].join("\n"));
}

/**
 * The program of a node that exchanges contents with other nodes; peer-transfer.sh has its commands and answers. `id`: hexadecimal,
 * for names outside of the program's folder. `silence`: seconds without a command after which the program ends.
 */
export function peerTransferText(
  run: RunName,
  { id, silence = 60 }: { readonly id: string; readonly silence?: number },
): string {
  return programOf(run, [`k_id=${id}`, `k_silence=${silence}`, shippedText("peer-transfer")]);
}

/** The program that sends tables, headers and labels of the disks with these names; save.sh has the frames. */
export function savingText(run: RunName, names: readonly string[]): string {
  return programOf(run, [
    `k_names=${quote(names.join("\n"))}`,
    ...[diskFunctions, areaFunctions].map((functions) => functions.render({ secret: String, blob: String })),
    shippedText("save"),
  ]);
}

/** The program of `kcore cp` on a node; copy.sh has its commands and answers. */
export function copyText(): string {
  return ["step-functions", "files", "copy"].map((name) => shippedText(name as "copy")).join("\n");
}

/** A request to a shell without a runner. `end`: ends the command of an earlier `exec`. */
export type RunnerlessRequest =
  | { readonly kind: "ping" }
  | { readonly kind: "facts" }
  | { readonly kind: "exec"; readonly text: string }
  | { readonly kind: "end"; readonly pid: string }
  /** Names the run that holds the node. Unless `isLook`, ends that run if it is `run`, or `run` is empty. */
  | { readonly kind: "unlock"; readonly stateDir: string; readonly run: string; readonly isLook: boolean };

/** The program that answers the request without a runner. */
export function runnerlessText(run: { readonly nonce: string }, request: RunnerlessRequest): string {
  return wholeText(run, [`k_nonce=${run.nonce}`, ...requestLines(request), ""].join("\n"));
}

const sayHello = 'echo "$k_nonce hello"';

function requestLines(request: RunnerlessRequest): readonly string[] {
  switch (request.kind) {
    case "ping":
      return [sayHello];
    case "facts":
      return [
        shippedText("inspect"),
        sayHello,
        shippedText("step-functions"),
        // Facts go to descriptor 3, and are frames here.
        'exec 3>&1 </dev/null >/dev/null 2>&1; k_lead="$k_nonce fact facts"',
        factsText(),
      ];
    case "exec":
      return [shippedText("inspect"), shippedText("command"), `k_exec ${quote(request.text)}`];
    case "unlock":
      return [
        shippedText("inspect"),
        sayHello,
        shippedText("lock"),
        shippedText("unlock"),
        `k_unlock ${quote(request.stateDir)} ${quote(request.run)} ${quote(request.isLook ? "look" : "")}`,
      ];
    case "end":
      return [sayHello, shippedText("end-exec"), `k_end ${quote(request.pid)}`];
  }
}
