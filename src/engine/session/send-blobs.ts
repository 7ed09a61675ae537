import { KcoreError } from "#errors/problem.ts";
import type { Asker, Blob } from "#engine/step/blob.ts";
import { blobOf } from "#engine/step/blob.ts";
import { refusalName } from "#engine/step/remote.ts";
import { blobCommands, inPlace } from "#engine/program/blob-commands.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { BlobFeed, FedNode } from "./blob-feed.ts";
import type { FollowerChannel } from "./follower-channel.ts";
import type { TransferProgress } from "./transfer-progress.ts";

export interface BlobAnswer {
  readonly run: RunVariables;
  readonly offered: ReadonlyMap<string, Blob>;
  readonly sending: TransferProgress;
  /** False: the line was lost, and who comes back asks anew. */
  readonly isOpen: () => boolean;
  /** Who waits for what the bastion has yet to fetch. */
  readonly askerFor: (label: string) => Asker;
  /** Where others may feed the node. */
  readonly fed?: { readonly feed: BlobFeed; readonly party: FedNode };
}

/** Answers a runner's question for blobs. For a name that was never offered the node gets nothing. */
export async function sendBlobs(link: FollowerChannel, names: readonly string[], answer: BlobAnswer): Promise<void> {
  const { fed, offered } = answer;
  const asked = new Map<string, Blob>();
  const large: (readonly [name: string, blob: Blob])[] = [];
  for (const name of names) {
    const known = offered.get(name);
    const blob = known?.fetch ? await fetched(name, known, asked, answer) : known;
    if (blob && fed?.feed.takes(fed.party, blob)) large.push([name, blob]);
    else if (blob) asked.set(name, blob);
  }
  await give(link, asked, answer);
  // Each gets its place, and others can have it from here, before the next one is waited for.
  for (const [name, blob] of large) await giveLarge(link, name, blob, answer);
  answer.sending.end();
}

/** The content that the bastion fetches; without it the step is given why, and what it asked for with nothing in it. */
async function fetched(
  name: string,
  { fetch, label = "contents" }: Blob,
  asked: Map<string, Blob>,
  { askerFor }: BlobAnswer,
): Promise<Blob | undefined> {
  try {
    return await fetch?.(askerFor(label));
  } catch (error) {
    const [problem] = error instanceof KcoreError ? error.problems : [];
    if (!problem) throw error;
    const { code, message, detail, hint } = problem;
    const text = [message, ...(detail === undefined ? [] : [detail]), ...(hint === undefined ? [] : [`hint: ${hint}`])];
    asked.set(refusalName(name), blobOf(`${code}\n${text.join("\n")}\n`));
    return blobOf("");
  }
}

async function giveLarge(link: FollowerChannel, name: string, blob: Blob, answer: BlobAnswer): Promise<void> {
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
  link: FollowerChannel,
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
