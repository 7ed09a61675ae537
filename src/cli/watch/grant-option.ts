import { Option } from "commander";
import { grantPattern } from "#engine/session/own-grants.ts";
import { usageError } from "#errors/problem.ts";
import { collect } from "../options.ts";

/** `--grant`, of each command that may wipe a disk. */
export function grantOption(): Option {
  return new Option(
    "--grant <disk:contents>",
    "allow wiping this disk while it holds this, as a refusal says it; with @NODE behind it, of that node alone (repeatable)",
  ).argParser((given: string, earlier: readonly string[] | undefined) => collect(grantIn(given), earlier));
}

/** A name alone would be of no disk, and the run refused for what seems to be granted. @throws KcoreError USAGE */
function grantIn(given: string): string {
  if (grantPattern.test(given)) return given;
  const name = given.split(/[:@]/)[0] || "S3Z8NB0K";
  throw usageError(
    `--grant ${given} names no contents that may go, and so grants nothing`,
    `--grant ${name}:9f2c…, as the refusal of a dry run prints it: the disk, and 16 hex digits of what it holds`,
  );
}
