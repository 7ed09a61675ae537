import { KcoreError } from "#errors/problem.ts";
import type { FetchRequest, Blob } from "#engine/step/blob.ts";
import { blobOf } from "#engine/step/blob.ts";
import { refusalName } from "#engine/step/remote.ts";
import { blobCommands, placeBlobsCommand } from "#engine/program/blob-commands.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { PeerBlobs, BlobPeer } from "./peer-blobs.ts";
import type { FollowerChannel } from "./follower-channel.ts";
import type { TransferProgress } from "./transfer-progress.ts";

/** The means to answer one request for blobs. */
export interface BlobAnswer {
  readonly run: RunVariables;
  readonly offered: ReadonlyMap<string, Blob>;
  readonly progress: TransferProgress;
  /** False: the connection was lost, and the session answers the request again over the next connection. */
  readonly isOpen: () => boolean;
  /** The request of a content that the bastion must fetch first. */
  readonly requestFor: (label: string) => FetchRequest;
  /** How this node gets contents from other nodes. */
  readonly fromPeers?: { readonly blobs: PeerBlobs; readonly peer: BlobPeer };
}

/** Answers a runner's request for blobs. A name that was never offered gets no answer. */
export async function sendBlobs(
  follower: FollowerChannel,
  names: readonly string[],
  answer: BlobAnswer,
): Promise<void> {
  const { fromPeers, offered } = answer;
  const small = new Map<string, Blob>();
  const large: (readonly [name: string, blob: Blob])[] = [];
  for (const name of names) {
    const known = offered.get(name);
    const blob = known?.fetch ? await fetchBlob(name, known, small, answer) : known;
    if (blob && fromPeers?.blobs.takes(fromPeers.peer, blob)) large.push([name, blob]);
    else if (blob) small.set(name, blob);
  }
  await send(follower, small, answer);
  // Each large content is put in its place before the next, so that other nodes can fetch it from this node early.
  for (const [name, blob] of large) await sendLarge(follower, name, blob, answer);
  answer.progress.end();
}

/** The content, fetched by the bastion. If that fails, an empty blob, and the problem is added to the blobs to send. */
async function fetchBlob(
  name: string,
  { fetch, label = "contents" }: Blob,
  blobs: Map<string, Blob>,
  { requestFor }: BlobAnswer,
): Promise<Blob | undefined> {
  try {
    return await fetch?.(requestFor(label));
  } catch (error) {
    const [problem] = error instanceof KcoreError ? error.problems : [];
    if (!problem) throw error;
    const { code, message, detail, hint } = problem;
    const text = [message, ...(detail === undefined ? [] : [detail]), ...(hint === undefined ? [] : [`hint: ${hint}`])];
    blobs.set(refusalName(name), blobOf(`${code}\n${text.join("\n")}\n`));
    return blobOf("");
  }
}

async function sendLarge(follower: FollowerChannel, name: string, blob: Blob, answer: BlobAnswer): Promise<void> {
  const { fromPeers, progress, isOpen } = answer;
  // After a lost connection no other node must be asked: the transfer would take the node for one that still waits.
  if (!fromPeers || !isOpen()) return;
  const { blobs, peer } = fromPeers;
  progress.hold(true);
  const end = await blobs.bring(peer, name, blob);
  progress.hold(false);
  if (end === "there") await follower.send(placeBlobsCommand);
  else if (end === "send")
    await send(follower, new Map([[name, blob]]), answer, async () => {
      if (await blobs.keep(peer, name, blob)) progress.arrive();
    });
}

/** Sends the blobs. `beforeInPlace` runs before the command that puts them in their place. */
async function send(
  follower: FollowerChannel,
  blobs: ReadonlyMap<string, Blob>,
  { run, progress }: BlobAnswer,
  beforeInPlace?: () => Promise<void>,
): Promise<void> {
  const begin = ({ label = "contents", size }: Blob): void => progress.begin(label, size);
  for await (const command of blobCommands(run, blobs, begin)) {
    if (command === placeBlobsCommand) await beforeInPlace?.();
    progress.write(command.length);
    await follower.send(command);
  }
}
