import type { Blob } from "#engine/step/blob.ts";
import { blobCommands } from "#engine/program/blob-commands.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Link } from "./link.ts";

/** Answers a runner's question for blobs. For a name that was never offered the node gets nothing. */
export async function sendBlobs(
  link: Link,
  names: readonly string[],
  { run, offered }: { readonly run: RunVariables; readonly offered: ReadonlyMap<string, Blob> },
): Promise<void> {
  const asked = new Map<string, Blob>();
  for (const name of names) {
    const blob = offered.get(name);
    if (blob) asked.set(name, blob);
  }
  for await (const command of blobCommands(run, asked)) await link.send(command);
}
