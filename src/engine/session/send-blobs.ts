import type { Blob } from "#engine/step/blob.ts";
import { blobCommands } from "#engine/program/blob-commands.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Link } from "./link.ts";
import type { Sending } from "./sending.ts";

/** Answers a runner's question for blobs. For a name that was never offered the node gets nothing. */
export async function sendBlobs(
  link: Link,
  names: readonly string[],
  {
    run,
    offered,
    sending,
  }: { readonly run: RunVariables; readonly offered: ReadonlyMap<string, Blob>; readonly sending: Sending },
): Promise<void> {
  const asked = new Map<string, Blob>();
  for (const name of names) {
    const blob = offered.get(name);
    if (blob) asked.set(name, blob);
  }
  const begin = ({ label = "contents", size }: Blob): void => sending.begin(label, size);
  for await (const command of blobCommands(run, asked, begin)) {
    sending.write(command.length);
    await link.send(command);
  }
  sending.end();
}
