import type { Blob } from "#engine/step/blob.ts";
import { blobCommands, inPlace } from "#engine/program/blob-commands.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { BlobFeed, FedNode } from "./blob-feed.ts";
import type { Link } from "./link.ts";
import type { Sending } from "./sending.ts";

export interface BlobAnswer {
  readonly run: RunVariables;
  readonly offered: ReadonlyMap<string, Blob>;
  readonly sending: Sending;
  /** False: the line was lost, and who comes back asks anew. */
  readonly isOpen: () => boolean;
  /** Where others may feed the node. */
  readonly fed?: { readonly feed: BlobFeed; readonly party: FedNode };
}

/** Answers a runner's question for blobs. For a name that was never offered the node gets nothing. */
export async function sendBlobs(link: Link, names: readonly string[], answer: BlobAnswer): Promise<void> {
  const { fed, offered } = answer;
  const asked = new Map<string, Blob>();
  const large: (readonly [name: string, blob: Blob])[] = [];
  for (const name of names) {
    const blob = offered.get(name);
    if (blob && fed?.feed.takes(fed.party, blob)) large.push([name, blob]);
    else if (blob) asked.set(name, blob);
  }
  await give(link, asked, answer);
  // Each gets its place, and others can have it from here, before the next one is waited for.
  for (const [name, blob] of large) await giveLarge(link, name, blob, answer);
  answer.sending.end();
}

async function giveLarge(link: Link, name: string, blob: Blob, answer: BlobAnswer): Promise<void> {
  const { fed, sending, isOpen } = answer;
  // The feed takes a node that left for one that waits, and by then it may have another connection.
  if (!fed || !isOpen()) return;
  const { feed, party } = fed;
  sending.hold(true);
  const end = await feed.bring(party, name, blob);
  sending.hold(false);
  if (end === "there") await link.send(inPlace);
  else if (end === "send")
    await give(link, new Map([[name, blob]]), answer, async () => {
      if (await feed.keep(party, name, blob)) sending.arrive();
    });
}

/** Gives these to the connection; `kept` comes before the word that puts them in their place. */
async function give(
  link: Link,
  blobs: ReadonlyMap<string, Blob>,
  { run, sending }: BlobAnswer,
  kept?: () => Promise<void>,
): Promise<void> {
  const begin = ({ label = "contents", size }: Blob): void => sending.begin(label, size);
  for await (const command of blobCommands(run, blobs, begin)) {
    if (command === inPlace) await kept?.();
    sending.write(command.length);
    await link.send(command);
  }
}
