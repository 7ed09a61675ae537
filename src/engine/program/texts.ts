import { readFileSync } from "node:fs";

const files = {
  follower: new URL("./follower.sh", import.meta.url),
  "state-folder": new URL("./state-folder.sh", import.meta.url),
  look: new URL("./look.sh", import.meta.url),
  evidence: new URL("./evidence.sh", import.meta.url),
  runner: new URL("./runner.sh", import.meta.url),
  "runner-on-demand": new URL("./runner-on-demand.sh", import.meta.url),
  "step-functions": new URL("./step-functions.sh", import.meta.url),
  step: new URL("./step.sh", import.meta.url),
  files: new URL("./files.sh", import.meta.url),
  "offered-blobs": new URL("./offered-blobs.sh", import.meta.url),
  "reported-change": new URL("./reported-change.sh", import.meta.url),
  apply: new URL("./apply.sh", import.meta.url),
  batch: new URL("./batch.sh", import.meta.url),
  trial: new URL("./trial.sh", import.meta.url),
  revert: new URL("./revert.sh", import.meta.url),
  foresee: new URL("./foresee.sh", import.meta.url),
  "dry-run-verdict": new URL("./dry-run-verdict.sh", import.meta.url),
  "trial-runner": new URL("./trial-runner.sh", import.meta.url),
  save: new URL("./save.sh", import.meta.url),
  disks: new URL("./disk-inventory.sh", import.meta.url),
  facts: new URL("./facts.sh", import.meta.url),
  lock: new URL("./lock.sh", import.meta.url),
  unlock: new URL("./unlock.sh", import.meta.url),
  inspect: new URL("./inspect.sh", import.meta.url),
  command: new URL("./command.sh", import.meta.url),
  copy: new URL("./copy.sh", import.meta.url),
  "end-exec": new URL("./end-exec.sh", import.meta.url),
  "peer-transfer": new URL("./peer-transfer.sh", import.meta.url),
} as const;

const cache = new Map<keyof typeof files, string>();

/** The text of a sh file beside this module, as it is sent: without comments and indentation. Read once. */
export function shippedText(name: keyof typeof files): string {
  let text = cache.get(name);
  if (text === undefined) {
    text = stripComments(readFileSync(files[name], "utf8"));
    cache.set(name, text);
  }
  return text;
}

/** The program that gathers a node's facts; it follows step-functions.sh. */
export function factsText(): string {
  return `${shippedText("disks")}\n${shippedText("facts")}`;
}

function stripComments(text: string): string {
  return (
    text
      .split("\n")
      .filter((line) => !/^\s*(#|$)/.test(line))
      // A comment after a command, where no quote could make it a part of a word.
      .map((line) => line.trimStart().replace(/^([^'"]*\S) # .*$/, "$1"))
      .join("\n")
  );
}
